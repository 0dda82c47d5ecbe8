"""Detects calls that repeat without progress: first warns, then blocks, and finally ends the run (O-093)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field

from drone.agent.values import ToolResult, Verdict
from shared.messages import ToolCall

READ_ONLY = frozenset({"file_read", "glob", "grep", "web_fetch"})
EXACT_WARN, EXACT_BLOCK = 2, 5
TOOL_WARN, TOOL_HALT = 3, 8
SAME_WARN, SAME_BLOCK = 2, 5


@dataclass
class _Streak:
    """A call's result, and how many times in a row it occurred."""

    times: int = 0
    result: str = ""


@dataclass
class LoopDetection:
    """A guardrail that counts within one turn.

    A call failed if its result is an error. A command with a non-zero return code also counts as a failed call, but
    only if it printed the same as before (a test run that fails differently than the last one is progress, not a
    loop), and never as a failure of its tool: grep without matches has worked. A success clears the counts of its call
    and of its tool.
    """

    read_only: Container[str] = ()
    """Further tools that change nothing, and so return the same result unless something else changed it."""
    name: str = "loop_detection"
    _failed: dict[str, _Streak] = field(default_factory=dict)
    _same: dict[str, _Streak] = field(default_factory=dict)
    _tools: Counter[str] = field(default_factory=Counter)

    def on_turn_start(self) -> None:
        """Reset the counts."""
        self._failed.clear()
        self._same.clear()
        self._tools.clear()

    def before_call(self, call: ToolCall) -> Verdict:
        """Block a call that has failed, or has given the same result, too often."""
        signature = signature_of(call)
        failed, same = self._failed.get(signature, _Streak()).times, self._same.get(signature, _Streak()).times
        if failed >= EXACT_BLOCK:
            reason = f"the same {call.name} call has failed {failed} times; do something else."
            return Verdict("block", reason, "repeated_exact_failure_block")
        if same >= SAME_BLOCK:
            reason = f"the same {call.name} call has returned the same result {same} times; use what you have."
            return Verdict("block", reason, "idempotent_no_progress_block")
        return Verdict()

    def after_call(self, call: ToolCall, result: ToolResult) -> Verdict:
        """Count a call's result; warn when it begins to look like a loop."""
        signature, digest = signature_of(call), _digest(f"{result.return_code} {result.output}")
        if not result.is_error and not result.return_code:
            self._failed.pop(signature, None)
            self._tools.pop(call.name, None)
            return self._succeeded(call, signature, digest)
        self._same.pop(signature, None)
        seen = self._failed.setdefault(signature, _Streak())
        seen.times = seen.times + 1 if result.is_error or seen.result in ("", digest) else 1
        seen.result = digest
        self._tools[call.name] += result.is_error
        return _judged(call, seen.times, self._tools[call.name])

    def _succeeded(self, call: ToolCall, signature: str, digest: str) -> Verdict:
        if call.name not in READ_ONLY and call.name not in self.read_only:
            return Verdict()
        before = self._same.get(signature)
        times = before.times + 1 if before and before.result == digest else 1
        self._same[signature] = _Streak(times, digest)
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


def _judged(call: ToolCall, exact: int, tool: int) -> Verdict:
    if tool >= TOOL_HALT:
        return Verdict("halt", f"{call.name} has failed {tool} times in a row.", "same_tool_failure_halt")
    if exact >= EXACT_WARN:
        reason = f"The same {call.name} call has failed {exact} times. Find out why, or try another approach."
        return Verdict("warn", reason, "repeated_exact_failure_warning")
    if tool >= TOOL_WARN:
        reason = f"{call.name} has failed {tool} times in a row. Read its output before you call it again."
        return Verdict("warn", reason, "same_tool_failure_warning")
    return Verdict()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
