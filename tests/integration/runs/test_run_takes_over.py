"""The next turn of a session after users changed the branch of its last work: what the agent and users are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.control import Decide
from shared.events import ApprovalStep, CommentStep, DecisionStep, Delivered, ErrorStep, Prepared
from shared.work_order import Base
from tests.support.repositories import commit_files, git
from tests.support.runs import Bench, shell, small_repository
from tests.support.scripted import ScriptedFactory, says

BRANCH = "fleet/aaaaaaaaaaaa"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A run that continues from `BRANCH`; its last commit is that of the last turn."""
    bench = Bench(tmp_path, small_repository(tmp_path / "remote.git"))
    git(tmp_path, "clone", "-q", str(tmp_path / "remote.git"), "mine")
    git(tmp_path / "mine", "checkout", "-q", "-b", BRANCH)
    left_at = commit_files(tmp_path / "mine", {"done.txt": "done\n"}, "The last turn")
    git(tmp_path / "mine", "push", "-q", "origin", BRANCH)
    git(tmp_path / "mine", "bundle", "create", "-q", str(tmp_path / "bundle"), BRANCH, "^origin/main")
    stored = bench.put((tmp_path / "bundle").read_bytes())
    base = Base(commit=left_at, branch=BRANCH, bundle=stored, bundle_run="run1")
    bench.order = bench.order.model_copy(update={"base": base})
    return bench


def commit(bench: Bench, message: str, *options: str) -> str:
    made = commit_files(bench.directory / "mine", {f"{message}.txt": "x"}, message)
    git(bench.directory / "mine", "push", "-q", *options, "origin", BRANCH)
    return made


def rewrite(bench: Bench) -> str:
    git(bench.directory / "mine", "reset", "-q", "--hard", "origin/main")
    return commit(bench, "mine", "--force")


def decided(bench: Bench, *, approved: bool) -> None:
    def decide(text: str) -> None:
        if text == "waiting for approval of branch":
            answer = Decide(run_id=bench.order.run_id, call_id="branch", approved=approved, comment="look first")
            bench.controls.receive(answer)

    bench.on_doing = decide


def test_the_agent_and_users_are_told_of_the_commits_on_top(bench: Bench, scripted: ScriptedFactory) -> None:
    commit(bench, "one")
    tip = commit(bench, "two")
    server = scripted([shell("echo more > more.txt"), says("done")])
    assert bench.run(server.url).status == "success"
    opening = server.requests[0]["messages"][1]["content"]
    assert f"the user committed 2 commits to the branch {BRANCH}" in opening
    assert "\n- two\n- one" in opening
    assert f"2 commits that users pushed to {BRANCH}: two; one." in bench.last(CommentStep).text
    assert (bench.last(Prepared).base_commit, bench.last(Delivered).base_commit) == (tip, tip)


def test_a_rewritten_branch_is_asked_about_before_the_model_and_then_continued(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    theirs = rewrite(bench)
    decided(bench, approved=True)
    server = scripted([says("done")])
    assert bench.run(server.url).status == "success"
    assert (bench.last(ApprovalStep).about, bench.last(DecisionStep).approved) == ("branch", True)
    assert "no longer has 1 commit of the last turn" in bench.last(ApprovalStep).why
    assert bench.last(Prepared).base_commit == theirs
    assert "the user rewrote the branch" in server.requests[0]["messages"][1]["content"]


def test_a_denied_branch_fails_the_order_with_the_way_to_each_side(bench: Bench, scripted: ScriptedFactory) -> None:
    rewrite(bench)
    decided(bench, approved=False)
    server = scripted([says("never")])
    end = bench.run(server.url)
    error = bench.last(ErrorStep)
    assert (end.status, end.order_at_fault, error.code) == ("failed", True, "E-BRANCH-DIVERGED")
    assert "continuing from it was denied: look first" in end.reason
    assert str(bench.order.base.commit) in error.next
    assert server.requests == []
