"""Detects calls that repeat without progress: first warns, then blocks, and finally ends the run (O-093)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field

from drone.agent.values import ToolResult, Verdict
from shared.messages import ToolCall
from shared.redaction import shortened

READ_ONLY = frozenset({"file_read", "glob", "grep", "web_fetch"})
EXACT_WARN, EXACT_BLOCK = 2, 5
TOOL_WARN, TOOL_HALT = 3, 8
SAME_WARN, SAME_BLOCK = 2, 5
REPEATED_HALT = 10
"""Equal calls in a row, or calls in a row that were not run: the model does not act on what it is told."""
_SHOWN = 160
"""Characters of a result in a reason."""


@dataclass
class _Streak:
    """A call's result, and how many times in a row it occurred."""

    times: int = 0
    result: str = ""
    shown: str = ""
    """The beginning of the result, for a reason."""


@dataclass
class LoopDetection:
    """A guardrail that counts within one turn.

    A call failed if its result is an error. A command with a non-zero return code also counts as a failed call, but
    only if it printed the same as before (a test run that fails differently than the last one is progress, not a
    loop), and never as a failure of its tool: grep without matches has worked. A success clears the counts of its call
    and of its tool. A call that is blocked, or that cannot be run, is one of those that end the run if they go on.
    """

    read_only: Container[str] = ()
    """Further tools that change nothing, and so return the same result unless something else changed it."""
    name: str = "loop_detection"
    _failed: dict[str, _Streak] = field(default_factory=dict)
    _same: dict[str, _Streak] = field(default_factory=dict)
    _tools: Counter[str] = field(default_factory=Counter)
    _last: str = ""
    _repeated: int = 0
    """Calls in a row with the signature `_last`."""
    _not_run: int = 0
    """Calls in a row that were not run."""

    def on_turn_start(self) -> None:
        """Reset the counts."""
        self._failed.clear()
        self._same.clear()
        self._tools.clear()
        self._last, self._repeated, self._not_run = "", 0, 0

    def before_call(self, call: ToolCall) -> Verdict:
        """Block a call that has failed, or has given the same result, too often; end the run if that does not help."""
        signature = signature_of(call)
        self._repeated = self._repeated + 1 if signature == self._last else 1
        self._last = signature
        failed, same = self._failed.get(signature, _Streak()), self._same.get(signature, _Streak())
        if failed.times >= EXACT_BLOCK:
            reason = f"the same {call.name} call has failed {failed.times} times; do something else."
            return self._stopped(call, failed) or Verdict("block", reason, "repeated_exact_failure_block")
        if same.times >= SAME_BLOCK:
            reason = f"the same {call.name} call has returned the same result {same.times} times; use what you have."
            return self._stopped(call, same) or Verdict("block", reason, "idempotent_no_progress_block")
        self._not_run = 0
        return Verdict()

    def unusable_call(self, call: ToolCall, problem: str) -> Verdict:
        """Count a call that names no tool, or whose arguments are not an object; too many in a row end the run."""
        self._last = ""
        return self._stopped(call, _Streak(shown=_shown(problem))) or Verdict()

    def _stopped(self, call: ToolCall, seen: _Streak) -> Verdict | None:
        """Count a call that is not run. Returns what ends the run if there were too many."""
        self._not_run += 1
        if self._last and self._repeated >= REPEATED_HALT:
            reason = f"the same {_named(call)} call was made {self._repeated} times in a row, always with: {seen.shown}"
            return Verdict("halt", reason, "repeated_call_halt")
        if self._not_run >= REPEATED_HALT:
            reason = f"{self._not_run} calls in a row could not be run, the last of {_named(call)}: {seen.shown}"
            return Verdict("halt", reason, "calls_not_run_halt")
        return None

    def after_call(self, call: ToolCall, result: ToolResult) -> Verdict:
        """Count a call's result; warn when it begins to look like a loop."""
        signature, digest = signature_of(call), _digest(f"{result.return_code} {result.output}")
        if not result.is_error and not result.return_code:
            self._failed.pop(signature, None)
            self._tools.pop(call.name, None)
            return self._succeeded(call, result)
        self._same.pop(signature, None)
        seen = self._failed.setdefault(signature, _Streak())
        seen.times = seen.times + 1 if result.is_error or seen.result in ("", digest) else 1
        seen.result, seen.shown = digest, _shown(result.output)
        self._tools[call.name] += result.is_error
        return _judged(call, seen, self._tools[call.name])

    def _succeeded(self, call: ToolCall, result: ToolResult) -> Verdict:
        if call.name not in READ_ONLY and call.name not in self.read_only:
            return Verdict()
        signature, digest = signature_of(call), _digest(result.output)
        before = self._same.get(signature)
        times = before.times + 1 if before and before.result == digest else 1
        self._same[signature] = _Streak(times, digest, _shown(result.output))
        if times < SAME_WARN:
            return Verdict()
        reason = f"The same {call.name} call has returned the same result {times} times. Use it, or change the call."
        return Verdict("warn", reason, "idempotent_no_progress_warning")


def signature_of(call: ToolCall) -> str:
    """Identity of a call: tool and arguments, regardless of their order and whitespace."""
    try:
        arguments = json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        arguments = call.arguments
    return f"{call.name}:{_digest(arguments)}"


def _judged(call: ToolCall, seen: _Streak, tool: int) -> Verdict:
    if tool >= TOOL_HALT:
        reason = f"{call.name} has failed {tool} times in a row, the last time with: {seen.shown}"
        return Verdict("halt", reason, "same_tool_failure_halt")
    if seen.times >= EXACT_WARN:
        reason = f"The same {call.name} call has failed {seen.times} times. Find out why, or try another approach."
        return Verdict("warn", reason, "repeated_exact_failure_warning")
    if tool >= TOOL_WARN:
        reason = f"{call.name} has failed {tool} times in a row. Read its output before you call it again."
        return Verdict("warn", reason, "same_tool_failure_warning")
    return Verdict()


def _named(call: ToolCall) -> str:
    return shortened(call.name, 64, end="…") or "a tool without a name"


def _shown(output: str) -> str:
    return shortened(output.strip().partition("\n")[0], _SHOWN, end="…")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
