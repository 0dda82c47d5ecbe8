"""ask: a question to the user, whose answer is the result of the call."""

from __future__ import annotations

from drone.agent.values import AskedQuestion, ToolResult
from drone.tools.arguments import AskArguments
from drone.tools.wrong_use import WrongUse
from shared.redaction import cut_short

NAME = "ask"
MAX_QUESTION, MAX_CHOICE = 4000, 200
"""Characters of the question and the default, and of one choice."""
MAX_CHOICES = 12
MIN_DEADLINE, MAX_DEADLINE = 10, 7 * 86400
"""Seconds."""


def ask(call: AskArguments) -> ToolResult:
    """Return the question, for which the run then waits. Raises WrongUse."""
    question = _text("question", call.question, MAX_QUESTION)
    choices = tuple(_text("choices", each, MAX_CHOICE) for each in call.choices)
    if len(choices) > MAX_CHOICES:
        raise WrongUse(f"ask: {len(choices)} choices are too many (maximum {MAX_CHOICES}); group them")
    if len({each.casefold() for each in choices}) < len(choices):
        raise WrongUse("ask: two choices are the same; each must differ from the others")
    default = None if call.default is None else _default(call.default, choices)
    if call.deadline is not None and not MIN_DEADLINE <= call.deadline <= MAX_DEADLINE:
        raise WrongUse(
            f"ask: the deadline must be {MIN_DEADLINE} to {MAX_DEADLINE} seconds (given: {call.deadline:g}); "
            "leave it out to wait as long as the order allows"
        )
    return ToolResult("", asks=AskedQuestion(question, choices, default, call.deadline))


def _default(given: str, choices: tuple[str, ...]) -> str:
    default = _text("default", given, MAX_QUESTION)
    if choices and default not in choices:
        raise WrongUse(f"ask: the default {cut_short(default, 80)!r} is not one of the choices: {', '.join(choices)}")
    return default


def _text(name: str, given: str, longest: int) -> str:
    text = given.strip()
    if not text:
        raise WrongUse(f"ask: `{name}` is empty; write what the user needs to know to answer")
    if len(text) > longest:
        raise WrongUse(f"ask: `{name}` has {len(text):,} characters (maximum {longest:,}); shorten it")
    return text
