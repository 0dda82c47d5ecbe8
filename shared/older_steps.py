"""Reads from text what today's steps say in typed fields, for runs that older drones recorded.

The texts are those of drones without `ToolResultStep.execution` and `Prepared.workspace`, and of messages without
`Message.part`. They are never changed: today's messages may be reworded freely, and nothing here is asked about a step
that has the fields.
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
_NOTE_OF_SHELL = re.compile(r"\((?:return code -?\d+|(?P<ended>ended) [^\n]*)\)(?:\n\n\[.*\])?\Z", re.DOTALL)
_WORKSPACE = re.compile(r"^Workspace: (/.+)$", re.MULTILINE)


def part_of(content: str) -> Part:
    """What a message of the user is."""
    if content.startswith("<summary>\n") and content.endswith("\n</summary>"):
        return "summary"
    return "opening" if "<situation>" in content else "other"


def execution_of(step: ToolResultStep, *, is_shell: bool) -> Execution:
    """What became of the call. A result with a return code is a command's own, whatever it printed."""
    if step.return_code is not None:
        return "answered"
    if step.is_error and step.output.startswith(_HELD_BACK):
        return "held_back"
    if not is_shell:
        return "answered"
    note = _NOTE_OF_SHELL.search(step.output)
    if note is not None and note["ended"]:
        return "timed_out"
    return "answered" if step.is_error else "submitted"


def note_of(step: ToolResultStep, execution: Execution, *, is_shell: bool) -> str:
    """What was added to the output for the model."""
    if execution in {"held_back", "submitted"}:
        return step.output
    return note_of_shell(step.output) if is_shell else ""


def note_of_shell(shown: str) -> str:
    """What the shell tool added below a command's output; empty where it added nothing.

    An output without an end of line has got one: the line that is taken off had to begin somewhere.
    """
    match = _NOTE_OF_SHELL.search(shown)
    return match[0] if match else ""


def workspace_in(prompt: str) -> str:
    """The directory that the message which opened a run names; empty where it names none."""
    found = _WORKSPACE.search(prompt)
    return found[1] if found else ""
