"""Eight drones that ask one endpoint through a real control plane: they use its limit, and are seldom refused.

The long form repeats the table of docs/rate-limits.md; `RATE_LIMITS_TABLE=FILE` keeps its rows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import wait_until
from tests.support.asking_drones import AskingDrone, Figures, add_provider, asking, asking_drone, warm_up, watch
from tests.support.fleet import Api
from tests.support.limited_endpoint import LimitedEndpoint, Style

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


# The short form. The endpoint's window is shorter than the sixth of a minute in which the fleet makes these calls, by
# about what the long form can spare for calls that arrive late.
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


def test_a_refusal_of_one_drone_stops_the_others_and_they_say_why(api: Api) -> None:
    with LimitedEndpoint(100_000, takes_s=0.2) as endpoint, eight_drones(api, endpoint, rpm=6000) as drones:
        watch(endpoint, 2)
        endpoint.closed_until = time.monotonic() + 6
        wait_until(lambda: any(not each.accepted for each in list(endpoint.arrivals)))
        watch(endpoint, 1)
        paused = watch(endpoint, 2)
        said = [drone.recorder.now_doing for drone in drones]
        wait_until(lambda: endpoint.arrivals[-1].accepted)
    assert (paused.accepted, paused.refused) == (0, 0)
    assert all("the endpoint refused a request (429) and is given a pause" in text for text in said)
    assert sum(not each.accepted for each in endpoint.arrivals) <= 8


@pytest.mark.long
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
