"""Whole fleets for the acceptance tests: a shared one, and a fixture that starts one for a single test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import SCRIPTS
from tests.support.whole_fleet import WholeFleet


@pytest.fixture(scope="session")
def model() -> Iterator[ScriptedServer]:
    """The scripted model (a stand-in) with every script that these tests name in a prompt."""
    with ScriptedServer(SCRIPTS) as server:
        yield server


@pytest.fixture
def start_fleet(tmp_path: Path) -> Iterator[Callable[..., WholeFleet]]:
    """A function that starts a fleet for this test only; all of them are closed afterwards."""
    started: list[WholeFleet] = []

    def start(name: str = "fleet", **settings: Any) -> WholeFleet:
        fleet = WholeFleet(tmp_path / name, **settings)
        started.append(fleet)
        fleet.start()
        return fleet

    yield start
    problems = [problem for fleet in started for problem in fleet.transcript_problems()]
    for fleet in started:
        fleet.close()
    assert problems == []


@pytest.fixture(scope="package")
def shared_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeFleet]:
    """A fleet with one embedded drone, shared by many tests: no test stops or removes a part of it."""
    fleet = WholeFleet(tmp_path_factory.mktemp("shared"))
    try:
        fleet.start()
        yield fleet
        assert fleet.transcript_problems() == []
    finally:
        fleet.close()
