"""The footer below every summary: the request, the open to-do list, files read, files changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from drone.agent.compaction.cut import head_and_tail
from shared.messages import Message, ToolCall
from shared.transcripts import opens_turn

_TAG = re.compile(r"^</?(?:request|todo|files_read|files_changed|summary)>[ \t]*$", re.MULTILINE)
_MORE = re.compile(r"\(and [\d,]+ more\)\Z")
_CHANGING = {"file_write", "editor"}
_READING_MODES = {"view", "lines"}
_TODO = "todo"
_OPEN = {"pending": "pending", "in_progress": "in progress"}


@dataclass(frozen=True)
class Footer:
    """Survives any number of compactions: each starts with the footer of the previous one."""

    request: str = ""
    """The user's request in the current turn, in their own words; empty if the tail still contains it."""
    todo: tuple[str, ...] = ()
    """The open items of the agent's to-do list, in its order; empty if the tail still contains the list."""
    read: tuple[str, ...] = ()
    """Files that were read and not changed, in the order they were last read."""
    changed: tuple[str, ...] = ()

    def text(self, most: int) -> str:
        """The footer in about `most` characters at most. At least half of them are for the request, if it needs them.

        If there are too many files, the latest are named; of too many items on the list, the first.
        """
        share = max(most // 6, (most - len(self.request)) // 4)
        lists = [
            _part(_TODO, "\n".join(_first(self.todo, share))),
            _part("files_read", "\n".join(_latest(self.read, share))),
            _part("files_changed", "\n".join(_latest(self.changed, share))),
        ]
        request = head_and_tail(self.request, max(0, most - sum(map(len, lists))))
        return "\n\n".join(filter(None, (_part("request", request), *lists)))


def without_tags(text: str) -> str:
    """The text without lines that could be mistaken for part of the footer or for the end of the summary."""
    return _TAG.sub("", text).strip()


def parted(summary: str) -> tuple[str, Footer]:
    """Split a summary into its text and its footer."""
    text, found = summary.strip(), dict[str, str]()
    # From the end: what the parts contain has no such tags of its own.
    for name in ("files_changed", "files_read", _TODO, "request"):
        before, begun, content = text.removesuffix(f"\n</{name}>").rpartition(f"<{name}>\n")
        if begun and text.endswith(f"\n</{name}>"):
            text, found[name] = before.rstrip(), content
    lists = (_lines(found.get(name)) for name in (_TODO, "files_read", "files_changed"))
    return text, Footer(found.get("request", ""), *lists)


def footer_of(older: Sequence[Message], tail: Sequence[Message], earlier: Footer, request: str) -> Footer:
    """The footer for a summary of `older`, which is followed by `tail`; `request` is what the user asked for."""
    read, changed = dict.fromkeys(earlier.read), dict.fromkeys(earlier.changed)
    for how, path in _touched(older):
        known = read if how == "read" else changed
        known.pop(path, None)  # the latest comes last
        known[path] = None
    items = _open_items(older)
    return Footer(
        request="" if any(map(opens_turn, tail)) else without_tags(request),
        todo=() if _open_items(tail) is not None else earlier.todo if items is None else items,
        read=tuple(path for path in read if path not in changed),
        changed=tuple(changed),
    )


def _open_items(messages: Sequence[Message]) -> tuple[str, ...] | None:
    """What is still to be done according to the last to-do list; None if there is no list in these messages."""
    failed = _failed(messages)
    for message in reversed(messages):
        for call in reversed(message.tool_calls):
            if call.name == _TODO and call.id not in failed:
                items = _arguments(call).get("items")
                return tuple(filter(None, map(_open_item, items if isinstance(items, list) else ())))
    return None


def _open_item(item: object) -> str:
    """One line; empty if the item is done."""
    if not isinstance(item, dict) or (state := _OPEN.get(str(item.get("status", "pending")))) is None:
        return ""
    return f"[{state}] {' '.join(str(item.get('text', '')).split())}"


def _touched(messages: Sequence[Message]) -> Iterator[tuple[Literal["read", "changed"], str]]:
    """Files used by calls that did not fail."""
    failed = _failed(messages)
    for message in messages:
        for call in message.tool_calls:
            arguments = _arguments(call) if call.id not in failed else {}
            path = _name(arguments.get("path"))
            if path and call.name in _CHANGING:
                yield "changed", path
            elif path and call.name == "file_read" and arguments.get("mode", "view") in _READING_MODES:
                yield "read", path


def _failed(messages: Sequence[Message]) -> set[str | None]:
    return {message.tool_call_id for message in messages if message.role == "tool" and message.is_error}


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


def _lines(lines: str | None) -> tuple[str, ...]:
    return tuple(line for line in (lines or "").split("\n") if line and not _MORE.match(line))


def _first(lines: Sequence[str], most: int) -> list[str]:
    shown = _fitting(lines, most)
    return [*shown, *_more(len(lines) - len(shown))]


def _latest(lines: Sequence[str], most: int) -> list[str]:
    shown = _fitting(lines[::-1], most)
    return [*shown[::-1], *_more(len(lines) - len(shown))]


def _fitting(lines: Sequence[str], most: int) -> list[str]:
    """As many of the lines, from the first on, as have at most `most` characters together."""
    sizes = accumulate(len(line) + 1 for line in lines)
    return [line for line, size in zip(lines, sizes, strict=True) if size <= most]


def _more(left_out: int) -> list[str]:
    return [f"(and {left_out:,} more)"] if left_out else []


def _part(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>" if text else ""
