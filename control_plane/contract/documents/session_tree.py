"""A session's tree in drawing order: the line that continues stays left, branches come before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Doc = dict[str, Any]


@dataclass
class Place:
    """One turn of the tree, or the root, as it is drawn."""

    entry: Doc | None
    """None: the root."""
    depth: int
    """Number of branches between it and the line that continues."""
    begins_branch: bool = False
    notes: list[Doc] = field(default_factory=list)
    """Its notes, in the order of writing."""


def places(entries: Sequence[Doc]) -> list[Place]:
    """Every turn of a session's document, the root first; each comes after the turn that it continues."""
    known = {entry["id"] for entry in entries}
    children: defaultdict[str | None, list[Doc]] = defaultdict(list)
    notes: defaultdict[str | None, list[Doc]] = defaultdict(list)
    for entry in entries:
        parent = entry["parent"] if entry["parent"] in known else None
        (children if entry["kind"] == "turn" else notes)[parent].append(entry)
    return [Place(entry, depth, begins, notes[_id(entry)]) for entry, depth, begins in _walk(children)]


def _walk(children: dict[str | None, list[Doc]]) -> Iterator[tuple[Doc | None, int, bool]]:
    """Depth first, without recursion: a session may have thousands of turns in one line."""
    waiting: list[tuple[Doc | None, int, bool]] = [(None, 0, False)]
    while waiting:
        entry, depth, begins = waiting.pop()
        yield entry, depth, begins
        following = sorted(children[_id(entry)], key=lambda child: bool(child["on_path"]))
        if not following:
            continue
        # The last one continues this line; the others are branches, drawn before it.
        waiting.append((following[-1], depth, False))
        waiting.extend((child, depth + 1, True) for child in reversed(following[:-1]))


def note_text(note: Doc) -> str:
    """One line for people."""
    words = _NOTES.get(note["kind"])
    return words(note["data"]) if words else str(note["kind"])


def _label(data: Doc) -> str:
    return f"label: {data['text']}" if data["text"] else "label removed"


def _leaf(data: Doc) -> str:
    if "forked_from" in data:
        return f"forked from session {data['forked_from']}"
    return f"switched here from {data['from'] or 'the root'}"


def _compaction(data: Doc) -> str:
    if "asked_by" in data:
        return "compaction requested" + (f": {data['instructions']}" if data["instructions"] else "")
    return f"compacted ({data['cause']}): {data['tokens_before']:,} → {data['tokens_after']:,} tokens"


_NOTES: dict[str, Callable[[Doc], str]] = {
    "label": _label,
    "leaf": _leaf,
    "compaction": _compaction,
    "model_change": lambda data: f"model changed from {data['from']} to {data['to']}",
    "mode_change": lambda data: f"mode changed from {data['from']} to {data['to']}",
    "branch_summary": lambda data: f"summary of the branch that was left: {data['text']}",
    "name": lambda data: f"renamed to {data['to']}",
}


def _id(entry: Doc | None) -> str | None:
    return entry["id"] if entry is not None else None
