"""The rules for every transcript in the suite, checked on the steps of an order's document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

Doc = dict[str, Any]


def transcript_problems(order: Doc) -> list[str]:
    """The problems in an order's steps: gaps in seq, calls without exactly one result, results without a call.

    A lost run may have ended in the middle of its last message's calls, and undone steps may be cut off anywhere.
    """
    steps = order["steps"]
    kept = [step for step in steps if not step.get("undone")]
    ended = {run["id"]: run["status"] == "lost" for run in order["runs"] if run["status"] != "running"}
    return [*_holes(steps), *(problem for run, lost in ended.items() for problem in _unanswered(kept, run, lost=lost))]


def _holes(steps: Sequence[Doc]) -> list[str]:
    found = [step["seq"] for step in steps]
    return [] if found == list(range(1, len(steps) + 1)) else [f"seq is {found}"]


def _unanswered(steps: Sequence[Doc], run: str, *, lost: bool) -> list[str]:
    of_run = [step for step in steps if step["run"] == run]
    messages = [[call["id"] for call in step["tool_calls"]] for step in of_run if step["kind"] == "assistant"]
    asked = [call for message in messages for call in message]
    cut_off = set(messages[-1]) if lost and messages else set()
    answers = Counter(step["call_id"] for step in of_run if step["kind"] == "tool_result")
    unsound = [call for call in asked if answers[call] != 1 and not (answers[call] == 0 and call in cut_off)]
    wrong = [f"run {run}: call {call} has {answers[call]} results" for call in unsound]
    return wrong + [f"run {run}: result for {call}, which nobody asked" for call in answers if call not in asked]
