"""grep and glob, also used by file_read: bounded searches by `file_tree.py`, which runs inside the sandbox."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from drone.agent.values import ToolResult, with_note
from drone.sandbox import CommandSpec, Sandbox
from drone.sandbox.command_lines import LONGEST_ARGUMENT
from drone.sandbox.protocol import Check
from drone.tools import file_tree
from drone.tools.arguments import GlobArguments, GrepArguments
from drone.tools.paths import LocatedPath, is_special, locate, shown
from drone.tools.wrong_use import WrongUse

ENTRIES = 200
"""Maximum paths in one answer (S-061)."""
SEARCH_SECONDS = 30.0
_LAST_WORD = 5.0
"""Extra seconds for a search to report its results when its time is up."""


@dataclass(frozen=True)
class Search:
    """Searches files and lines in the workspace and in `readable`."""

    workspace: Path
    sandbox: Sandbox
    check: Check
    readable: tuple[Path, ...] = ()
    seconds: float = SEARCH_SECONDS

    def grep(self, call: GrepArguments) -> ToolResult:
        """Return matching lines, grouped by file in order of path.

        The expression is matched inside the sandbox: one that never finishes ends with its command.
        """
        path = self.locate(call.path).path
        if is_special(path):
            raise WrongUse(f"{call.path!r} is a FIFO, a device or a socket; it cannot be searched")
        if not path.exists():
            raise WrongUse(f"{call.path!r} not found")
        return self._run(
            path,
            do="grep",
            pattern=call.pattern,
            names=call.glob or "",
            ignore_case=call.ignore_case,
            context=call.context,
            most=call.max_results,
        )

    def glob(self, call: GlobArguments) -> ToolResult:
        """Return matching paths, at most ENTRIES."""
        path = self.locate(call.path).path
        if not path.is_dir():
            raise WrongUse(f"{call.path!r} is not a directory; give a directory, and the name as the pattern")
        pattern = call.pattern.removeprefix(f"{path}/")
        return self._run(path, do="glob", pattern=pattern, newest_first=call.sort == "newest", most=ENTRIES)

    def locate(self, given: str) -> LocatedPath:
        """Raises WrongUse for a path that may not be read."""
        return locate(self.workspace, given, self.readable)

    def _run(self, path: Path, **wanted: object) -> ToolResult:
        directory = path if path.is_dir() else path.parent
        root = self.workspace.resolve()
        prefix = "" if directory == root else f"{shown(root, directory)}/"
        request = {
            **_NOTHING,
            **wanted,
            "top": str(directory),
            "only": "" if directory == path else path.name,
            "ceiling": str(root.parent),
            "shown_as": prefix,
            "seconds": self.seconds,
        }
        text = json.dumps(request)
        if len(text) > LONGEST_ARGUMENT:
            raise WrongUse(f"the search has {len(text):,} characters (maximum {LONGEST_ARGUMENT:,}); fix the pattern")
        result = self.sandbox.run(
            CommandSpec(
                [self.sandbox.python, *_script(), text],
                workspace=self.workspace,
                timeout=self.seconds + _LAST_WORD,
                check=self.check,
                read_only=self.readable,
            )
        )
        if result.timed_out:
            return ToolResult(f"(ended after {self.seconds:g} s; search a smaller directory)", is_error=True)
        if result.return_code == file_tree.FAILED:
            raise WrongUse(f"{result.output.strip()}; fix the pattern")
        if result.return_code != 0:
            note = f"(the search {result.how_it_ended})"
            note += "".join(f"\n(limit of this drone: {each})" for each in result.reached)
            return ToolResult(with_note(result.output, note), is_error=True, output_bytes=result.output_bytes)
        return ToolResult(result.output, output_bytes=result.output_bytes)


_NOTHING = {"names": "", "ignore_case": False, "context": 0, "newest_first": False}


@cache
def _script() -> list[str]:
    """Arguments for Python: the script's text, because its file is hidden in a sandbox."""
    return ["-I", "-S", "-c", Path(file_tree.__file__).read_text(encoding="utf-8")]
