"""Calls that only read run at the same time: in the order of the calls, judged as before, and ended together."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from drone.agent.budget import BudgetedControls, RunBudget
from drone.agent.hooks.bus import HookBus
from drone.agent.in_memory import SUBMIT, EchoToolbox, NoGuardrails
from drone.agent.values import ToolResult, ToolSpec, Verdict
from shared.errors import Interrupted, Preempted
from shared.events import ToolResultStep
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.work_order import Limits
from tests.support import wait_until
from tests.support.scripted import Loop, says

CANCELED = Preempted(outcome=Outcome(ExitStatus.CANCELED, "Canceled."))


def asks(*calls: str) -> dict[str, Any]:
    """A reply with these calls: `read a`, `write b`."""
    pairs = (call.split(" ") for call in calls)
    return {"tool_calls": [{"name": name, "arguments": {"text": text}} for name, text in pairs]}


class Reading(EchoToolbox):
    """A tool that only reads and one that may write; each call does what `act` does with its text, and returns it."""

    def __init__(self, act: Callable[[str], object] = lambda _: None) -> None:
        super().__init__()
        self.act = act
        self.lock = threading.Lock()
        self.running: set[str] = set()
        self.beside: dict[str, set[str]] = {}
        """By the text of a call: those that ran at any time while it ran, itself included."""
        self.ended: list[str] = []

    def specs(self) -> list[ToolSpec]:
        return [ToolSpec("read", "Read.", parallel=True), ToolSpec("write", "Write."), SUBMIT]

    def execute(self, call: ToolCall) -> ToolResult:
        if call.name == "submit":
            return super().execute(call)
        text = json.loads(call.arguments)["text"]
        with self.lock:
            self.running.add(text)
            self.beside[text] = set(self.running)
            for other in self.running:
                self.beside[other].add(text)
        try:
            self.act(text)
        finally:
            with self.lock:
                self.running.discard(text)
                self.ended.append(text)
        return ToolResult(text)


def reading(script: list[dict[str, Any]], act: Callable[[str], object] = lambda _: None, **limits: Any) -> Loop:
    loop = Loop([*script, says("Done.")], Limits(**limits))
    loop.toolbox = loop.agent.toolbox = Reading(act)
    return loop


def results(loop: Loop) -> list[str]:
    return [body.output for body in loop.recorder.bodies if isinstance(body, ToolResultStep)]


def executions(loop: Loop) -> list[str]:
    return [body.execution for body in loop.recorder.bodies if isinstance(body, ToolResultStep)]


def until_ended(loop: Loop, *texts: str) -> None:
    """Return when these calls have ended."""
    wait_until(lambda: set(texts) <= set(loop.toolbox.ended))


def waiting(loop: Loop) -> Callable[[str], None]:
    """Waits until the run's check raises, as a tool does; texts that begin with `quick` return at once."""
    check = BudgetedControls(loop.controls, RunBudget(loop.limits, loop.clock)).check

    def act(text: str) -> None:
        until = time.monotonic() + 60
        while not text.startswith("quick"):
            check()
            assert time.monotonic() < until, f"{text} was not ended"
            time.sleep(0.005)

    return act


def test_calls_that_only_read_run_at_the_same_time_and_are_answered_in_their_order() -> None:
    meet, ends = threading.Barrier(4, timeout=60), {text: threading.Event() for text in "abcd"}
    before = {"a": "b", "b": "c", "c": "d"}

    def act(text: str) -> None:
        meet.wait()
        assert text not in before or ends[before[text]].wait(60)
        ends[text].set()

    loop = reading([asks("read a", "read b", "read c", "read d")], act)
    assert loop.run().response == "Done."
    assert loop.toolbox.ended == ["d", "c", "b", "a"]
    assert results(loop) == ["a", "b", "c", "d"]
    assert [text for role, text in loop.told if role == "tool"] == ["a", "b", "c", "d"]
    assert loop.agent.stats().tool_calls == 4


def test_what_may_write_runs_alone_after_the_reads_before_it_and_before_those_after_it() -> None:
    calls = ("read a", "read b", "write c", "write d", "read e", "read f", "write g")
    pairs = {pair: threading.Barrier(2, timeout=60) for pair in ("ab", "ef")}

    def act(text: str) -> None:
        for pair, meet in pairs.items():
            if text in pair:
                meet.wait()

    loop = reading([asks(*calls)], act)
    loop.run()
    assert loop.toolbox.beside == {
        **{text: set("ab") for text in "ab"},
        **{text: {text} for text in "cdg"},
        **{text: set("ef") for text in "ef"},
    }
    assert results(loop) == list("abcdefg")
    # Calls that run together are recorded before the result of any of them.
    steps = "".join({"tool_call": "c", "tool_result": "r"}.get(kind, "") for kind in loop.kinds)
    assert steps == "ccrrcrcrccrrcr"


