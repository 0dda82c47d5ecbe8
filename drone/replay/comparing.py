"""Compares each result that the loop records with the recording; stops at the first difference."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from itertools import takewhile
from typing import Any

from drone.agent.values import DeltaKind, WaitsFor
from drone.replay.playback import RecordedPeople, RecordedToolbox, Script
from drone.replay.recorded_shell import RecordedShell, whole_output
from drone.replay.recording import Expected, RecordedCall
from drone.tools.shell import SUBMIT_LINE
from shared.errors import InterruptLoop
from shared.events import Body, ToolCallStep, ToolResultStep
from shared.outcome import ExitStatus, Outcome

_NUL = "\N{SYMBOL FOR NULL}"
SHOWN_OUTPUT = 20_000
"""Characters of an output that are included in a report."""
DIFF_LINES = 400
"""Lines of each side in a diff for people, starting at the first that differs."""
DIFF_WIDTH = 500
_BEFORE = 3


@dataclass(frozen=True)
class Observation:
    """The compared part of a call's result."""

    output: str
    return_code: int | None
    timed_out: bool

    def document(self) -> dict[str, Any]:
        return {
            "return_code": self.return_code,
            "timed_out": self.timed_out,
            "output": _cut(self.output, SHOWN_OUTPUT),
        }


@dataclass(frozen=True)
class Difference:
    """The first observation that differs."""

    step: int
    """The answer, counted from 1."""
    call: int
    """The call in it, counted from 1."""
    made: RecordedCall
    expected: Observation
    actual: Observation

    def document(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "call": self.call,
            "tool": self.made.tool,
            "command": self.made.command,
            "expected": self.expected.document(),
            "actual": self.actual.document(),
            "diff": self.diff(),
        }

    def diff(self) -> str:
        """Return the outputs as a unified diff; empty if only the return code differs."""
        return diff_of(self.expected.output, self.actual.output)


class Comparison:
    """Implements `drone.agent.protocols.Recorder`, which sees everything that the loop does."""

    def __init__(self, script: Script, people: RecordedPeople, toolbox: RecordedToolbox, shell: RecordedShell) -> None:
        self._script = script
        self._people = people
        self._toolbox = toolbox
        self._shell = shell
        self._recorded = 0
        self.compared = 0
        self.not_run = 0
        """Calls that were not run in the recording, or cannot be run here."""
        self.unreadable = 0
        """Calls whose observation was not recorded, or was recorded in an unknown format."""
        self.difference: Difference | None = None

    def record(self, body: Body) -> int:
        if isinstance(body, ToolCallStep):
            self._shell.take()
        elif isinstance(body, ToolResultStep) and self.difference is None:
            self._result(body)
        self._recorded += 1
        return self._recorded

    def delta(self, kind: DeltaKind, text: str) -> None:
        """Do nothing: nothing is streamed."""

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        """Do nothing: there is no heartbeat."""

    def _result(self, body: ToolResultStep) -> None:
        step, number, call = self._script.find(body.call_id)
        if not self._toolbox.runs(body.call_id, call.tool):
            self.not_run += 1
        elif call.expected is None:
            self.unreadable += 1
        else:
            self.compared += 1
            expected, actual = self._expected(call.expected), self._actual(body, call.expected)
            if not _same(call.expected, expected, actual):
                self.difference = Difference(step, number, call, expected, actual)
                # The loop stops at its next check, with a valid transcript.
                why = f"The observation of step {step} differs."
                self._people.stop = InterruptLoop(outcome=Outcome(ExitStatus.STOPPED, why))

    def _expected(self, expected: Expected) -> Observation:
        output = self._text(expected.output)
        if expected.tail is not None:
            output = f"{output}\n[… {expected.elided:,} characters elided …]\n{self._text(expected.tail)}"
        return Observation(output, _code(expected.return_code), expected.timed_out)

    def _actual(self, body: ToolResultStep, expected: Expected) -> Observation:
        """Return the result of this replay, in the form of the recording."""
        result = self._shell.take()
        if result is None:
            return Observation(self._text(body.output), body.return_code, timed_out=False)
        output = self._text(whole_output(result))
        if expected.submits and output.lstrip().startswith(SUBMIT_LINE):
            # Output before the line is not recorded; our own recordings also strip the white space around the rest.
            rest = output.lstrip().partition("\n")[2]
            output = f"{SUBMIT_LINE}\n{rest.strip() if self._script.recording.own else rest}"
        if expected.timed_out and not self._script.recording.own:
            # mini-swe-agent kills immediately. We ask first, so a command may print more: this is not compared.
            output = output[: len(self._text(expected.output)) + expected.elided + len(self._text(expected.tail or ""))]
        if expected.tail is not None:
            output = _elided(output, len(self._text(expected.output)), expected)
        return Observation(output, result.return_code, result.timed_out)

    def _text(self, text: str) -> str:
        text = self._script.places.there(text.replace("\0", _NUL))
        # mini-swe-agent reads outputs in text mode, which normalizes line endings.
        return text if self._script.recording.own else text.replace("\r\n", "\n").replace("\r", "\n")


def _same(recorded: Expected, expected: Observation, actual: Observation) -> bool:
    if expected.timed_out != actual.timed_out:
        return False
    if not expected.timed_out and recorded.return_code is not None and expected.return_code != actual.return_code:
        return False
    return expected.output.removesuffix("\n") == actual.output.removesuffix("\n")


def _code(code: int | None) -> int | None:
    """Map the death of a process by signal n to 128 + n, as shells do."""
    return 128 - code if code is not None and code < 0 else code


def _elided(output: str, head: int, expected: Expected) -> str:
    """Leave out as much of `output` as in the recording, which does not contain that part."""
    if len(output) <= head + expected.elided:
        return output
    return f"{output[:head]}\n[… {expected.elided:,} characters elided …]\n{output[head + expected.elided :]}"


def diff_of(expected: str, actual: str) -> str:
    """Return a unified diff that starts near the first differing line, cut to a readable size."""
    old, new = expected.removesuffix("\n").split("\n"), actual.removesuffix("\n").split("\n")
    if old == new:
        return ""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    start = max(0, same - _BEFORE)
    if same < min(len(old), len(new)) and max(len(old[same]), len(new[same])) > DIFF_WIDTH:
        old[same], new[same] = _where_they_part(old[same], new[same])
    was, is_now = ([_cut(line, DIFF_WIDTH) for line in lines[start : start + DIFF_LINES]] for lines in (old, new))
    lines = list(unified_diff(was, is_now, "expected", "actual", lineterm=""))
    note = [f"(the first {start:,} lines are the same)"] if start else []
    return "\n".join([*note, *lines])


def _where_they_part(old: str, new: str) -> tuple[str, str]:
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    start = max(0, alike - 100)
    mark = "…" if start else ""
    return mark + old[start:], mark + new[start:]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}… ({len(text) - length:,} more characters)"
