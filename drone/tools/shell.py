"""shell: one command line in the sandbox, with bounded time and output (S-064)."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from drone.agent.values import ToolResult, with_note
from drone.sandbox import CommandResult, CommandSpec, Sandbox
from drone.sandbox.protocol import Check, OnOutput
from drone.tools.arguments import ShellArguments
from drone.tools.wrong_use import WrongUse
from shared.errors import Refused, Submitted
from shared.events import Execution
from shared.outcome import ExitStatus, Outcome

SUBMIT_LINE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""As the first line of a command's output, it submits the rest (M-003)."""
_NOTHING_PRINTED = "\n(the command succeeded and printed nothing)"
_CUT = "\n(the middle is not shown: use head, tail or grep, or write the output to a file and search it)"
_TOO_LARGE = 128 + signal.SIGXFSZ


@dataclass(frozen=True)
class Shell:
    """Runs shell lines in the workspace."""

    workspace: Path
    sandbox: Sandbox
    command_timeout: float
    """Seconds; 0 for no limit."""
    log_dir: Path
    on_output: OnOutput | None
    check: Check
    readable: tuple[Path, ...] = ()
    """Directories outside the workspace that a command may read, for example a skill's scripts."""
    refuse: Callable[[str], None] = lambda _: None
    """Raises Refused for a line that the drone's owner does not allow."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def __call__(self, call: ShellArguments) -> ToolResult:
        if "\0" in call.command:
            raise WrongUse("a command line cannot contain NUL bytes; write them with printf '\\0'")
        try:
            self.refuse(call.command)
        except Refused as refused:
            raise WrongUse(f"refused by the policy of the drone's owner: {refused.why}; {refused.what}") from refused
        timeout = call.timeout or self.command_timeout
        result = self.sandbox.run(
            CommandSpec(
                call.command,
                workspace=self.workspace,
                timeout=timeout,
                log=self._fresh_log(),
                on_output=self.on_output,
                check=self.check,
                read_only=self.readable,
            )
        )
        _submit_if_asked(call.command, result)
        note = _how_it_ended(result, timeout)
        note += _NOTHING_PRINTED if result.return_code == 0 and not result.output.strip() else ""
        note += _CUT if result.log is not None or result.no_log else ""
        note += f"\n(its log was not kept: {result.no_log})" if result.no_log else ""
        note += "".join(f"\n(network policy of this drone: {each})" for each in result.refused)
        note += "".join(f"\n(limit of this drone: {each})" for each in result.reached)
        return ToolResult(
            with_note(result.output, note),
            return_code=result.return_code,
            is_error=result.return_code is None,
            execution=_execution(result),
            note=note,
            output_bytes=result.output_bytes,
            log=result.log,
        )

    def broken_off(self) -> str | None:
        """Output of the command that was running when the run was asked to stop; None if none was running."""
        result = self.sandbox.tally.broken_off
        return result.output if result else None

    def _fresh_log(self) -> Path:
        """An unused log path: an earlier run in the same directory may have left logs."""
        return next(path for number in self.numbers if not (path := self.log_dir / f"shell-{number:04}.log").exists())


def _execution(result: CommandResult) -> Execution:
    if result.over or result.lost:
        return "broken_off"
    return "timed_out" if result.return_code is None else "answered"


def _how_it_ended(result: CommandResult, timeout: float) -> str:
    if result.over:
        return f"(ended by a limit of this drone: {result.over})"
    if result.lost:
        return f"(ended: {result.lost}; the next command gets a new one)"
    if result.return_code == _TOO_LARGE:
        return f"(return code {result.return_code}: a file reached the largest size that this drone allows)"
    if result.return_code is None:
        return f"(ended after {timeout:g} s; set a longer `timeout` or run less at a time)"
    return f"(return code {result.return_code})"


def _submit_if_asked(command: str, result: CommandResult) -> None:
    """Raise Submitted for the magic line.

    Only if the command's text contains it: a file that contains the line, shown by `cat`, must not end a run.
    """
    first, _, rest = result.output.lstrip().partition("\n")
    if result.return_code == 0 and first.strip() == SUBMIT_LINE and SUBMIT_LINE in command:
        raise Submitted(outcome=Outcome(ExitStatus.SUBMITTED, "The model submitted its work.", rest.strip()))
