"""remember: a short note for later orders, which takes effect once a user has agreed to it."""

from __future__ import annotations

from collections.abc import Callable

from drone.agent.values import ToolResult
from drone.tools.arguments import RememberArguments
from drone.tools.wrong_use import WrongUse
from shared.events import RememberStep
from shared.memory import MAX_NOTE, MAX_REASON, one_line
from shared.redaction import known

NAME = "remember"
MOST = 5
"""Notes of one run."""


class Remember:
    """Records the notes of one run."""

    def __init__(self, record: Callable[[RememberStep], object]) -> None:
        self._record = record
        self._written: list[str] = []

    def __call__(self, call: RememberArguments) -> ToolResult:
        text, why = _line("note", call.note, MAX_NOTE), _line("why", call.why, MAX_REASON)
        if text in self._written:
            raise WrongUse(f"{NAME}: you have proposed this note already")
        if len(self._written) >= MOST:
            raise WrongUse(f"{NAME}: {MOST} notes are the most for one run; nothing more can be proposed")
        self._record(RememberStep(text=text, why=why, scope=call.scope))
        self._written.append(text)
        return ToolResult("proposed; a user decides whether later work gets this note")


def _line(name: str, given: str, longest: int) -> str:
    if len(given) > 4 * longest or len(text := one_line(given)) > longest:
        raise WrongUse(f"{NAME}: `{name}` has {len(given):,} characters (maximum {longest:,}); shorten it")
    if not text:
        raise WrongUse(f"{NAME}: `{name}` is empty")
    if known().text(text) != text:
        raise WrongUse(f"{NAME}: `{name}` contains a secret; name where it is kept instead")
    return text
