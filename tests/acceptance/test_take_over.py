"""Users take over: their own commits on an order's branch, as the next turn of the session meets them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import Reply, shell
from tests.support import wait_until
from tests.support.repositories import calc_project, commit_files, git
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)

Doc = dict[str, Any]
NOTE: list[Reply] = [shell("echo noted >> notes.txt"), {"text": "Noted."}]


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer({"default": NOTE}) as server:
        yield server


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return calc_project(tmp_path_factory.mktemp("take over") / "calc.git")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer, remote: Path) -> Iterator[WholeFleet]:
    whole = WholeFleet(tmp_path_factory.mktemp("take over") / "fleet")
    try:
        whole.start()
        whole.add_work(model.url, f"file://{remote}")
        yield whole
    finally:
        whole.close()


@pytest.fixture
def mine(remote: Path, tmp_path: Path) -> Path:
    """A user's clone."""
    git(tmp_path, "clone", "-q", str(remote), "mine")
    return tmp_path / "mine"


def turn(fleet: WholeFleet, prompt: str, *options: str) -> Doc:
    return fleet.ended(fleet.submit(prompt, *options)["id"])


def asked(model: ScriptedServer, prompt: str) -> str:
    """The message that opened the turn with this prompt."""
    messages = [message for request in model.requests for message in request["messages"]]
    return next(text for each in reversed(messages) if prompt in (text := str(each.get("content"))))


def test_commits_that_a_user_pushed_from_a_checkout_are_part_of_the_next_turn(
    fleet: WholeFleet, model: ScriptedServer, remote: Path, mine: Path
) -> None:
    first = turn(fleet, "Begin")
    checked_out = fleet.fleet("session", "checkout", first["session"], "--directory", str(mine))
    own = commit_files(mine, {"own.txt": "own\n"}, "Do the hard part")
    git(mine, "push", "-q", "origin", f"HEAD:{first['branch']}")
    second = turn(fleet, "Now the rest", "--session", first["session"])

    assert f"git push origin HEAD:{first['branch']}" in checked_out.stderr
    assert (first["pushed"], second["pushed"], second["base_commit"]) == (True, True, own)
    assert git(remote, "show", f"{second['branch']}:own.txt") == "own"
    assert git(remote, "show", f"{second['branch']}:notes.txt") == "noted\nnoted"
    assert f"the user committed 1 commit to the branch {first['branch']}" in asked(model, "Now the rest")
    assert any("Do the hard part" in str(step.get("text")) for step in second["steps"] if step["kind"] == "comment")


def test_a_rewritten_branch_waits_for_a_decision_and_neither_side_is_lost(
    fleet: WholeFleet, remote: Path, mine: Path
) -> None:
    first = turn(fleet, "Begin")
    own = commit_files(mine, {"own.txt": "own\n"}, "Do it my way")
    git(mine, "push", "-q", "--force", "origin", f"HEAD:{first['branch']}")
    second = fleet.submit("Go on", "--session", first["session"])["id"]
    waiting = wait_until(lambda: (o := fleet.order(second))["status"] == "awaiting_approval" and o, seconds=60)
    denied = fleet.fleet("deny", second)
    failed = fleet.ended(second)
    fleet.fleet("retry", second)
    wait_until(lambda: fleet.order(second)["status"] == "awaiting_approval", seconds=60)
    fleet.fleet("approve", second)
    done = fleet.ended(second)

    assert (waiting["waiting_for"]["kind"], denied.returncode) == ("branch", 0)
    assert f"fleet approve {second}" in waiting["reason"]
    assert (failed["status"], "have diverged" in failed["reason"]) == ("failed", True)
    assert (done["status"], done["base_commit"]) == ("succeeded", own)
    assert git(remote, "rev-parse", first["branch"]) == own
    assert fleet.fleet("patch", first["id"]).stdout.count("+noted") == 1
