"""A graph of orders on a whole fleet: each builds on what those before it left, and conflicts go to the agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import SCRIPTS, shell
from tests.support.repositories import calc_project, git
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)
RESOLVE = shell("grep -c '^<<<<<<<' text.txt; cat text.txt; printf 'left\nright\n' > text.txt")
OWN = {
    **SCRIPTS,
    "left": [shell("echo left > text.txt"), {"text": "Left."}],
    "right": [shell("echo right > text.txt"), {"text": "Right."}],
    # It says that it is done while the conflict is still there, and is told so.
    "hasty": [{"text": "Done."}, RESOLVE, {"text": "Resolved now."}],
}
Doc = dict[str, Any]


def order(name: str, script: str, *after: str) -> Doc:
    return {"name": name, "prompt": f"Do {name}, script:{script}", "after": list(after)}


def test_a_graph_with_a_conflict_and_a_failure_goes_as_far_as_it_can(shared_fleet: WholeFleet, tmp_path: Path) -> None:
    fleet, remote, file = shared_fleet, calc_project(tmp_path / "calc.git"), tmp_path / "graph.yaml"
    orders = [
        order("both", "hasty", "left", "right"),
        order("left", "left"),
        order("right", "right"),
        order("more", "note", "both"),
        order("broken", "refused", "left"),
        order("never", "note", "broken", "more"),
    ]
    file.write_text(json.dumps({"name": "six", "project": "graphed", "orders": orders}))
    with ScriptedServer(OWN) as model:
        fleet.add_work(model.url, remote.as_uri(), slug="graphed", provider="graphed")
        done = fleet.fleet("graph", "run", str(file), "--follow")
        graph = fleet.json("graph", "show", fleet.json("graph", "ls")[0]["id"])
        found = {each["key"]: fleet.order(each["id"]) for each in graph["orders"]}
        canceled = fleet.json("graph", "cancel", graph["id"])

    assert done.returncode == 1, done.stderr
    assert (graph["status"], graph["succeeded"], graph["failed"]) == ("blocked", 4, 1)
    assert found["never"]["status"] == "queued"
    assert f"waiting for order {found['broken']['id']} to succeed, but it failed" in found["never"]["reason"]
    assert (canceled["status"], canceled["failed"]) == ("failed", 2)

    both = found["both"]
    assert [step["passed"] for step in both["steps"] if step["kind"] == "verify"] == [False, True]
    assert git(remote, "show", f"{both['branch']}:text.txt") == "left\nright"
    for name in ("left", "right"):
        assert git(remote, "merge-base", both["branch"], found[name]["branch"]) == found[name]["head_commit"]
    more = found["more"]
    assert more["base_commit"] == both["head_commit"]
    assert git(remote, "show", f"{more['branch']}:text.txt") == "left\nright"
    assert "text.txt" not in more["patch"]
