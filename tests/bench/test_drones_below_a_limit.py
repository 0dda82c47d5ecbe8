"""Eight drones that ask one endpoint through a real control plane: they use its limit, and are seldom refused.

These figures are by the clock, and belong to a machine that does nothing else. The longest ones repeat the table of
docs/rate-limits.md; `RATE_LIMITS_TABLE=FILE` keeps its rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking_drones import AskingDrone, Figures, add_provider, asking, asking_drone, warm_up, watch
from tests.support.fleet import Api
from tests.support.limited_endpoint import LimitedEndpoint, Style

pytestmark = [pytest.mark.bench, pytest.mark.long]
Phase = tuple[str, int, int]
"""What it shows, the endpoint's limit per minute, and its seconds."""
HEADERS: tuple[Phase, ...] = (("60 per minute", 60, 130), ("lowered to 30", 30, 60), ("30 per minute", 30, 120))
RAISED: tuple[Phase, ...] = (("60 per minute", 60, 130), ("raised to 120", 120, 60), ("120 per minute", 120, 120))
UNNAMED: tuple[Phase, ...] = (
    ("60 per minute, unknown", 60, 120),
    ("60 per minute", 60, 150),
    ("lowered to 30", 30, 180),
    ("30 per minute", 30, 120),
)


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    warm_up()


@contextmanager
def eight_drones(api: Api, endpoint: LimitedEndpoint, *, rpm: int = 0) -> Iterator[Sequence[AskingDrone]]:
    """Eight drones that ask all the time."""
    add_provider(api, endpoint, rpm=rpm)
    drones = [asking_drone(api, f"drone{number}", endpoint, rpm=rpm) for number in range(8)]
    with asking(*drones):
        yield drones
    assert not any(drone.failures for drone in drones)
    assert min(drone.answers for drone in drones) > max(drone.answers for drone in drones) / 3


def write(name: str, phase: str, figures: Figures) -> None:
    """Keep a row of the table, if a file for it is named."""
    if table := os.environ.get("RATE_LIMITS_TABLE"):
        with Path(table).open("a") as file:
            file.write(f"| {name} | {phase} | {figures.cells} |\n")


# In the short forms, the endpoint's window is shorter than the sixth of a minute in which the fleet makes these calls,
# by about what the long forms can spare for calls that arrive late.
SHORT: Mapping[str, Any] = {"limit": 100, "window": 9.0, "named": 600}


def test_eight_drones_use_what_a_limit_allows_and_are_seldom_refused(api: Api) -> None:
    with LimitedEndpoint(**SHORT) as endpoint, eight_drones(api, endpoint, rpm=600):
        figures = watch(endpoint, 20)
    assert figures.refused_part <= 0.03
    assert figures.used_part >= 0.9


def test_eight_drones_learn_a_limit_from_headers(api: Api) -> None:
    with LimitedEndpoint(**SHORT, style="openai") as endpoint, eight_drones(api, endpoint):
        figures = watch(endpoint, 20)
    assert figures.refused_part <= 0.03
    assert figures.used_part >= 0.9


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "style", "rpm", "phases"),
    [
        ("`--rpm 60`, no headers", "none", 60, (("60 per minute", 60, 150),)),
        ("OpenAI's headers", "openai", 0, HEADERS),
        ("Anthropic's headers", "anthropic", 0, RAISED),
        ("only `Retry-After`", "retry-after", 0, UNNAMED),
        ("none at all", "none", 0, UNNAMED),
    ],
    ids=["set", "openai", "anthropic", "retry-after", "none"],
)
def test_eight_drones_below_a_limit_of_sixty_a_minute(
    api: Api, name: str, style: Style, rpm: int, phases: Sequence[Phase]
) -> None:
    found = {}
    with LimitedEndpoint(60, style=style, takes_s=0.5) as endpoint, eight_drones(api, endpoint, rpm=rpm):
        for phase, limit, seconds in phases:
            endpoint.limit = limit
            found[phase] = watch(endpoint, seconds)
            write(name, phase, found[phase])
    for phase in found.keys() - {"lowered to 30", "raised to 120", "60 per minute, unknown"}:
        assert found[phase].refused_part <= 0.03, phase
        assert found[phase].used_part >= 0.9, phase
