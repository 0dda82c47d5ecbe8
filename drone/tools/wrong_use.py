"""A call that cannot be executed, described in one sentence that tells the model how to fix it."""

from __future__ import annotations

from pydantic import ValidationError


class WrongUse(Exception):
    """Becomes a tool result with `is_error`; never ends a run."""


def describe(tool: str, error: ValidationError) -> str:
    """Describe each wrong argument: its name, the problem and the given value."""
    problems = [_problem(dict(item)) for item in error.errors(include_url=False)]
    return f"{tool}: {'; '.join(problems)}. Mend the arguments and call it again."


def _problem(item: dict[str, object]) -> str:
    location = item.get("loc")
    name = ".".join(map(str, location)) if isinstance(location, tuple) else ""
    message = str(item.get("msg", "is wrong")).removeprefix("Value error, ")
    if item.get("type") == "missing":
        return f"the argument `{name}` is missing"
    if item.get("type") == "extra_forbidden":
        return f"there is no argument `{name}`"
    if not name:
        return message
    return f"`{name}`: {message[:1].lower()}{message[1:]} (given: {str(item.get('input'))[:80]!r})"