def test_equal_calls_run_one_after_the_other_so_that_a_loop_is_seen() -> None:
    meet, seen = {text: threading.Barrier(2, timeout=60) for text in "bc"}, Counter[str]()

    def act(text: str) -> None:
        # The first a meets b, and the second one c.
        seen[text] += 1
        meet[text if text in meet else "b" if seen["a"] == 1 else "c"].wait()

    loop = reading([asks("read a", "read b", "read a", "read c")], act)
    loop.run()
    assert loop.toolbox.beside["b"] == {"a", "b"}
    assert loop.toolbox.beside["c"] == {"a", "c"}


def test_each_is_recorded_and_judged_in_order_before_it_starts_and_so_are_the_results() -> None:
    heard: list[str] = []
    bus = HookBus(lambda *_: None)
    bus.on("tool_call", lambda event, context: heard.append(f"{event.call.id} asked"))
    bus.on("tool_result", lambda event, context: heard.append(f"{event.call.id} returned {event.result.output}"))
    loop = reading([asks("read a", "read b")])
    loop.toolbox.act = lambda text: text == "a" and until_ended(loop, "b")
    loop.agent.hooks = bus
    loop.run()
    assert heard == ["call_0_0 asked", "call_0_1 asked", "call_0_0 returned a", "call_0_1 returned b"]
    assert loop.kinds[2:6] == ["tool_call", "tool_call", "tool_result", "tool_result"]


@dataclass
class Judging(NoGuardrails):
    """Guardrails that halt before or after the call with this text."""

    before_text: str = ""
    after_text: str = ""
    asked: list[str] = field(default_factory=list)
    halted: threading.Event = field(default_factory=threading.Event)
    """Set after the call with `after_text`."""

    def before(self, call: ToolCall) -> Verdict:
        self.asked.append(json.loads(call.arguments)["text"])
        return Verdict("halt", "Enough.", "c", "g") if self.asked[-1] == self.before_text else Verdict()

    def after(self, _call: ToolCall, result: ToolResult) -> Verdict:
        if result.output != self.after_text:
            return Verdict()
        self.halted.set()
        return Verdict("halt", "Enough.", "c", "g")


def test_a_halt_before_a_call_lets_those_before_it_end_and_starts_no_other() -> None:
    judging = Judging(before_text="c")
    act: Callable[[str], object] = lambda _: wait_until(lambda: "c" in judging.asked)  # noqa: E731
    loop = reading([asks("read a", "read b", "read c", "read d")], act)
    loop.agent.guardrails = judging
    assert loop.run().exit_status is ExitStatus.HALTED
    assert judging.asked == ["a", "b", "c"]
    assert sorted(loop.toolbox.ended) == ["a", "b"]
    assert [text[:22] for text in results(loop)] == ["a", "b", "This call was blocked:", "This call was not run:"]
    assert executions(loop) == ["answered", "answered", "held_back", "held_back"]


def test_a_cancel_ends_all_that_run_keeps_what_has_a_result_and_starts_no_other() -> None:
    loop = reading([asks("read quick1", "read b", "read quick3", "read d", "read e")])
    wait = waiting(loop)

    def act(text: str) -> None:
        if text == "d":
            until_ended(loop, "quick1", "quick3")
            wait_until(lambda: "b" in loop.toolbox.running)
            loop.controls.signal = CANCELED
        wait(text)

    loop.toolbox.act = act
    assert loop.run() == CANCELED.outcome
    assert [text[:27] for text in results(loop)] == [
        "quick1",
        "This call was interrupted: ",
        "quick3",
        "This call was interrupted: ",
        "This call was not run: Canc",
    ]
    assert executions(loop) == ["answered", "broken_off", "answered", "broken_off", "held_back"]
    assert loop.toolbox.running == set()


def test_a_bug_in_one_of_them_comes_out_with_the_transcript_whole() -> None:
    def act(text: str) -> None:
        if text == "b":
            raise ZeroDivisionError("a bug")

    loop = reading([asks("read a", "read b", "read c")], act)
    with pytest.raises(ZeroDivisionError):
        loop.run()
    assert executions(loop) == ["answered", "broken_off", "broken_off"]
    assert loop.toolbox.running == set()


def test_a_person_who_interrupts_ends_all_of_them_and_is_heard_once() -> None:
    loop = reading([asks("read a", "read b", "read c")])
    wait = waiting(loop)

    def act(text: str) -> None:
        if text == "c":
            wait_until(lambda: loop.toolbox.running == set("abc"))
            loop.controls.signal = Interrupted(Message(role="user", content="Not there."))
        wait(text)

    loop.toolbox.act = act
    assert loop.run().response == "Done."
    assert executions(loop) == ["broken_off"] * 3
    assert [text for role, text in loop.told if role == "user"] == ["Not there."]
