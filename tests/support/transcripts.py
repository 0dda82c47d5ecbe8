"""What every transcript in the suite has to keep to, read off the steps of an order's document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

Doc = dict[str, Any]


def transcript_problems(order: Doc) -> list[str]:
    """What is wrong with an order's steps: holes in seq, calls without exactly one result, results without a call."""
    steps = order["steps"]
    ended = [run["id"] for run in order["runs"] if run["status"] != "running"]
    return [*_holes(steps), *(problem for run in ended for problem in _unanswered(steps, run))]


def _holes(steps: Sequence[Doc]) -> list[str]:
    found = [step["seq"] for step in steps]
    return [] if found == list(range(1, len(steps) + 1)) else [f"seq is {found}"]


def _unanswered(steps: Sequence[Doc], run: str) -> list[str]:
    of_run = [step for step in steps if step["run"] == run]
    asked = [call["id"] for step in of_run if step["kind"] == "assistant" for call in step["tool_calls"]]
    answers = Counter(step["call_id"] for step in of_run if step["kind"] == "tool_result")
    wrong = [f"run {run}: call {call} has {answers[call]} results" for call in asked if answers[call] != 1]
    return wrong + [f"run {run}: result for {call}, which nobody asked" for call in answers if call not in asked]
