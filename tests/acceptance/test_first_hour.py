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

    under_way = fleet.json("submit", "Anything else")["id"]
    assert fleet.stop() == 0
    fleet.start()
    again = fleet.ended(under_way)
    assert (again["status"], again["pushed"]) == ("succeeded", True)

    second = fleet.fleet("up", "--port", "0", "--no-flower", "--demo")
    assert (second.returncode, "another `fleet up`" in second.stderr) == (4, True)
    fleet.stop()
    fleet.options = ("--no-flower",)
    begin = len(fleet.log.read_text())
    fleet.start()
    assert "fleet project rm demo --yes && fleet provider rm demo --yes" in fleet.log.read_text()[begin:]
    assert fleet.fleet("project", "rm", "demo", "--yes").returncode == 0
    assert fleet.fleet("provider", "rm", "demo", "--yes").returncode == 0
    assert fleet.json("show", "@last")["status"] == "succeeded"

    fleet.json("project", "add", "demo", "--git-url", "https://example.org/x.git", "--no-check")
    fleet.stop()
    refused = fleet.fleet("up", "--port", "0", "--no-flower", "--drones", "0", "--demo")
    assert (refused.returncode, "another project named demo already exists" in refused.stderr) == (4, True)
