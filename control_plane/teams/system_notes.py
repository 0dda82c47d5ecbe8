"""The system's comments in a task's thread, one function per kind (S-043)."""

from __future__ import annotations

import re
from typing import NamedTuple

from shared.outcome import ExitStatus


class Note(NamedTuple):
    """The kind and text of a system comment."""

    kind: str
    text: str
    agent_id: str | None = None
    """The agent whose run could not start."""


# --- user actions -----------------------------------------------------------------------


def preempted(who: str, agent: str) -> Note:
    return Note("preempted", f"{_person(who)} preempted the run of {agent}. The task is assigned to the user.")


def reopened(who: str) -> Note:
    return Note("reopened", f"{_person(who)} reopened the task. It is assigned to the user.")


def retried(who: str, agent: str) -> Note:
    return Note("retried", f"{_person(who)} retried the task. It is assigned to {agent}.")


def canceled(who: str, reason: str = "") -> Note:
    return Note("canceled", f"{_person(who)} canceled the task{_because(reason)}.")


def assigned(who: str, assignee: str) -> Note:
    return Note("assigned", f"{_person(who)} assigned the task to {_named(assignee)}.")


def done(who: str) -> Note:
    return Note("done", f"{_person(who)} marked the task as done.")


# --- how runs ended --------------------------------------------------------------------


def iteration_limit(agent: str, limit: int) -> Note:
    return Note("iteration_limit", f"The run of {agent} reached its iteration limit ({limit}).")


def no_comment(agent: str) -> Note:
    return Note("no_comment", f"The run of {agent} ended without a comment.")


def failed(agent: str, exit_status: str, reason: str, run_id: str | None) -> Note:
    """A run failed, and its task with it (S-083); the full reason is in the run (S-084)."""
    said = sanitized(reason) if exit_status in _FOREIGN else _short(reason)
    return Note(
        "failed", f"The run of {agent} failed: {said.rstrip('.')}{_pointer(run_id)}. The task is assigned to the user."
    )


def lost(agent: str, attempts: int, run_id: str | None) -> Note:
    what = f"The run of {agent} was lost with its drone{_times(attempts)}"
    return Note("lost", f"{what}{_pointer(run_id)}. The task is assigned to the user.")


def run_canceled(agent: str, reason: str) -> Note:
    return Note(
        "run_canceled", f"The run of {agent} was {_short(reason).rstrip('.')}. The task is assigned to the user."
    )


# --- who is next -----------------------------------------------------------------------


def handed_off(author: str, to: str) -> Note:
    """The thread scan found an agent that was mentioned and has not run since (S-052)."""
    return Note("handed_off", f"{author} tagged no one. Handed off to {to}, who was mentioned and has not run since.")


def escalated(author: str, boss: str) -> Note:
    return Note(
        "escalated", f"{author} tagged no one, and no mention is open. Escalated to {boss}, the boss of {author}."
    )


def returned(author: str) -> Note:
    return Note(
        "returned", f"{author} tagged no one, so it is the user's turn: no mention is open, and {author} has no boss."
    )


def hand_off_limit(to: str, limit: int) -> Note:
    """The agents keep handing the task to each other; a person should look at it."""
    return Note(
        "hand_off_limit",
        f"The task reached the limit of {limit} consecutive hand-offs between agents, so it is assigned to the user "
        f"instead of {to}. To continue, comment with a tag, or assign it.",
    )


# --- why a task could not begin ---------------------------------------------------------


def agent_removed(agent: str) -> Note:
    return Note("agent_removed", f"Agent {agent} was removed. The task is assigned to the user: tag another agent.")


def cannot_begin(agent: str, agent_id: str, why: str, next_: str) -> Note:
    """The run's order could not be written."""
    text = f"The run of {agent} could not start: {why} (next: {next_}). The task is assigned to the user."
    return Note("failed", text, agent_id)


# --- words ------------------------------------------------------------------------------


def sanitized(reason: str) -> str:
    """A short text for people about a failure that a provider or a library worded itself (S-084)."""
    return next((said for pattern, said in _KNOWN if pattern.search(reason)), _short(reason))


_FOREIGN = frozenset({ExitStatus.MODEL_ERROR.value, ""})
"""Exit statuses whose reason is not worded by the fleet."""
_MAX = 120
_KNOWN = (
    (
        re.compile(r"context.?(window|length|size)|maximum context|(too many|max\w{0,20}) tokens", re.I),
        "Context window exceeded",
    ),
    (re.compile(r"\b429\b|rate.?limit|too many requests", re.I), "LLM rate limit reached"),
    (re.compile(r"connection|network|unreachable|cannot be reached|name resolution", re.I), "Network error"),
    (re.compile(r"time.?out|timed out|did not answer in time", re.I), "request timed out"),
)


def _short(reason: str) -> str:
    """The first 120 characters, on one line."""
    line = " ".join(reason.split()) or "no reason given"
    return line if len(line) <= _MAX else f"{line[:_MAX].rstrip()}…"


def _pointer(run_id: str | None) -> str:
    return f" (details: fleet run show {run_id})" if run_id else ""


def _times(attempts: int) -> str:
    return f", {attempts} times" if attempts > 1 else ""


def _person(who: str) -> str:
    return who or "The user"


def _because(reason: str) -> str:
    return f": {reason.strip().rstrip('.')}" if reason.strip() else ""


def _named(assignee: str) -> str:
    return "the user" if assignee == "user" else assignee
