"""Feedback on an edit: whether the file still parses.

Agents with it resolve more tasks (SWE-agent, arXiv:2405.15793, section 5.1). Unlike there, the edit stays: the project
may be for another version of the language than the drone's, and a change may need several edits.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from drone.sandbox import CommandSpec, Sandbox
from drone.sandbox.protocol import Check
from drone.tools import syntax_check
from drone.tools.paths import shown
from shared.redaction import cut_short

LARGEST = 90_000
"""Bytes before and after the edit; larger files are not checked, because Linux limits one argument to 128 KiB."""
_SECONDS = 10.0


@dataclass(frozen=True)
class SyntaxFeedback:
    """Parses edited files of the languages that Python's standard library can parse, inside the sandbox."""

    workspace: Path
    sandbox: Sandbox
    check: Check

    def note(self, path: Path, before: bytes | None, after: bytes) -> str:
        """Return a line that says why the file at `path` no longer parses; empty if it parses or is not checked.

        `before` None: the whole file is new. A file that did not parse before the edit either is not reported.
        """
        if path.suffix not in syntax_check.SUFFIXES or max(len(before or b""), len(after)) > LARGEST:
            return ""
        earlier = "-" if before is None else base64.b64encode(before).decode()
        result = self.sandbox.run(
            CommandSpec(
                [self.sandbox.python, "-I", "-S", "-W", "ignore", "-c", _script(), str(path), earlier],
                workspace=self.workspace,
                timeout=_SECONDS,
                check=self.check,
            )
        )
        found = result.output.strip()
        # The edit is made: a check that could not be run says nothing about it.
        if result.return_code != 0 or not found:
            return ""
        return f"\n(note: {shown(self.workspace, path)} no longer parses: {cut_short(found, 300)}; fix it)"


@cache
def _script() -> str:
    """The script's text, because its file is hidden in a sandbox."""
    return Path(syntax_check.__file__).read_text(encoding="utf-8")
