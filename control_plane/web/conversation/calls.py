"""CallsBlock of tools as a chat shows them: one line each, and several calls together as one sentence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from markupsafe import Markup

from control_plane.web.markup.terminal import terminal_lines
from shared.events import ChildStep, DecisionStep, GuardrailStep, ToolCallStep, ToolResultStep
from shared.visible_text import visible

OUTPUT_LINES = 20
GIST = 120
NAMED = ("question", "command", "path", "pattern", "url", "text", "prompt", "task")
"""Arguments that say most about a call, in the order in which they are looked for."""
CallState = Literal["ok", "failed", "running", "none"]
"""`none`: it has no result, and its run continues without one or has ended."""


@dataclass(kw_only=True)
class ShownCall:
    """A call, and what became of it so far."""

    seq: int
    """Of the call; of the result if the call lies before what is shown."""
    tool: str
    arguments: Any = None
    result: ToolResultStep | None = None
    result_seq: int = 0
    decision: DecisionStep | None = None
    asked: str = ""
    """Why it needed approval; of a question its text."""
    warnings: list[GuardrailStep] = field(default_factory=list)
    children: list[tuple[int, ChildStep]] = field(default_factory=list)
    running: bool = False
    last: int = 0
    """The last step about it."""

    @classmethod
    def of(cls, seq: int, step: ToolCallStep) -> ShownCall:
        return cls(seq=seq, tool=step.tool, arguments=step.arguments)

    @property
    def state(self) -> CallState:
        if self.result is None:
            return "running" if self.running else "none"
        return "failed" if self.result.is_error or self.result.return_code else "ok"

    @property
    def outcome(self) -> str:
        """How it ended, in a few words; empty if it simply worked."""
        if self.decision is not None and self.decision.about == "question":
            return "answered" if self.decision.approved else "no answer"
        if self.decision is not None and not self.decision.approved:
            return "denied"
        result = self.result
        if result is None:
            return "running" if self.running else "no result"
        if result.return_code:
            return f"exit {result.return_code}"
        words = {"timed_out": "timed out", "broken_off": "interrupted", "held_back": "not executed"}
        return words.get(result.execution, "failed" if result.is_error else "")

    @property
    def decided(self) -> str:
        """What came of its question or of its request for approval; empty before that."""
        if self.decision is None:
            return ""
        by = f" by {self.decision.who}" if self.decision.who else ""
        by += {"clock": ", as there was no answer in time", "interruption": ", as it was interrupted"}.get(
            self.decision.by, ""
        )
        if self.decision.about == "question":
            return f"Answered{by}: {self.decision.answer}" if self.decision.approved else f"Not answered{by}"
        comment = f": {self.decision.comment}" if self.decision.comment else ""
        return f"{'Approved' if self.decision.approved else 'Denied'}{by}{comment}"

    @property
    def gist(self) -> str:
        """The arguments in one line."""
        return _gist(self.arguments)

    @property
    def rest(self) -> list[tuple[str, str]]:
        """The arguments that the line does not show whole."""
        if not isinstance(self.arguments, Mapping):
            return [("arguments", str(self.arguments))] if self.arguments not in (None, "") else []
        pairs = [(str(name), _text(value)) for name, value in self.arguments.items()]
        return pairs if len(pairs) > 1 or any(len(text) > GIST or "\n" in text for _, text in pairs) else []

    @property
    def lines(self) -> list[Markup]:
        """The last lines of its output."""
        return terminal_lines(self.result.output, OUTPUT_LINES) if self.result and self.result.output else []

    @property
    def hidden(self) -> bool:
        """Whether its output has more lines than are shown."""
        result = self.result
        return result is not None and (
            bool(result.log_sha256) or result.output.rstrip("\n").count("\n") >= OUTPUT_LINES
        )

    @property
    def changes(self) -> tuple[int, int] | None:
        """Lines that an edit added and removed, as far as its arguments say."""
        if self.tool != "editor" or not isinstance(self.arguments, Mapping):
            return None
        new, old = (_text(self.arguments.get(name) or "") for name in ("new_str", "old_str"))
        return (_lines(new), _lines(old)) if new or old else None


def sentence_of(calls: Sequence[ShownCall], thoughts: int = 0) -> str:
    """`Read 3 files, ran 2 commands (1 failed)`."""
    counts: Counter[str] = Counter()
    files: dict[str, set[str]] = {}
    for call in calls:
        verb = _VERBS.get(call.tool, call.tool)
        counts[verb] += 1
        files.setdefault(verb, set()).add(_path(call))
    failed = sum(call.state == "failed" for call in calls)
    parts = [f"thought {_times(thoughts)}"] if thoughts else []
    parts += [_part(verb, len(files[verb]) if verb in _OF_FILES else count) for verb, count in counts.items()]
    text = ", ".join(parts) + (f" ({failed} failed)" if failed else "")
    return text[:1].upper() + text[1:]


_OF_FILES = frozenset({"read", "edited", "wrote"})
_VERBS: Mapping[str, str] = {
    "file_read": "read",
    "file_write": "wrote",
    "editor": "edited",
    "grep": "searched",
    "glob": "searched",
    "web_fetch": "fetched",
    "shell": "ran",
    "todo": "updated the to-do list",
    "spawn": "ran sub-agents",
    "add_comment": "commented",
    "ask": "asked",
}
_COUNTED: Mapping[str, str] = {"ran": "command", "fetched": "page"}


def _part(verb: str, count: int) -> str:
    if verb in _OF_FILES:
        return f"{verb} {count} file{'' if count == 1 else 's'}"
    if verb in _COUNTED:
        return f"{verb} {count} {_COUNTED[verb]}{'' if count == 1 else 's'}"
    if verb in _VERBS.values():
        return verb if count == 1 or verb == "updated the to-do list" else f"{verb} {_times(count)}"
    return f"called {visible(verb)[:60]}" + (f" {_times(count)}" if count > 1 else "")


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _path(call: ShownCall) -> str:
    path = call.arguments.get("path") if isinstance(call.arguments, Mapping) else None
    return str(path) if path else str(call.seq)


def _gist(arguments: Any) -> str:
    if not isinstance(arguments, Mapping):
        text = "" if arguments is None else str(arguments)
    else:
        text = next(_named(arguments), None) or (json.dumps(arguments, ensure_ascii=False) if arguments else "")
    line = visible(text.strip().split("\n")[0])
    return line if len(line) <= GIST and "\n" not in text.strip() else f"{line[: GIST - 1]}…"


def _named(arguments: Mapping[str, Any]) -> Iterator[str]:
    # An editor's command says what it does with the path, which says more.
    names = ("path", *NAMED) if "path" in arguments else NAMED
    yield from (_text(arguments[name]) for name in names if arguments.get(name))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _lines(text: str) -> int:
    return len(text.splitlines())
