"""Users take part in an agent's work: with a review, and with commits of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drone.model.scripted.script import Book
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import FIX, SCRIPTS, Reply, calls
from tests.support import wait_until
from tests.support.repositories import calc_project, commit_files, git
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)

Doc = dict[str, Any]


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedServer]:
    """A scripted model (a stand-in) that only this module uses."""
    with ScriptedServer({"fix": FIX, "note": SCRIPTS["note"]}) as server:
        yield server


def play(scripted: ScriptedServer, *replies: Reply) -> None:
    """Let the model answer the next review like this: the ids of the comments are known only now."""
    scripted.book = Book.of({"fix": FIX, "note": SCRIPTS["note"], "default": list(replies)})


def test_comments_are_sent_answered_and_replied_to(
    shared_fleet: WholeFleet, scripted: ScriptedServer, tmp_path: Path
) -> None:
    fleet, remote = shared_fleet, calc_project(tmp_path / "calc.git")
    fleet.add_work(scripted.url, f"file://{remote}", slug="reviewed", provider="reviewed")
    first = fleet.ended(fleet.submit("Mend it, script:fix", project="reviewed")["id"])
    review = ("review", "add", first["id"])
    one = fleet.json(*review, "Use sum()", "--file", "calc.py", "--line", "5")
    two = fleet.json(*review, "Add a test", "--file", "calc.py")
    three = fleet.json(*review, "Why was it wrong?", "--file", "calc.py", "--line", "5", "--side", "old")
    play(
        scripted,
        calls(("shell", {"command": "sed -i 's/a + b/sum((a, b))/' calc.py"})),
        calls(
            ("answer_review", {"comment": one["id"][:6], "verdict": "done", "text": "sum() it is."}),
            ("answer_review", {"comment": three["id"][:6], "verdict": "asks", "text": "Do you mean the sign?"}),
        ),
        {"text": "One is left."},
    )
    second = fleet.ended(fleet.json("review", "send", first["id"], "--text", "Nearly there")["id"])
    listed = {each["id"]: each for each in fleet.json("review", "ls", first["id"])}
    shown = fleet.fleet("show", second["id"]).stdout

    assert (second["session"], second["base_commit"]) == (first["session"], first["head_commit"])
    assert [listed[each["id"]]["status"] for each in (one, two, three)] == ["done", "sent", "asks"]
    assert listed[one["id"]]["done_commit"] == second["head_commit"] == git(remote, "rev-parse", second["branch"])
    assert "1 comment without an answer" in shown
    assert f"comment {one['id'][:6]} done: sum() it is" in shown

    assert fleet.json(*review, "Yes, the sign", "--parent", three["id"])["status"] == "pending"


def test_commits_that_a_user_pushed_are_part_of_the_next_turn_and_a_rewritten_branch_waits_for_a_decision(
    shared_fleet: WholeFleet, scripted: ScriptedServer, tmp_path: Path
) -> None:
    fleet, remote, mine = shared_fleet, calc_project(tmp_path / "calc.git"), tmp_path / "mine"
    fleet.add_work(scripted.url, f"file://{remote}", slug="taken", provider="taken")
    git(tmp_path, "clone", "-q", str(remote), "mine")

    first = fleet.ended(fleet.submit("Begin, script:note", project="taken")["id"])
    checked_out = fleet.fleet("session", "checkout", first["session"], "--directory", str(mine))
    assert f"git push origin HEAD:{first['branch']}" in checked_out.stderr
    own = commit_files(mine, {"own.txt": "own\n"}, "Do the hard part")
    git(mine, "push", "-q", "origin", f"HEAD:{first['branch']}")
    goes_on = ("--session", first["session"])
    second = fleet.ended(fleet.submit("Now the rest, script:note", *goes_on, project="taken")["id"])
    assert (second["pushed"], second["base_commit"]) == (True, own)
    assert git(remote, "show", f"{second['branch']}:own.txt") == "own"
    assert git(remote, "show", f"{second['branch']}:notes.txt") == "noted\nnoted"
    assert any("Do the hard part" in str(step.get("text")) for step in second["steps"] if step["kind"] == "comment")

    git(mine, "checkout", "-q", "origin/main")
    rewritten = commit_files(mine, {"other.txt": "mine\n"}, "Do it my way")
    git(mine, "push", "-q", "--force", "origin", f"HEAD:{second['branch']}")
    third = fleet.submit("Go on, script:note", *goes_on, project="taken")["id"]
    waiting = wait_until(lambda: (o := fleet.order(third))["status"] == "awaiting_approval" and o, seconds=60)
    fleet.json("deny", third)
    failed = fleet.ended(third)
    fleet.json("retry", third)
    wait_until(lambda: fleet.order(third)["status"] == "awaiting_approval", seconds=60)
    fleet.json("approve", third)
    done = fleet.ended(third)
    assert waiting["waiting_for"]["kind"] == "branch"
    assert (failed["status"], "have diverged" in failed["reason"]) == ("failed", True)
    assert (done["status"], done["base_commit"]) == ("succeeded", rewritten)
    # Neither side is lost.
    assert git(remote, "show", f"{done['branch']}:other.txt") == "mine"
    assert fleet.fleet("patch", second["id"]).stdout.count("+noted") == 1
