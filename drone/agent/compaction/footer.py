"""The footer below every summary, taken from the conversation itself: the request, files read, files changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from shared.messages import Message, ToolCall
from shared.transcripts import opens_turn, request_in

_TAG = re.compile(r"^</?(?:request|files_read|files_changed|summary)>[ \t]*$", re.MULTILINE)
_FOOTER = re.compile(
    r"(?:<request>\n(?P<request>.*?)\n</request>\s*)?"
    r"(?:<files_read>\n(?P<read>.*?)\n</files_read>\s*)?"
    r"(?:<files_changed>\n(?P<changed>.*?)\n</files_changed>\s*)?\Z",
    re.DOTALL,
)
_MORE = re.compile(r"\(and [\d,]+ more\)\Z")
_CHANGING = {"file_write", "editor"}
_READING_MODES = {"view", "lines"}


@dataclass(frozen=True)
class Footer:
    """Survives any number of compactions: each starts with the footer of the previous one."""

    request: str = ""
    """The user's request in the current turn, in their own words; empty if the tail still contains it."""
    read: tuple[str, ...] = ()
    """Files that were read and not changed, in the order they were last read."""
    changed: tuple[str, ...] = ()

    def text(self, most: int) -> str:
        """The footer in about `most` characters at most; if there are too many files, the latest are named."""
        request = self.request if len(self.request) <= most // 2 else f"{self.request[: most // 2]} […]"
        parts = [_part("request", request)]
        for tag, names in (("files_read", self.read), ("files_changed", self.changed)):
            parts.append(_part(tag, "\n".join(_latest(names, most // 4))))
        return "\n\n".join(filter(None, parts))


def without_tags(text: str) -> str:
    """The text without lines that could be mistaken for part of the footer or for the end of the summary."""
    return _TAG.sub("", text).strip()


def parted(summary: str) -> tuple[str, Footer]:
    """Split a summary into its text and its footer."""
    found = _FOOTER.search(summary)
    assert found is not None  # an empty footer always matches at the end
    footer = Footer(found["request"] or "", _names(found["read"]), _names(found["changed"]))
    return summary[: found.start()].strip(), footer


def footer_of(older: Sequence[Message], tail: Iterable[Message], earlier: Footer) -> Footer:
    """The footer for a summary of `older`, which is followed by `tail`."""
    read, changed = dict.fromkeys(earlier.read), dict.fromkeys(earlier.changed)
    for how, path in _touched(older):
        known = read if how == "read" else changed
        known.pop(path, None)  # the latest comes last
        known[path] = None
    kept = tuple(path for path in read if path not in changed)
    return Footer(_request(older, tail, earlier), kept, tuple(changed))


def _request(older: Sequence[Message], tail: Iterable[Message], earlier: Footer) -> str:
    if any(map(opens_turn, tail)):
        return ""
    opening = next((message for message in reversed(older) if opens_turn(message)), None)
    return earlier.request if opening is None else without_tags(request_in(opening))


def _touched(messages: Sequence[Message]) -> Iterator[tuple[Literal["read", "changed"], str]]:
    """Files used by calls that did not fail."""
    failed = {m.tool_call_id for m in messages if m.role == "tool" and m.is_error}
    for message in messages:
        for call in message.tool_calls:
            arguments = _arguments(call) if call.id not in failed else {}
            path = _name(arguments.get("path"))
            if path and call.name in _CHANGING:
                yield "changed", path
            elif path and call.name == "file_read" and arguments.get("mode", "view") in _READING_MODES:
                yield "read", path


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _name(path: object) -> str:
    """The path, or an empty string if it cannot be an entry in a list with one path per line."""
    if not isinstance(path, str) or path in {".", "./"} or len(path.splitlines()) != 1:
        return ""
    return "" if _TAG.match(path) or _MORE.match(path) else path


def _names(lines: str | None) -> tuple[str, ...]:
    return tuple(line for line in (lines or "").split("\n") if line and not _MORE.match(line))


def _latest(names: Sequence[str], most: int) -> list[str]:
    shown: list[str] = []
    for name in reversed(names):
        most -= len(name) + 1
        if most < 0:
            break
        shown.insert(0, name)
    left_out = len(names) - len(shown)
    return [*shown, f"(and {left_out:,} more)"] if left_out else shown


def _part(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>" if text else ""
