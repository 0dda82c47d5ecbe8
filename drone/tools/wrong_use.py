"""A call that cannot be executed, described in one sentence that tells the model how to fix it."""

from __future__ import annotations

from pydantic import ValidationError

from shared.redaction import cut_short


class WrongUse(Exception):
    """Becomes a tool result with `is_error`; never ends a run."""


def describe(tool: str, error: ValidationError) -> str:
    """Describe each wrong argument: its name, the problem and the given value."""
    problems = [_problem(dict(item)) for item in error.errors(include_url=False)]
    return f"{tool}: {'; '.join(problems)}. Fix the arguments and call it again."


def _problem(item: dict[str, object]) -> str:
    location = item.get("loc")
    name = ".".join(map(str, location)) if isinstance(location, tuple) else ""
    message = str(item.get("msg", "is invalid")).removeprefix("Value error, ")
    if item.get("type") == "missing":
        return f"the argument `{name}` is required"
    if item.get("type") == "extra_forbidden":
        return f"unknown argument `{name}`"
    if not name:
        return message
    return f"`{name}`: {message[:1].lower()}{message[1:]} (given: {cut_short(str(item.get('input')), 80)!r})"
