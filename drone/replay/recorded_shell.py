"""The sandbox of a replay: the real one, with the recorded shell and variables; it keeps the results of commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from drone.sandbox import CommandResult, CommandSpec, Sandbox
from drone.sandbox.network import Gateway
from drone.sandbox.protocol import NO_VARIABLES, CommandLine, Tally

_NUL = "\N{SYMBOL FOR NULL}"


@dataclass
class RecordedShell:
    """Implements `drone.sandbox.Sandbox`. Shell lines are run by the shell with which they were recorded."""

    sandbox: Sandbox
    shell: Sequence[str] | None = None
    """None: the sandbox's shell."""
    variables: Mapping[str, str] | None = None
    last: CommandResult | None = None
    """Result of the last shell line; the reader takes it."""

    @property
    def kind(self) -> str:
        return self.sandbox.kind

    @property
    def warning(self) -> str:
        return self.sandbox.warning

    @property
    def network_rule(self) -> str:
        return self.sandbox.network_rule

    @property
    def hidden(self) -> tuple[Path, ...]:
        return self.sandbox.hidden

    @property
    def gateway(self) -> Gateway:
        return self.sandbox.gateway

    @property
    def user(self) -> int | None:
        return self.sandbox.user

    @property
    def python(self) -> str:
        return self.sandbox.python

    @property
    def tally(self) -> Tally:
        return self.sandbox.tally

    def for_session(self, *, scratch: Path, read_only: Sequence[Path] = ()) -> Self:
        self.sandbox = self.sandbox.for_session(scratch=scratch, read_only=read_only)
        return self

    def run(self, spec: CommandSpec) -> CommandResult:
        if not isinstance(spec.command, str):
            return self.sandbox.run(spec)
        self.last = self.sandbox.run(replace(spec, command=self._line(spec.command)))
        return self.last

    def line(
        self, command: str | Sequence[str], *, workspace: Path, variables: Mapping[str, str] = NO_VARIABLES
    ) -> CommandLine:
        return self.sandbox.line(command, workspace=workspace, variables=variables)

    def take(self) -> CommandResult | None:
        """Return the result of the last shell line, once."""
        last, self.last = self.last, None
        return last

    def _line(self, command: str) -> str | list[str]:
        if self.shell is None:
            return command
        variables = [f"{name}={value}" for name, value in (self.variables or {}).items()]
        return [*(["env", *variables] if variables else []), *self.shell, command]


def whole_output(result: CommandResult) -> str:
    """Return the full output of a command, in the format of short outputs."""
    if result.log is None:
        return result.output
    return result.log.read_text(encoding="utf-8", errors="replace").replace("\0", _NUL)
