"""No sandbox: commands run as the drone's own user, with a clean environment and with nothing left running."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from drone.processes.tree import MARK
from drone.sandbox import keeper
from drone.sandbox.account import is_root
from drone.sandbox.command import Watch, at_once, run_line
from drone.sandbox.command_lines import limited, mark_of_keeper, new_mark, passable, shell_line, shell_program
from drone.sandbox.environment import carried, clean_environment, own_python, search_path
from drone.sandbox.keepers import OWN_PROCESSES, Keepers, Kind, run_held
from drone.sandbox.network import MACHINES_OWN, Gateway
from drone.sandbox.protocol import NO_VARIABLES, Asked, CommandLine, CommandResult, CommandSpec, Tally
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
    keepers: Keepers = field(default_factory=Keepers, compare=False)
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
            session = replace(self, scratch=scratch)
            watch = Watch(spec)
            if self.resources:
                usage = self.resources.watch([spec.workspace, scratch])
                watch = Watch(spec, usage, self.resources.spawn)
            if _HOLDS:
                asked = Asked(shell_line(command), session._environment(new_mark(self.owner)), spec.workspace)
                if self.scratch is None:
                    stack.callback(self.keepers.leave, self._kind)
                result = run_held(self.keepers, self._kind, asked, watch, self.tally)
            else:
                result = run_line(session.line(command, workspace=spec.workspace), watch, self.tally)
            return replace(result, reached=self.resources.take_reached() if self.resources else ())

    def line(
        self, command: str | Sequence[str], *, workspace: Path, variables: Mapping[str, str] = NO_VARIABLES
    ) -> CommandLine:
        mark = new_mark(self.owner)
        inside, carriers = carried(shell_line(command), variables)
        held = [sys.executable, "-I", "-S", keeper.__file__, "hold", str(os.getpid())] if _HOLDS else []
        arguments = limited([*held, *self._counted(inside)], self.resources)
        return CommandLine(arguments, self._environment(mark) | carriers, workspace, mark, held=_HOLDS)

    @property
    def _kind(self) -> Kind:
        def around(own: Sequence[str]) -> Asked:
            words = limited(self._counted([sys.executable, *own], OWN_PROCESSES), self.resources)
            environment = {"PATH": search_path(None, self.environ), MARK: mark_of_keeper(self.owner)}
            return Asked(words, environment, Path("/"))

        return Kind("none", around, self.resources.spawn if self.resources else at_once)

    def _environment(self, mark: str) -> dict[str, str]:
        if self.scratch is None:
            raise ValueError("a command that outlives its call requires a session's home: use for_session")
        # A separate home: tools must not find the owner's keys and settings by accident.
        home, tmp = self.scratch / "home", self.scratch / "tmp"
        for directory in (home, tmp):
            directory.mkdir(parents=True, exist_ok=True)
        path = search_path(None, self.environ)
        return clean_environment(home=str(home), tmp=str(tmp), path=path, mark=mark, source=self.environ)

    def _counted(self, arguments: Sequence[str], own: int = 0) -> list[str]:
        if self.resources is None:
            return list(arguments)
        return self.resources.counted(arguments, os.getuid(), alone=False, own=own)
