"""Drones whose wall clocks are an hour ahead and an hour behind: orders are claimed, run and pushed as usual, and every
stored time is the control plane's, next to the drone's own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.db.engine import Database, sqlite_url_of
from control_plane.db.runs import Step
from drone.model.scripted.server import ScriptedServer
from tests.support.repositories import calc_project, git
from tests.support.shifted import shifted_clock
from tests.support.transcripts import transcript_problems
from tests.support.whole_fleet import WholeFleet, WorkstationDrone

pytestmark = [pytest.mark.campaign, pytest.mark.chaos, pytest.mark.timeout(400)]
NEAR = timedelta(minutes=5)
HOUR = timedelta(hours=1)


def test_clocks_that_are_an_hour_apart_disturb_nothing(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    fleet = start_fleet("fleet", drones=0)
    remote = calc_project(tmp_path / "calc.git")
    fleet.add_work(model.url, f"file://{remote}")
    early, late = wrong_clock(fleet, "early", tmp_path, HOUR), wrong_clock(fleet, "late", tmp_path, -HOUR)
    fleet.online("early", "late", seconds=60)

    sent = [fleet.submit("Fix the test, script:fix", "--drone", name) for name in ("early", "late")]
    held = fleet.submit("Hold, script:hold", "--drone", "early")
    orders = [fleet.ended(each["id"]) for each in sent]
    assert fleet.fleet("cancel", held["id"]).returncode == 0
    canceled = fleet.ended(held["id"])

    assert [(each["status"], each["attempt"], each["pushed"]) for each in orders] == [("succeeded", 1, True)] * 2
    assert [transcript_problems(each) for each in orders] == [[], []]
    assert [git(remote, "rev-parse", each["branch"]) for each in orders] == [each["head_commit"] for each in orders]
    assert (canceled["status"], canceled["receipt"]["survivors"]) == ("canceled", 0)
    assert [offset(fleet, each) for each in orders] == [1, -1]
    assert [near(each) for each in orders] == [[], []]
    assert [drone.process.poll() for drone in (early, late) if drone.process] == [None, None]


def wrong_clock(fleet: WholeFleet, name: str, directory: Path, ahead: timedelta) -> WorkstationDrone:
    """A drone on a machine whose clock is wrong, including during registration."""
    wrong = shifted_clock(directory / "clocks", int(ahead.total_seconds()))
    drone = fleet.workstation(name, code=wrong)
    drone.start()
    return drone


def offset(fleet: WholeFleet, order: dict[str, Any]) -> int:
    """The offset of the drone's times in hours; it must be the same in all steps of the order."""
    database = Database(sqlite_url_of(fleet.data / "fleet.db"))
    with database.read() as db:
        times = db.execute(select(Step.drone_at, Step.at).where(Step.order_id == order["id"])).all()
    database.dispose()
    found = {round((by_drone - received) / HOUR) for by_drone, received in times}
    assert len(found) == 1
    return found.pop()


def near(order: dict[str, Any]) -> list[str]:
    """Times of the order that are more than `NEAR` from now."""
    times = [order["started_at"], order["ended_at"], *(step["at"] for step in order["steps"])]
    times += [run[name] for run in order["runs"] for name in ("started_at", "ended_at")]
    return [each for each in times if abs(datetime.fromisoformat(each) - datetime.now(UTC)) > NEAR]
