"""Derives the typed fields of current steps from text, for runs recorded by older drones.

The texts are those of drones without `ToolResultStep.execution` and `Prepared.workspace`, and of messages without
`Message.part`. They never change: current messages may be reworded freely, because this module is not used for steps
that have the fields.
"""

from __future__ import annotations

import re

from shared.events import Execution, ToolResultStep
from shared.messages import Part

_HELD_BACK = (
    "This call was not run",
    "This call was broken off",
    "This call was blocked",
    "This call was not approved",
)
_NOTE = r"^\((?:return code -?\d+|(?P<ended>ended) [^\n]*)\)"
_NOTE_ALONE = re.compile(rf"{_NOTE}\Z", re.MULTILINE)
_NOTE_WITH_MORE = re.compile(rf"{_NOTE}\n\n\[", re.MULTILINE)
"""More follows in brackets, up to the end."""
_WORKSPACE = re.compile(r"^Workspace: (/.+)$", re.MULTILINE)


def part_of(content: str) -> Part:
    """The kind of a user message."""
    if content.startswith("<summary>\n") and content.endswith("\n</summary>"):
        return "summary"
    return "opening" if "<situation>" in content else "other"


def execution_of(step: ToolResultStep, *, is_shell: bool) -> Execution:
    """The outcome of the call. A result with a return code is from a command, regardless of its output."""
    if step.return_code is not None:
        return "answered"
    if step.is_error and step.output.startswith(_HELD_BACK):
        return "held_back"
    if not is_shell:
        return "answered"
    note = _found_note(step.output)
    if note is not None and note["ended"]:
        return "timed_out"
    return "answered" if step.is_error else "submitted"


def note_of(step: ToolResultStep, execution: Execution, *, is_shell: bool) -> str:
    """The note that was added to the output for the model."""
    if execution in {"held_back", "submitted"}:
        return step.output
    return note_of_shell(step.output) if is_shell else ""


def note_of_shell(shown: str) -> str:
    """The note that the shell tool added below a command's output; empty if there is none.

    If the output had no final newline, one was added before the note and remains.
    """
    found = _found_note(shown)
    return shown[found.start() :] if found else ""


def _found_note(shown: str) -> re.Match[str] | None:
    return (_NOTE_WITH_MORE if shown.endswith("]") else _NOTE_ALONE).search(shown)


def workspace_in(prompt: str) -> str:
    """The directory named in the message that opened a run; empty if there is none."""
    found = _WORKSPACE.search(prompt)
    return found[1] if found else ""
