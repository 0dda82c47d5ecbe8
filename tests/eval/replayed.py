"""The scripted model for one attempt: it plays the reference solution of a task, which proves the evaluation itself.

No model is measured this way, and every row says *replayed*.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.eval import mini, ours
from tests.eval.task import EvalTask

MODEL = "openai/scripted"
_SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_END = "END_OF_PATCH"


def script(task: EvalTask, agent: str) -> list[dict[str, Any]]:
    """The replies with which this agent leaves the reference solution behind."""
    return {ours.NAME: _our_script, mini.NAME: _mini_script}[agent](task)


def _our_script(task: EvalTask) -> list[dict[str, Any]]:
    look = _call("glob", pattern="**")
    if answer := task.text("reference.md"):
        return [look, {"text": answer}]
    read = [_call("file_read", path=change.path) for change in changes(task.text("reference.patch")) if not change.new]
    edits = [edit for change in changes(task.text("reference.patch")) for edit in _edits(change)]
    return [look, *read, *edits, _call("submit", summary="The reference solution is in place.")]


def _mini_script(task: EvalTask) -> list[dict[str, Any]]:
    look = _call("bash", command="git ls-files")
    if answer := task.text("reference.md"):
        quoted = answer.replace("'", "'\"'\"'")
        return [look, {**_call("bash", command=f"{_SUBMIT}; printf '%s' '{quoted}'"), "text": answer}]
    apply = f"git apply <<'{_END}'\n{task.text('reference.patch')}{_END}"
    return [look, _call("bash", command=apply), _call("bash", command=_SUBMIT)]


def _call(tool: str, **arguments: Any) -> dict[str, Any]:
    # Tokens are counted from the texts, so that the table has numbers of the right kind.
    usage: dict[str, int] = {}
    return {"text": f"Next: {tool}.", "tool_calls": [{"name": tool, "arguments": arguments}], "usage": usage}


@dataclass
class Change:
    """What a patch does to one file."""

    path: str
    new: bool
    hunks: list[tuple[str, str]] = field(default_factory=list)
    """Old and new text of each, with its context."""


def changes(patch: str) -> list[Change]:
    """Read a patch of git's. Raises ValueError for a file that it deletes or renames: no reference does."""
    found: list[Change] = []
    for part in re.split(r"^diff --git .*\n", patch, flags=re.MULTILINE)[1:]:
        target = re.search(r"^\+\+\+ b/(.*)$", part, flags=re.MULTILINE)
        if target is None:
            raise ValueError("a reference may only change and add files")
        hunks = re.split(r"^@@ .*\n", part, flags=re.MULTILINE)[1:]
        found.append(Change(target[1], "\nnew file mode" in f"\n{part}", [_both_sides(hunk) for hunk in hunks]))
    return found


def _both_sides(hunk: str) -> tuple[str, str]:
    lines = hunk.splitlines(keepends=True)
    old, new = ("".join(line[1:] for line in lines if line[0] in side) for side in (" -", " +"))
    return old, new


def _edits(change: Change) -> Iterator[dict[str, Any]]:
    for old, new in change.hunks:
        if change.new:
            yield _call("file_write", path=change.path, content=new)
        else:
            yield _call("editor", command="str_replace", path=change.path, old_str=old, new_str=new)
