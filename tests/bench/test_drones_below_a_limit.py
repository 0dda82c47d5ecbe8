"""Eight drones that ask one endpoint through a real control plane: they use its limit, and are seldom refused.

These figures are by the clock, and belong to a machine that does nothing else. The longest ones repeat the table of
docs/rate-limits.md; `RATE_LIMITS_TABLE=FILE` keeps its rows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.asking_drones import add_provider, asking, asking_drone, warm_up, watch
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
    """Eight drones ask all the time; a row for each phase goes into the table, if a file for it is named."""
    found = {}
    with LimitedEndpoint(60, style=style, takes_s=0.5) as endpoint:
        add_provider(api, endpoint, rpm=rpm)
        drones = [asking_drone(api, f"drone{number}", endpoint, rpm=rpm) for number in range(8)]
        with asking(*drones):
            for phase, limit, seconds in phases:
                endpoint.limit = limit
                found[phase] = watch(endpoint, seconds)
    if table := os.environ.get("RATE_LIMITS_TABLE"):
        with Path(table).open("a") as file:
            file.writelines(f"| {name} | {phase} | {figures.cells} |\n" for phase, figures in found.items())
    assert not any(drone.failures for drone in drones)
    assert min(drone.answers for drone in drones) > max(drone.answers for drone in drones) / 3
    for phase in found.keys() - {"lowered to 30", "raised to 120", "60 per minute, unknown"}:
        assert found[phase].refused_part <= 0.03, phase
        assert found[phase].used_part >= 0.9, phase
