"""No sandbox: commands run as the drone's own user, with a clean environment and with nothing left running."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from drone.sandbox import keeper
from drone.sandbox.account import is_root
from drone.sandbox.command import Watch, run_line
from drone.sandbox.command_lines import limited, new_mark, passable, shell_line, shell_program
from drone.sandbox.environment import carried, clean_environment, own_python, search_path
from drone.sandbox.network import MACHINES_OWN, Gateway
from drone.sandbox.protocol import NO_VARIABLES, CommandLine, CommandResult, CommandSpec, Tally
from drone.sandbox.resources import Resources

_HOLDS = sys.platform == "linux"
"""Whether there is a keeper: without subreapers it could not keep hold of anything."""


def warning_of(broken: str = "") -> str:
    """What a drone without a sandbox says; `broken` is why bubblewrap, although installed, does not work."""
    rights = ("as root and ", "on this machine") if is_root() else ("", "that this user can")
    fix = f"fix bubblewrap ({broken})" if broken else "install bubblewrap"
    return (
        f"commands run {rights[0]}without a sandbox: they can read and change everything {rights[1]}; "
        f"{fix}, or run the drone as a separate user"
    )


@dataclass(frozen=True)
class Direct:
    """Runs commands on the bare machine."""

    environ: Mapping[str, str] = field(repr=False, compare=False)
    """The drone's own environment."""
    gateway: Gateway = field(compare=False)
    """Commands do not need it to reach what the machine can."""
    resources: Resources | None = None
    """What commands may use of the machine; None: all of it."""
    owner: str = ""
    scratch: Path | None = None
    hidden: tuple[Path, ...] = ()
    tally: Tally = field(default_factory=Tally)
    kind: str = "none"
    python: str = field(default_factory=own_python)
    warning: str = field(default_factory=warning_of)

    @property
    def network_rule(self) -> str:
        return MACHINES_OWN

    @property
    def user(self) -> int | None:
        # A workspace that was used with another sandbox may belong to that one's account.
        return 0 if is_root() else None

    def for_session(self, *, scratch: Path, read_only: Sequence[Path] = ()) -> Direct:
        del read_only  # everything can be read anyway
        return replace(self, scratch=scratch)

    def run(self, spec: CommandSpec) -> CommandResult:
        with ExitStack() as stack:
            scratch = self.scratch or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="drone-")))
            command = stack.enter_context(passable(spec.command, shell_program(), scratch / "tmp"))
            line = replace(self, scratch=scratch).line(command, workspace=spec.workspace)
            watch = Watch(spec)
            if self.resources:
                usage = self.resources.watch([spec.workspace, scratch])
                watch = Watch(spec, usage, self.resources.spawn)
            result = run_line(line, watch, self.tally)
            return replace(result, reached=self.resources.take_reached() if self.resources else ())

    def line(
        self, command: str | Sequence[str], *, workspace: Path, variables: Mapping[str, str] = NO_VARIABLES
    ) -> CommandLine:
        if self.scratch is None:
            raise ValueError("a command that outlives its call requires a session's home: use for_session")
        # A separate home: tools must not find the owner's keys and settings by accident.
        home, tmp = self.scratch / "home", self.scratch / "tmp"
        for directory in (home, tmp):
            directory.mkdir(parents=True, exist_ok=True)
        mark = new_mark(self.owner)
        path = search_path(None, self.environ)
        environment = clean_environment(home=str(home), tmp=str(tmp), path=path, mark=mark, source=self.environ)
        inside, carriers = carried(shell_line(command), variables)
        if self.resources is not None:
            inside = self.resources.counted(inside, os.getuid(), alone=False)
        return CommandLine(limited(_held(inside), self.resources), environment | carriers, workspace, mark, held=_HOLDS)


def _held(arguments: list[str]) -> list[str]:
    """Put the keeper above the command, if the system supports it."""
    if not _HOLDS:
        return arguments
    return [sys.executable, "-I", "-S", str(Path(keeper.__file__)), str(os.getpid()), *arguments]
