"""What a new user meets first: `fleet up --demo`, which stays, can be removed, and takes over nothing of others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(200)


def test_the_demo_stays_runs_any_prompt_and_can_be_removed(start_fleet: Callable[..., WholeFleet]) -> None:
    fleet = start_fleet(options=("--no-flower", "--demo"))
    assert "fleet submit 'Fix slug.sh so that sh test.sh passes' --project demo --follow" in fleet.log.read_text()
    assert "not a real model" in fleet.log.read_text()
    first = fleet.fleet("submit", "Fix slug.sh so that sh test.sh passes", "--project", "demo", "--follow")
    assert first.returncode == 0, first.stderr
    assert "checks   passed" in first.stdout
    before = fleet.json("provider", "show", "demo")

    fleet.stop()
    fleet.start()
    assert fleet.json("provider", "show", "demo") == before
    again = fleet.ended(fleet.json("submit", "Anything else")["id"])
    assert (again["status"], again["pushed"]) == ("succeeded", True)

    fleet.stop()
    fleet.options = ("--no-flower",)
    begin = len(fleet.log.read_text())
    fleet.start()
    printed = fleet.log.read_text()[begin:]
    assert "fleet provider add main" in printed
    assert "fleet project rm demo --yes && fleet provider rm demo --yes" in printed
    assert fleet.fleet("project", "rm", "demo", "--yes").returncode == 0
    assert fleet.fleet("provider", "rm", "demo", "--yes").returncode == 0
    assert fleet.json("show", "@last")["status"] == "succeeded"


def test_a_demo_takes_over_neither_a_running_fleet_nor_what_somebody_else_named_so(
    start_fleet: Callable[..., WholeFleet],
) -> None:
    fleet = start_fleet(drones=0)
    fleet.add_work("http://127.0.0.1:9/v1", "https://example.org/x.git")
    second = fleet.fleet("up", "--port", "0", "--no-flower", "--demo")
    assert (second.returncode, "another `fleet up`" in second.stderr) == (4, True)
    fleet.stop()
    refused = fleet.fleet("up", "--port", "0", "--no-flower", "--drones", "0", "--demo")
    assert refused.returncode == 4
    assert "another project named demo already exists" in refused.stderr
    fleet.start()
    assert fleet.json("project", "show", "demo")["git_url"] == "https://example.org/x.git"
    assert [each["name"] for each in fleet.json("provider", "ls")] == ["scripted"]
