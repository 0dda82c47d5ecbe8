"""No sandbox: commands run as the drone's own user, with a clean environment and with nothing left running."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from drone.sandbox import keeper
from drone.sandbox.command import Line, Watch, run_line
from drone.sandbox.environment import clean_environment, search_path
from drone.sandbox.limits import limited, new_mark, shell_line
from drone.sandbox.protocol import Check, CommandResult, OnOutput, Tally

WARNING = (
    "commands run without a sandbox: they can read and change everything that this user can; "
    "install bubblewrap, or give the drone a user of its own"
)


@dataclass(frozen=True)
class Direct:
    """Runs commands on the bare machine."""

    owner: str = ""
    scratch: Path | None = None
    tally: Tally = field(default_factory=Tally)
    kind: str = "none"
    warning: str = WARNING

    def for_session(self, *, scratch: Path, read_only: Sequence[Path] = ()) -> Direct:
        del read_only  # everything can be read anyway
        return replace(self, scratch=scratch)

    def run(  # noqa: PLR0913 - the protocol's
        self,
        command: str | Sequence[str],
        *,
        workspace: Path,
        timeout: float,
        log: Path | None = None,
        on_output: OnOutput | None = None,
        check: Check | None = None,
        read_only: Sequence[Path] = (),
    ) -> CommandResult:
        del read_only
        mark = new_mark(self.owner)
        with ExitStack() as stack:
            # A home of its own: tools must not come upon the owner's keys and settings by accident.
            scratch = self.scratch or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="drone-")))
            home, tmp = scratch / "home", scratch / "tmp"
            for directory in (home, tmp):
                directory.mkdir(parents=True, exist_ok=True)
            environment = clean_environment(home=str(home), tmp=str(tmp), path=search_path(None), mark=mark)
            line = Line(limited(_held(shell_line(command))), environment, workspace, mark)
            return run_line(line, Watch(timeout, log, on_output, check), self.tally)


def _held(arguments: list[str]) -> list[str]:
    """Put the keeper above the command, where the system has what it needs."""
    if sys.platform != "linux":
        return arguments
    return [sys.executable, "-I", "-S", str(Path(keeper.__file__)), str(os.getpid()), *arguments]
