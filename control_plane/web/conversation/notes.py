"""What happened to a run, in one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shared.durations import duration_label
from shared.events import (
    ApprovalStep,
    ChildStep,
    CompactionStep,
    DecisionStep,
    ErrorStep,
    GapStep,
    GuardrailStep,
    PointReportStep,
    ProjectCheckStep,
    ProviderCheckStep,
    PullRequestStep,
    RememberStep,
    ResumedStep,
    RetryStep,
    ReviewerStep,
    RunEnded,
)
from shared.plan_text import plan_text
from shared.plans import report_line

Parts = dict[str, Any]
"""Fields of a `NoteBlock`."""
RETRY = "Model call failed"
_COMPACTED = {
    "overflow": "it was too long for the model",
    "asked": "on request",
    "window": "the context was nearly full",
}


def note_of(body: Any, document: Mapping[str, Any]) -> Parts | None:
    """The note about a step; None for a step that a chat does not mention.

    `document` is the step as users see it, which has further fields for some kinds.
    """
    words = _WORDS.get(type(body))
    return words(body, document) if words else None


def _retry(body: RetryStep, _: Mapping[str, Any]) -> Parts:
    delay = duration_label(round(body.delay_s * 1000))
    why = body.error_class.replace("_", " ")
    return {"text": f"{RETRY}: {why}; retried after {delay}", "tone": "wait", "detail": body.error}


def _compaction(body: CompactionStep, _: Mapping[str, Any]) -> Parts:
    tokens = f"{body.tokens_before:,} → {body.tokens_after:,} tokens"
    files = [("Read", body.files_read), ("Changed", body.files_changed)]
    named = [f"{what}: {', '.join(names)}" for what, names in files if names]
    return {
        "text": f"Conversation compacted: {tokens} ({_COMPACTED.get(body.cause, body.cause)})",
        "detail": "\n\n".join([body.summary, *named]),
    }


def _resumed(body: ResumedStep, document: Mapping[str, Any]) -> Parts:
    step, attempt, drone = (document.get(name) for name in ("from_step", "from_attempt", "from_drone"))
    where = f"step {step}" if step else "an earlier step"
    where += f" of attempt {attempt}" if attempt else ""
    where += f" on {drone}" if drone else ""
    left_out = f"Not kept: {'; '.join(body.left_out)}" if body.left_out else ""
    why = f". {body.why[:1].upper()}{body.why[1:]}" if body.why else ""
    return {"text": f"Resumed from {where}{why}", "tone": "wait", "detail": left_out}


def _reviewer(body: ReviewerStep, _: Mapping[str, Any]) -> Parts:
    if body.problem:
        return {"text": f"Not reviewed by {body.model}", "tone": "wait", "detail": body.problem}
    count = len(body.findings)
    remarks = "no remarks" if not count else "1 remark" if count == 1 else f"{count} remarks"
    places = (f"{each.file}:{each.line}" if each.line else each.file for each in body.findings)
    lines = [f"{place} ({each.severity}): {each.text}" for place, each in zip(places, body.findings, strict=True)]
    again = ", from the earlier run" if body.repeated else ""
    return {
        "text": f"Reviewed by {body.model}: {remarks}{again}",
        "tone": "wait" if count else "good",
        "detail": "\n".join(lines),
    }


def _remember(body: RememberStep, _: Mapping[str, Any]) -> Parts:
    scope = " for all projects" if body.scope == "organization" else ""
    return {"text": f"Proposed a note{scope}: {body.text}", "detail": body.why}


def _error(body: ErrorStep, _: Mapping[str, Any]) -> Parts:
    code = f" ({body.code})" if body.code else ""
    following = f"Next: {body.next}" if body.next else ""
    detail = "\n".join(part for part in (body.detail, following) if part)
    return {"text": f"{body.what[:1].upper()}{body.what[1:]}{code}", "tone": "bad", "detail": detail}


def _gap(body: GapStep, _: Mapping[str, Any]) -> Parts:
    return {"text": f"{body.missing} steps never arrived" + (f": {body.why}" if body.why else ""), "tone": "bad"}


def _ended(body: RunEnded, _: Mapping[str, Any]) -> Parts | None:
    if body.status == "success":
        return None
    what = "The run was stopped" if body.status == "preempted" else "The run failed"
    return {"text": f"{what}: {body.reason or body.exit_status.replace('_', ' ')}", "tone": "bad"}


def _approval(body: ApprovalStep, _: Mapping[str, Any]) -> Parts:
    if body.plan is not None:
        return {"text": f"Presented a plan: {body.why}", "tone": "wait", "detail": plan_text(body.plan)}
    what = "Asked" if body.about == "question" else "Asked for approval"
    return {"text": f"{what}: {body.why}", "tone": "wait", "detail": body.command}


def _decision(body: DecisionStep, _: Mapping[str, Any]) -> Parts:
    by = {"clock": ", as there was no answer in time", "interruption": ", as the call was interrupted"}.get(body.by, "")
    comment = f": {body.comment}" if body.comment and body.by == "person" else ""
    if body.about == "plan":
        who = body.who or "a user"
        words = f"Plan approved by {who}" if body.approved else f"Plan sent back by {who}{comment}"
        words = words if body.by == "person" else f"Plan not approved{by}"
        detail = plan_text(body.plan) if body.plan is not None else ""
        return {"text": words, "tone": "good" if body.approved else "wait", "detail": detail}
    if body.about == "question":
        answer = f"Answered{by}: {body.answer}" if body.approved else f"Not answered{by}"
        return {"text": answer, "tone": "good" if body.approved else "wait"}
    return {
        "text": f"{'Approved' if body.approved else 'Denied'}{by}{comment}",
        "tone": "good" if body.approved else "bad",
    }


def _point_report(body: PointReportStep, _: Mapping[str, Any]) -> Parts:
    tone = "good" if body.report.result == "done" else "wait"
    return {"text": f"Point {body.report.point} of the plan {report_line(body.report)}", "tone": tone}


def _guardrail(body: GuardrailStep, _: Mapping[str, Any]) -> Parts:
    did = {"warn": "warned about a call", "block": "blocked a call", "halt": "stopped the run"}[body.action]
    return {"text": f"{body.guardrail} {did}: {body.reason}", "tone": "wait" if body.action == "warn" else "bad"}


def _pull_request(body: PullRequestStep, _: Mapping[str, Any]) -> Parts:
    if body.state == "failed":
        return {"text": f"No pull request was opened: {body.why}", "tone": "bad"}
    number = f" #{body.number}" if body.number else ""
    words = {"opened": "opened", "updated": "updated", "ready": "is ready to be opened"}[body.state]
    return {"text": f"Pull request{number} {words}", "tone": "good", "link": body.url or ""}


def _checked(body: ProviderCheckStep | ProjectCheckStep, _: Mapping[str, Any]) -> Parts:
    return {"text": body.summary, "tone": "good" if body.ok else "bad", "detail": body.detail}


def _child(body: ChildStep, _: Mapping[str, Any]) -> Parts:
    return {"text": f"A sub-agent: {str(body.step.get('kind', 'step')).replace('_', ' ')[:40]}"}


_WORDS: Mapping[type[Any], Callable[[Any, Mapping[str, Any]], Parts | None]] = {
    RetryStep: _retry,
    CompactionStep: _compaction,
    ResumedStep: _resumed,
    ReviewerStep: _reviewer,
    RememberStep: _remember,
    ErrorStep: _error,
    GapStep: _gap,
    RunEnded: _ended,
    ApprovalStep: _approval,
    DecisionStep: _decision,
    PointReportStep: _point_report,
    GuardrailStep: _guardrail,
    PullRequestStep: _pull_request,
    ProviderCheckStep: _checked,
    ProjectCheckStep: _checked,
    ChildStep: _child,
}
