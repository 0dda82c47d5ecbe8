"""The background reviewer: a second model reads the change once, and its remarks go to the agent (O-082)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from drone.runs.change_review import MOST_FINDINGS
from drone.runs.pipe import EndRun
from shared.budgets import Money, OnLimit
from shared.events import ApprovalStep, CheckpointStep, Delivered, Finding, ReviewerStep, RunEnded, UserStep
from shared.work_order import Limits, OrderProvider, OrderReviewer
from tests.support.runs import Bench, KeptCheckpoints, going_on, shell
from tests.support.scripted import ScriptedFactory, says

pytestmark = pytest.mark.usefixtures("warm_model")
ONE = {"file": "made", "line": 1, "severity": "error", "text": "It is empty."}
DONE = says("Made it.")
MAKES = [shell("touch made"), DONE]


def remarks(*findings: dict[str, Any], **more: Any) -> dict[str, Any]:
    return says(json.dumps({"findings": findings}), **more)


def reviewed_at(bench: Bench, url: str, findings: tuple[Finding, ...] | None = None, **fields: Any) -> None:
    """Let the model at this address review the order's change."""
    known = {"name": "cheap", "model": "openai/cheap", "api_base": url, "api_key": "sk-reviewer-secret"}
    provider = OrderProvider.model_validate({**known, **fields})
    bench.change(reviewer=OrderReviewer(provider=provider, findings=findings))


def told(bench: Bench) -> list[str]:
    """What the loop told the agent."""
    return [step.text for step in bench.of(UserStep) if step.source == "loop"]


def ends(end: RunEnded) -> tuple[str, str]:
    return end.status, end.exit_status


