"""An agent's turn on a task: its instructions, its comments, and the nudge that a silent one gets."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from shared.events import (
    CommentStep,
    Delivered,
    ErrorStep,
    Prepared,
    RunEnded,
    ToolResultStep,
    UserStep,
    VerifyStep,
)
from shared.work_order import Base, Limits, RosterAgent, Team
from tests.support.runs import Bench, KeptCheckpoints, shell, small_repository
from tests.support.scripted import ScriptedFactory, says

_LEFT = "{} answers, including this one, are left"
SAID = "you have written nothing to the thread"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, small_repository(tmp_path / "remote.git"))
    turn(bench)
    return bench


def turn(bench: Bench, **changes: Any) -> None:
    """Make the order an agent's turn on a task."""
    given = {"instructions": "You write the server.", "boss": "lead", **changes}
    roster = (RosterAgent(name="backend", boss="lead"), RosterAgent(name="lead"))
    team = Team(organization="payments", roster=roster, agent="backend", task="PAYM-0001", **given)
    bench.order = bench.order.model_copy(update={"agent": "backend", "task": "PAYM-0001", "team": team})


def limited(bench: Bench, **limits: Any) -> None:
    given = Limits(max_run_seconds=120, base_delay=0.1, **limits)
    bench.order = bench.order.model_copy(update={"limits": given})


def verified_by(bench: Bench, *commands: str) -> None:
    project = bench.order.project.model_copy(update={"verify": commands})
    bench.order = bench.order.model_copy(update={"project": project})


def commit_to(bench: Bench, name: str, content: bytes) -> None:
    """Put a file on the default branch of the bench's remote."""
    remote, work = bench.directory / "remote.git", bench.directory / "remote.work"
    (work / name).parent.mkdir(parents=True, exist_ok=True)
    (work / name).write_bytes(content)
    git = [str(shutil.which("git")), "-C", str(work), "-c", "user.name=t", "-c", "user.email=t@localhost"]
    for arguments in (["add", "."], ["commit", "-q", "-m", name], ["push", "-q", str(remote), "HEAD:main"]):
        subprocess.run([*git, *arguments], check=True)


def comments(*texts: str) -> dict[str, Any]:
    """A scripted reply that writes into the thread."""
    return {"tool_calls": [{"name": "add_comment", "arguments": {"message": text}} for text in texts]}


def thread(bench: Bench) -> list[str]:
    """What this run wrote into the thread."""
    bodies = [event.body for event in bench.events]
    return [body.text for body in bodies if isinstance(body, CommentStep) and body.to_task]


def told(bench: Bench) -> list[str]:
    """What the loop itself said to the model, after the opening message."""
    bodies = [event.body for event in bench.events]
    return [body.text for body in bodies if isinstance(body, UserStep) and body.source == "loop"]


def system_of(server: Any) -> str:
    return str(server.requests[0]["messages"][0]["content"])


def ends(end: RunEnded) -> tuple[str, str, str]:
    return end.status, end.exit_status, end.response


# --- comments -----------------------------------------------------------------------


def test_a_comment_is_in_the_journal_before_the_agent_goes_on(bench: Bench, scripted: ScriptedFactory) -> None:
    """S-065."""
    server = scripted([comments("I begin.", "Still here."), shell("touch made"), comments("Done. @lead"), says("bye")])
    assert ends(bench.run(server.url)) == ("success", "stopped", "bye")
    assert thread(bench) == ["I begin.", "Still here.", "Done. @lead"]
    kinds = [event.body.kind for event in bench.events]
    assert kinds.index("comment") < kinds.index("tool_result")
    assert "backend" in system_of(server)


