"""Graphs of orders on a whole fleet: each builds on what those before it left, and conflicts go to the agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import SCRIPTS, shell
from tests.support import wait_until
from tests.support.repositories import calc_project, git
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)
RESOLVE = shell("grep -c '^<<<<<<<' text.txt; cat text.txt; printf 'left\nright\n' > text.txt")
OWN = {
    **SCRIPTS,
    "left": [shell("echo left > text.txt"), {"text": "Left."}],
    "right": [shell("echo right > text.txt"), {"text": "Right."}],
    "resolve": [RESOLVE, {"text": "Resolved."}],
    # It says that it is done while the conflict is still there, and is told so.
    "upper": [shell("echo upper > text.txt"), {"text": "Upper."}],
    # What a prompt plays that names none.
    "default": [RESOLVE, {"text": "Resolved."}],
    "other": [shell("echo other > other.txt"), {"text": "Other."}],
    "hasty": [{"text": "Done."}, RESOLVE, {"text": "Resolved now."}],
}
Doc = dict[str, Any]


@pytest.fixture
def fleet(start_fleet: Callable[..., WholeFleet], tmp_path: Path) -> Any:
    with ScriptedServer(OWN) as model:
        started = start_fleet(drones=2)
        started.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
        started.online("local-1", "local-2")
        yield started


def order(name: str, script: str, *after: str) -> Doc:
    return {"name": name, "prompt": f"Do {name}, script:{script}", "after": list(after)}


def test_a_graph_with_a_conflict_and_a_failure_goes_as_far_as_it_can(fleet: WholeFleet, tmp_path: Path) -> None:
    file = tmp_path / "graph.yaml"
    orders = [
        order("both", "hasty", "left", "right"),
        order("left", "left"),
        order("right", "right"),
        order("more", "note", "both"),
        order("broken", "refused", "left"),
        order("never", "note", "broken", "more"),
    ]
    file.write_text(json.dumps({"name": "six", "project": "demo", "orders": orders}))
    done = fleet.fleet("graph", "run", str(file), "--follow")
    assert done.returncode == 1, done.stderr

    graph = fleet.json("graph", "show", fleet.json("graph", "ls")[0]["id"])
    found = {each["key"]: fleet.order(each["id"]) for each in graph["orders"]}
    assert (graph["status"], graph["succeeded"], graph["failed"]) == ("blocked", 4, 1)
    assert found["never"]["status"] == "queued"
    assert f"waiting for order {found['broken']['id']} to succeed, but it failed" in found["never"]["reason"]

    both, texts = found["both"], [step.get("text", "") for step in found["both"]["steps"]]
    assert "the agent resolves the conflicts in text.txt." in " ".join(texts)
    assert [step["passed"] for step in both["steps"] if step["kind"] == "verify"] == [False, True]
    assert both["verification"] == "nothing_to_verify"
    remote = tmp_path / "calc.git"
    assert git(remote, "show", f"{both['branch']}:text.txt") == "left\nright"
    for name in ("left", "right"):
        assert git(remote, "merge-base", both["branch"], found[name]["branch"]) == found[name]["head_commit"]
    more = found["more"]
    assert more["base_commit"] == both["head_commit"]
    assert git(remote, "show", f"{more['branch']}:text.txt") == "left\nright"
    assert "text.txt" not in more["patch"]

    canceled = fleet.json("graph", "cancel", graph["id"])
    assert (canceled["status"], canceled["failed"]) == ("failed", 2)


def test_an_order_starts_by_itself_when_the_other_has_succeeded(fleet: WholeFleet, tmp_path: Path) -> None:
    first = fleet.submit("First, script:left")
    second = fleet.submit("Second, script:note", "--after", "@last")
    assert second["after"] == [first["id"]]
    ended = fleet.ended(second["id"])
    assert ended["status"] == "succeeded"
    assert ended["base_commit"] == fleet.order(first["id"])["head_commit"]
    assert git(tmp_path / "calc.git", "show", f"{ended['branch']}:text.txt") == "left"


def test_a_branch_follows_the_one_below_it_and_its_agent_is_asked_only_about_conflicts(
    fleet: WholeFleet, tmp_path: Path
) -> None:
    remote = tmp_path / "calc.git"
    lower = fleet.ended(fleet.submit("Lower, script:note")["id"])
    upper = fleet.ended(fleet.submit("Upper, script:upper", "--after", lower["id"])["id"])

    def follows(script: str) -> Doc:
        """What brings the upper session up to date with another turn of the lower one."""
        before = fleet.json("session", "show", upper["session"])["turns"]
        fleet.ended(fleet.submit(f"More, script:{script}", "--session", lower["session"])["id"])
        wait_until(lambda: fleet.json("session", "show", upper["session"])["turns"] > before, seconds=60)
        session = fleet.json("session", "show", upper["session"])
        turns = [*(each["turn"] for each in session["entries"] if each["turn"]), *session["unfinished"]]
        return fleet.ended(turns[-1]["order"])

    clean = follows("other")
    assert (clean["status"], clean["merge_only"], clean["stats"]["input_tokens"]) == ("succeeded", True, 0)
    assert clean["reason"] == "The work is up to date without conflicts; the model was not asked."
    assert git(remote, "show", f"{clean['branch']}:text.txt") == "upper"
    assert git(remote, "show", f"{clean['branch']}:other.txt") == "other"
    assert git(remote, "merge-base", upper["head_commit"], clean["branch"]) == upper["head_commit"]

    conflict = follows("left")
    assert (conflict["status"], conflict["merge_only"]) == ("succeeded", True)
    assert conflict["response"] == "Resolved."
    assert git(remote, "show", f"{conflict['branch']}:text.txt") == "left\nright"