def test_remarks_go_to_the_agent_once_and_what_it_makes_of_them_is_delivered(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    reviewer = scripted([remarks(ONE, usage={"input_tokens": 1000, "output_tokens": 100})])
    agent = scripted([*MAKES, shell("echo full > made"), says("Filled it.")])
    reviewed_at(bench, reviewer.url)
    end = bench.run(agent.url)
    assert (ends(end), end.response) == (("success", "stopped"), "Filled it.")
    (step,) = bench.of(ReviewerStep)
    assert (step.model, step.problem, step.findings) == ("openai/cheap", "", (Finding.model_validate(ONE),))
    (message,) = told(bench)
    assert "1. [error] made:1: It is empty." in message
    assert "decline" in message
    (question,) = [request["messages"] for request in reviewer.requests]
    assert "new file mode 100644" in question[1]["content"]
    assert "Write a file" in question[1]["content"]
    assert bench.last(Delivered).lines_added == 1
    # Its answer is not shown while it streams, but is a sign of progress.
    said = bench.link.said[bench.link.said.index(("doing", "waiting for the reviewer")) :]
    assert ("progress", "") in said[: said.index(("recorded", ""))]
    # What it cost counts for the run.
    assert (step.usage.input_tokens, step.usage.output_tokens) == (1000, 100)
    assert end.stats.input_tokens >= 1000
    assert end.stats.output_tokens >= 100


def test_a_reviewer_that_fails_fails_no_run_and_the_run_says_why(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.change(limits=Limits(base_delay=0.01, max_retries=1))
    answers = {
        "": remarks(),
        "not the requested JSON": says("Looks good to me!"),
        "API key": {"status": 401, "error": "no"},
        "127.0.0.1:9": None,
    }
    for problem, answer in answers.items():
        reviewed_at(bench, scripted([answer]).url if answer else "http://127.0.0.1:9/v1")
        end = bench.run(scripted(MAKES).url)
        assert (ends(end), end.response, told(bench)) == (("success", "stopped"), "Made it.", [])
        step = bench.last(ReviewerStep)
        assert (step.findings, bool(step.problem), problem in step.problem) == ((), bool(problem), True)
        # An answer of this model has an unknown price; without one, it is known that there is nothing to pay.
        assert step.usage.cost_usd == (None if step.usage.input_tokens else 0.0), problem
        assert bench.last(Delivered).files_changed == 1


@pytest.mark.parametrize("on_limit", ["stop", "ask"])
def test_a_reviewer_is_not_asked_without_a_change_or_money(
    bench: Bench, scripted: ScriptedFactory, on_limit: OnLimit
) -> None:
    reviewer = scripted([remarks(ONE)])
    reviewed_at(bench, reviewer.url, model="openai/gpt-4", params={"max_tokens": 8000})
    bench.change(limits=Limits(cost_limit=0.0001, approval_timeout=1), money=Money(on_limit=on_limit))
    assert ends(bench.run(scripted([DONE]).url)) == ("success", "stopped")
    assert bench.of(ReviewerStep) == []
    assert ends(bench.run(scripted(MAKES).url)) == ("success", "stopped")
    assert reviewer.requests == []
    assert "cost limit" in bench.last(ReviewerStep).problem
    # No user is asked for more on behalf of the reviewer.
    assert bench.of(ApprovalStep) == []
    assert bench.last(Delivered).files_changed == 1


def test_only_the_most_severe_findings_are_kept_and_odd_ones_are_read(bench: Bench, scripted: ScriptedFactory) -> None:
    many = [{"file": f"f{number}", "severity": "note", "text": "small"} for number in range(2 * MOST_FINDINGS)]
    odd = {"line": "12", "severity": "blocker", "text": "large " + " ".join(map(str, range(2000))), "extra": True}
    text = f"Here you are:\n```json\n{json.dumps({'findings': [*many, ONE, odd, {'file': 'a', 'text': ' '}]})}\n```"
    reviewed_at(bench, scripted([says(text)]).url)
    bench.run(scripted([*MAKES, says("No.")]).url)
    (step,) = bench.of(ReviewerStep)
    assert (step.problem, len(step.findings)) == ("", MOST_FINDINGS)
    first = [(each.file, each.line, each.severity) for each in step.findings[:2]]
    assert first == [("made", 1, "error"), ("the change", 12, "warning")]
    assert len(step.findings[1].text) == 1000


def test_a_cancel_during_the_review_ends_the_run(bench: Bench, scripted: ScriptedFactory) -> None:
    reviewed_at(bench, scripted([remarks(ONE)]).url)
    cancel = EndRun(wish="cancel", reason="not needed")
    bench.on_doing = lambda doing: bench.controls.receive(cancel) if doing == "waiting for the reviewer" else None
    assert ends(bench.run(scripted(MAKES).url)) == ("preempted", "canceled")
    assert bench.of(ReviewerStep) == []


def test_a_resumed_run_gets_the_earlier_findings_without_asking_again(
    bench: Bench, scripted: ScriptedFactory, another: Callable[[str], Bench]
) -> None:
    bench.checkpoint_store = KeptCheckpoints()
    reviewer, second = scripted([remarks(ONE)]), another("second")
    reviewed_at(bench, reviewer.url)
    bench.run(scripted([*MAKES, says("No.")]).url)
    going_on(bench, second, next(event.seq for event in bench.events if isinstance(event.body, CheckpointStep)))
    reviewed_at(second, reviewer.url, bench.last(ReviewerStep).findings)
    end = second.run(scripted([*MAKES, says("Declined: it is meant to be empty.")]).url)
    assert (end.status, end.response) == ("success", "Declined: it is meant to be empty.")
    assert len(reviewer.requests) == 1
    (step,) = second.of(ReviewerStep)
    assert (step.repeated, len(step.findings), step.usage.cost_usd) == (True, 1, 0.0)
    assert "It is empty." in told(second)[-1]


def test_neither_a_known_secret_nor_what_looks_like_one_reaches_the_reviewer(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    # A run that keeps no checkpoints knows no secrets, but shapes.
    for store, secret in ((None, "ghp_" + "a1B2" * 9), (KeptCheckpoints(), "hunter2-secret")):
        reviewer, bench.checkpoint_store = scripted([remarks()]), store
        reviewed_at(bench, reviewer.url)
        bench.run(scripted([shell(f"echo {secret} > made; echo plain > other"), DONE]).url)
        change = json.dumps(reviewer.requests).split("<change>")[1].split("</change>")[0]
        assert ("other" in change, f"{secret}\\n" in change) == (True, False), secret