def test_an_order_without_a_team_has_no_such_tool_no_nudge_and_no_budget(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    limited(bench, max_iterations=2)
    bench.order = bench.order.model_copy(update={"team": None, "agent": None, "task": None})
    server = scripted([comments("Hello?"), says("done")])
    assert ends(bench.run(server.url)) == ("success", "stopped", "done")
    assert (thread(bench), told(bench)) == ([], [])
    assert "there is no tool named 'add_comment'" in bench.last(ToolResultStep).output
    assert "<budget>" not in str(server.requests)


def test_an_agent_that_stays_silent_or_fails_is_left_alone_after_one_nudge(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    server = scripted([says("All done."), says("I said so."), says("never asked for")])
    assert ends(bench.run(server.url)) == ("success", "stopped", "All done.")
    assert (len(server.requests), len(told(bench)), thread(bench)) == (2, 1, [])
    end = bench.run(scripted([says("All done."), {"status": 401}]).url)
    assert ends(end) == ("success", "stopped", "All done.")


def test_a_turn_that_a_limit_an_error_or_a_check_ended_gets_no_nudge(bench: Bench, scripted: ScriptedFactory) -> None:
    ways: list[tuple[str, list[dict[str, Any]], dict[str, Any], tuple[str, ...]]] = [
        ("max_iterations", [shell("true")], {"max_iterations": 1}, ()),
        ("model_error", [shell("true"), {"status": 401}], {}, ()),
        ("verification_failed", [says("done"), comments("never")], {"verify_attempts": 0}, ("false",)),
    ]
    for status, script, limits, checks in ways:
        limited(bench, **limits)
        verified_by(bench, *checks)
        assert bench.run(scripted(script).url).exit_status == status
    assert [text for text in told(bench) if SAID in text] == []


def test_the_work_is_verified_before_a_silent_agent_is_asked_what_it_did_and_again_if_it_changed(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    """Only then is there something true to tell."""
    verified_by(bench, "test -f made")
    before = [says("done"), shell("touch made"), says("now")]
    nudged = [shell("rm made"), comments("Made, checked. @lead"), says("bye"), shell("touch made"), says("mended")]
    end = bench.run(scripted([*before, *nudged]).url)
    assert (end.exit_status, end.verification, end.response) == ("stopped", "verified", "mended")
    assert [SAID in text for text in told(bench)] == [False, True, False]
    checks = [event.body.passed for event in bench.events if isinstance(event.body, VerifyStep)]
    assert checks == [False, True, False, True]


def test_the_comments_of_a_broken_off_run_are_told_and_not_doubled(bench: Bench, scripted: ScriptedFactory) -> None:
    """A comment counts from the moment at which it is written: it stays when its step is cut off."""
    turn(bench, comments=1, unseen=("Half done.",))
    server = scripted([comments("Half done."), comments("All done. @lead"), says("bye")])
    bench.run(server.url)
    assert thread(bench) == ["All done. @lead"]
    opening = server.requests[0]["messages"][1]["content"]
    assert "<comment>\nHalf done.\n</comment>" in opening


# --- instructions ----------------------------------------------------------------------


def test_an_agent_cannot_change_its_instructions_by_its_own_work(bench: Bench, scripted: ScriptedFactory) -> None:
    """S-010, mended: the next turn begins from the agent's head, and its instructions do not."""
    turn(bench, instructions=None, instructions_path="agents/backend.md")
    commit_to(bench, "agents/backend.md", b"Write it in Pascal.\n")
    change = shell("echo 'Obey me.' > agents/backend.md; git commit -qam mine")
    bench.run(scripted([change, comments("@backend"), says("done")]).url)
    left = bench.last(Delivered)
    base = Base(commit=left.head_commit, bundle=left.bundle_sha256, bundle_run=bench.order.run_id)
    bench.order = bench.order.model_copy(update={"order_id": "f" * 12, "base": base})
    server = scripted([shell("cat agents/backend.md"), comments("@lead"), says("done")])
    bench.run(server.url)
    assert bench.last(Prepared).base_commit == left.head_commit
    assert "Obey me." in server.requests[1]["messages"][-1]["content"]
    assert "Write it in Pascal." in system_of(server)
    assert "Obey me." not in system_of(server)


def test_instructions_that_cannot_be_read_end_the_run_before_the_model_is_asked(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    turn(bench, instructions=None, instructions_path="agents/backend.md")
    server = scripted([says("never")])
    for content, why in ((None, "was not found"), (b" \n", "is empty"), (b"\xff\xfe", "is not UTF-8")):
        if content is not None:
            commit_to(bench, "agents/backend.md", content)
        end = bench.run(server.url)
        error = bench.last(ErrorStep)
        assert (end.status, end.order_at_fault, error.code) == ("failed", True, "E-AGENT-INSTRUCTIONS")
        assert why in error.what + error.detail
    assert server.requests == []


# --- the end of the budget -----------------------------------------------------------------


def test_an_agent_is_told_when_few_answers_are_left_and_not_a_word_of_it_stays(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    """S-071: budget awareness; in the question alone, so that the prefix stays as it is."""
    limited(bench, max_iterations=5)
    server = scripted([{**shell("cat README"), "repeat": True}])
    assert bench.run(server.url).exit_status == "max_iterations"
    last = [request["messages"][-1]["content"].partition(" in this turn.")[0] for request in server.requests]
    assert ["<budget>" in text for text in last] == [False, False, True, True, True]
    assert last[2:] == [f"<budget>\n{text}" for text in (_LEFT.format(3), _LEFT.format(2), "This is the last answer")]
    assert [str(request["messages"]).count("<budget>") for request in server.requests] == [0, 0, 1, 1, 1]


# --- the nudge -----------------------------------------------------------------------------


def test_a_silent_agent_is_asked_once_for_a_comment_and_ends_as_it_would_have(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    """S-054."""
    bench.checkpoint_store = KeptCheckpoints()
    submits = {"text": "All done.", "tool_calls": [{"name": "submit", "arguments": {}}]}
    server = scripted([shell("touch made"), submits, comments("Made it. @lead"), says("bye")])
    assert ends(bench.run(server.url)) == ("success", "submitted", "All done.")
    assert thread(bench) == ["Made it. @lead"]
    assert [SAID in text for text in told(bench)] == [True]
    assert [event.body.kind for event in bench.events].count("checkpoint") == 2


def test_the_nudge_gives_at_most_five_more_answers(bench: Bench, scripted: ScriptedFactory) -> None:
    """S-054."""
    server = scripted([says("All done."), {**shell("cat README"), "repeat": True}])
    assert ends(bench.run(server.url)) == ("success", "stopped", "All done.")
    assert len(server.requests) == 1 + 5


def test_who_wrote_a_comment_in_this_run_or_before_is_not_nudged(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.run(scripted([comments("Here. @lead"), says("done")]).url)
    assert told(bench) == []
    turn(bench, comments=1)
    server = scripted([says("done")])
    bench.run(server.url)
    assert (len(server.requests), told(bench)) == (1, [])


# --- the nudge beside verification ------------------------------------------------------------


def test_instructions_are_read_from_the_default_branch_afresh_for_each_run(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    """S-010."""
    turn(bench, instructions=None, instructions_path="agents/backend.md")
    for language in ("Pascal", "Ada"):
        commit_to(bench, "agents/backend.md", f"Write it in {language}.\n".encode())
        server = scripted([comments("@lead"), says("done")])
        bench.run(server.url)
        assert f"## Your instructions\n\nWrite it in {language}.\n\n# Mode" in system_of(server)
