"""An agent's turn on a task: its instructions, its comments, and the nudge that a silent one gets."""

from __future__ import annotations

from typing import Any

import pytest

from shared.events import CommentStep, Delivered, ErrorStep, Prepared, RunEnded, UserStep, VerifyStep
from shared.work_order import Base, Limits, RosterAgent, Team
from tests.support.repositories import push_commit
from tests.support.runs import Bench, KeptCheckpoints, shell
from tests.support.scripted import ScriptedFactory, says

pytestmark = pytest.mark.usefixtures("warm_model")
SAID = "you have written nothing to the thread"
INSTRUCTIONS = "agents/backend.md"


@pytest.fixture
def bench(bench: Bench) -> Bench:
    turn(bench)
    return bench


def turn(bench: Bench, **changes: Any) -> None:
    """Make the order an agent's turn on a task."""
    given = {"instructions": "You write the server.", "boss": "lead", **changes}
    roster = (RosterAgent(name="backend", boss="lead"), RosterAgent(name="lead"))
    team = Team(organization="payments", roster=roster, agent="backend", task="PAYM-0001", **given)
    bench.change(agent="backend", task="PAYM-0001", team=team)


def comments(*texts: str) -> dict[str, Any]:
    """A scripted reply that writes into the thread."""
    return {"tool_calls": [{"name": "add_comment", "arguments": {"message": text}} for text in texts]}


def thread(bench: Bench) -> list[str]:
    """What this run wrote into the thread."""
    return [step.text for step in bench.of(CommentStep) if step.to_task]


def told(bench: Bench) -> list[str]:
    """What the loop itself said to the model, after the opening message."""
    return [step.text for step in bench.of(UserStep) if step.source == "loop"]


def system_of(server: Any) -> str:
    return str(server.requests[0]["messages"][0]["content"])


def ends(end: RunEnded) -> tuple[str, str, str]:
    return end.status, end.exit_status, end.response


# --- comments and the nudge ----------------------------------------------------------------------


def test_a_comment_is_in_the_journal_before_the_agent_goes_on(bench: Bench, scripted: ScriptedFactory) -> None:
    """S-065."""
    server = scripted([comments("I begin.", "Still here."), shell("touch made"), comments("Done. @lead"), says("bye")])
    assert ends(bench.run(server.url)) == ("success", "stopped", "bye")
    assert (thread(bench), told(bench)) == (["I begin.", "Still here.", "Done. @lead"], [])
    kinds = [event.body.kind for event in bench.events]
    assert kinds.index("comment") < kinds.index("tool_result")
    assert "backend" in system_of(server)


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
    """S-054; and there is no second one, whether the agent stays silent or its model fails."""
    ways = [([says("I said so."), says("never")], 2), ([{"status": 401}], 2), ([{**shell("true"), "repeat": True}], 6)]
    for nudged, asked in ways:
        server = scripted([says("All done."), *nudged])
        assert ends(bench.run(server.url)) == ("success", "stopped", "All done.")
        assert len(server.requests) == asked


def test_a_turn_that_a_limit_an_error_or_a_check_ended_gets_no_nudge(bench: Bench, scripted: ScriptedFactory) -> None:
    ways: list[tuple[str, list[dict[str, Any]], dict[str, Any], tuple[str, ...]]] = [
        ("max_iterations", [shell("true")], {"max_iterations": 1}, ()),
        ("model_error", [shell("true"), {"status": 401}], {}, ()),
        ("verification_failed", [says("done"), comments("never")], {"verify_attempts": 0}, ("false",)),
    ]
    for status, script, limits, checks in ways:
        bench.change(limits=Limits(base_delay=0.1, **limits))
        bench.change_project(verify=checks)
        assert bench.run(scripted(script).url).exit_status == status
    assert [text for text in told(bench) if SAID in text] == []


