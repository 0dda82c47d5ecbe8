"""The agent inside a run, with real tools, endpoint and journal: children, questions, interruptions, takeovers."""

from __future__ import annotations

import json
import threading

import pytest

from shared.control import Decide
from shared.events import (
    ApprovalStep,
    ChildStep,
    DecisionStep,
    Delivered,
    Prepared,
    ToolResultStep,
    UserStep,
)
from shared.outcome import ExitStatus
from shared.work_order import Base
from tests.support.local_runs import call
from tests.support.repositories import commit_files, git
from tests.support.runs import Bench, said, shell
from tests.support.scripted import ScriptedFactory, says
from tests.support.transcripts import problems

pytestmark = pytest.mark.usefixtures("warm_model")
BRANCH = "fleet/aaaaaaaaaaaa"


def test_a_child_looks_around_with_the_parents_prefix_and_without_its_tools(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    looks = call("file_read", mode="view", path="README")
    child = [looks, call("shell", command="touch made-by-the-child"), says("It says hello.")]
    asks = call("spawn", task="What does the README say? script:child", tools=["file_read"])
    server = scripted({"main": [asks, says("The child says that it says hello.")], "child": child})
    bench.change(prompt="Look. script:main")
    end = bench.run(server.url)
    assert (end.exit_status, end.stats.tool_calls) == (ExitStatus.STOPPED, 3)
    assert bench.of(ToolResultStep)[0].output == "It says hello."
    kinds = [step.step["kind"] for step in bench.of(ChildStep)]
    assert kinds == ["user", *["assistant", "tool_call", "tool_result"] * 2, "assistant"]
    assert bench.last(Delivered).branch is None
    parent, first = server.requests[0], server.requests[1]
    assert (first["messages"][0], first["tools"]) == (parent["messages"][0], parent["tools"])


def test_an_interruption_breaks_off_a_command_and_an_answer_and_is_heard(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    # Each comes a moment after the run says that it does this.
    words = {"shell: echo begun": "Not that one.", "waiting for the model": "Shorter, please. script:short"}

    def tell(doing: str) -> None:
        begun = next(iter(words), None)
        if begun and doing.startswith(begun):
            word = said(words.pop(begun), interrupt=True)
            threading.Timer(0.3, bench.controls.receive, (word,)).start()

    bench.on_doing = tell
    long = says("A long story", delay_s=60)
    server = scripted({"main": [shell("echo begun; sleep 60"), long], "short": [says("Short.")]})
    bench.change(prompt="Tell me. script:main")
    assert bench.run(server.url).response == "Short."
    (result,) = bench.of(ToolResultStep)
    assert (result.is_error, result.output[:6]) == (True, "begun\n")
    heard = ["Not that one.", "Shorter, please. script:short"]
    assert [(step.text, step.source) for step in bench.of(UserStep)[1:]] == [(text, "steer") for text in heard]
    for request, text in zip(server.requests[1:], heard, strict=True):
        assert request["messages"][-1] == {"role": "user", "content": text}
        assert problems(request["messages"]) == []


def test_a_word_that_comes_while_a_server_starts_waits_for_the_loop(bench: Bench, scripted: ScriptedFactory) -> None:
    server = {"command": "sleep", "args": ["5"], "start_timeout": 1}
    (bench.directory / "home").mkdir()
    (bench.directory / "home/mcp.json").write_text(json.dumps({"mcpServers": {"slow": server}}))
    bench.controls.receive(said("Hear me.", interrupt=True))
    end = bench.run(scripted([says("heard")]).url)
    assert (end.status, end.response) == ("success", "heard")
    assert [step.text for step in bench.of(UserStep)][1:] == ["Hear me."]


def decides(bench: Bench, call_id: str) -> None:
    """Let a user approve what waits."""
    bench.controls.receive(Decide(run_id=bench.order.run_id, call_id=call_id, approved=True, comment="fine"))


def test_a_risky_command_waits_and_runs_when_it_is_approved_or_allowed(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.change(approve="risky", allow=("rm *.log",))
    bench.on_doing = lambda text: (
        decides(bench, bench.last(ApprovalStep).call_id) if text.startswith("waiting for approval") else None
    )
    too_long = f"rm README; : {'x ' * 12_500}"
    bench.run(scripted([shell("rm -f a.log"), shell(too_long), shell("rm README"), says("done")]).url)
    asked = [(step.command, step.why) for step in bench.of(ApprovalStep)]
    assert asked == [("rm README", "Deletes files: rm README")]
    decided = [(step.approved, step.by, step.comment) for step in bench.of(DecisionStep)]
    assert decided == [(True, "person", "fine")]
    # A command that is too long to be shown whole is not run.
    assert [step.execution for step in bench.of(ToolResultStep)] == ["answered", "held_back", "answered"]


def test_a_rewritten_branch_is_asked_about_before_the_model_and_then_continued(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    """Users changed the branch of the last turn, from which this one continues."""
    place, mine = bench.directory, bench.directory / "mine"
    git(place, "clone", "-q", str(place / "remote.git"), "mine")
    git(mine, "checkout", "-q", "-b", BRANCH)
    left_at = commit_files(mine, {"done.txt": "done\n"}, "The last turn")
    git(mine, "bundle", "create", "-q", str(place / "bundle"), BRANCH, "^origin/main")
    git(mine, "reset", "-q", "--hard", "origin/main")
    theirs = commit_files(mine, {"mine.txt": "x"}, "Mine")
    git(mine, "push", "-q", "origin", BRANCH)
    stored = bench.put((place / "bundle").read_bytes())
    bench.change(base=Base(commit=left_at, branch=BRANCH, bundle=stored, bundle_run="run1"))
    bench.on_doing = lambda text: decides(bench, "branch") if text == "waiting for approval of branch" else None
    server = scripted([says("done")])
    assert bench.run(server.url).status == "success"
    assert (bench.last(ApprovalStep).about, bench.last(DecisionStep).approved) == ("branch", True)
    assert "no longer has 1 commit of the last turn" in bench.last(ApprovalStep).why
    assert bench.last(Prepared).base_commit == theirs
    assert "the user rewrote the branch" in server.requests[0]["messages"][1]["content"]
