"""What a person sees who adds a provider or a project: whether it works, and if not, why and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support.checks import CALLS_PING
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(200)


def test_what_is_added_is_tried_by_a_drone_and_what_does_not_work_is_named_with_its_correction(
    shared_fleet: WholeFleet, tmp_path: Path
) -> None:
    fleet, remote = shared_fleet, calc_project(tmp_path / "calc.git").as_uri()
    fleet.online("local-1")
    before = fleet.json("orders")
    with ScriptedServer([{**CALLS_PING, "repeat": True}], api_key="sk-right") as model:
        where = ("--model", "openai/scripted", "--api-base", model.url, "--api-key-stdin")
        wrong = fleet.fleet("provider", "add", "locked", *where, text="sk-wrong")
        edited = fleet.fleet("provider", "edit", "locked", "--api-key-stdin", text="sk-right")
        tested = fleet.fleet("provider", "test", "locked")
    good = fleet.fleet("project", "add", "good", "--git-url", remote, "--verify", "test -f calc.py")
    edit = ("project", "edit", "good", "--verify", "echo it is broken; exit 7")
    broken = (fleet.fleet(*edit), fleet.fleet("project", "test", "good"))

    assert (wrong.returncode, "rejected the API key (401)." in wrong.stdout) == (1, True)
    assert "sk-wrong" not in wrong.stdout + wrong.stderr
    assert "check           ok: It answered in " in edited.stdout
    verdict, *table = tested.stdout.splitlines()
    assert (tested.returncode, verdict[:33]) == (0, "✓ provider locked works: It answe")
    assert [line.split("  ")[1] for line in table] == [
        *("drone", "first token", "in all", "price", "tool calls", "streaming", "window")
    ]
    assert "checking on local-1" in tested.stderr
    assert "check          ok: The repository can be fetched, and its command passed." in good.stdout
    assert [done.returncode for done in broken] == [1, 1]
    assert "`echo it is broken; exit 7` failed with exit code 7." in broken[1].stdout
    assert "it is broken\n" in broken[1].stdout
    assert fleet.json("orders") == before, "checks are no orders of people"