def test_the_work_is_verified_before_a_silent_agent_is_asked_and_again_if_it_changed(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    """Only then is there something true to tell."""
    bench.change_project(verify=("test -f made",))
    before = [says("done"), shell("touch made"), says("now")]
    nudged = [shell("rm made"), comments("Made, checked. @lead"), says("bye"), shell("touch made"), says("mended")]
    end = bench.run(scripted([*before, *nudged]).url)
    assert (end.exit_status, end.verification, end.response) == ("stopped", "verified", "mended")
    assert [SAID in text for text in told(bench)] == [False, True, False]
    assert [step.passed for step in bench.of(VerifyStep)] == [False, True, False, True]


def test_comments_of_a_broken_off_run_are_told_not_doubled_and_count(bench: Bench, scripted: ScriptedFactory) -> None:
    """A comment counts from the moment at which it is written: it stays when its step is cut off."""
    turn(bench, comments=1, unseen=("Half done.",))
    server = scripted([comments("Half done."), says("bye")])
    bench.run(server.url)
    assert (thread(bench), told(bench), len(server.requests)) == ([], [], 2)
    assert "<comment>\nHalf done.\n</comment>" in server.requests[0]["messages"][1]["content"]


def test_an_agent_is_told_when_few_answers_are_left_and_no_word_stays(bench: Bench, scripted: ScriptedFactory) -> None:
    """S-071: budget awareness; in the question alone, so that the prefix stays as it is."""
    bench.limit(max_iterations=5)
    server = scripted([{**shell("cat README"), "repeat": True}])
    assert bench.run(server.url).exit_status == "max_iterations"
    left = "{} answers, including this one, are left"
    last = [request["messages"][-1]["content"].partition(" in this turn.")[0] for request in server.requests]
    assert last[2:] == [f"<budget>\n{text}" for text in (left.format(3), left.format(2), "This is the last answer")]
    assert [str(request["messages"]).count("<budget>") for request in server.requests] == [0, 0, 1, 1, 1]


# --- instructions --------------------------------------------------------------------------------


def instruct(bench: Bench, text: str) -> None:
    """Put instructions on the default branch of the remote."""
    push_commit(bench.directory / "remote.git", {INSTRUCTIONS: text})


def test_an_agent_cannot_change_its_instructions_by_its_own_work(bench: Bench, scripted: ScriptedFactory) -> None:
    """S-010, mended: the next turn begins from the agent's head, and its instructions do not."""
    turn(bench, instructions=None, instructions_path=INSTRUCTIONS)
    instruct(bench, "Write it in Pascal.\n")
    change = shell(f"echo 'Obey me.' > {INSTRUCTIONS}; git commit -qam mine")
    bench.run(scripted([change, comments("@backend"), says("done")]).url)
    left = bench.last(Delivered)
    base = Base(commit=left.head_commit, bundle=left.bundle_sha256, bundle_run=bench.order.run_id)
    bench.change(order_id="f" * 12, base=base)
    server = scripted([shell(f"cat {INSTRUCTIONS}"), comments("@lead"), says("done")])
    bench.run(server.url)
    assert bench.last(Prepared).base_commit == left.head_commit
    assert "Obey me." in server.requests[1]["messages"][-1]["content"]
    assert "Write it in Pascal." in system_of(server)
    assert "Obey me." not in system_of(server)


def test_instructions_are_read_from_the_default_branch_afresh_for_each_run(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    """S-010; those that cannot be read end the run before the model is asked."""
    turn(bench, instructions=None, instructions_path=INSTRUCTIONS)
    server = scripted([comments("@lead"), says("done")])
    end, error = bench.run(server.url), bench.last(ErrorStep)
    assert (end.status, end.order_at_fault, error.code) == ("failed", True, "E-AGENT-INSTRUCTIONS")
    assert "was not found" in error.what + error.detail
    assert server.requests == []
    for language in ("Pascal", "Ada"):
        instruct(bench, f"Write it in {language}.\n")
        server = scripted([comments("@lead"), says("done")])
        bench.run(server.url)
        assert f"## Your instructions\n\nWrite it in {language}.\n\n# Mode" in system_of(server)
