"""The way of one call: guardrails, hooks and people before it, and what becomes of its result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from drone.agent.approvals import AskingFor
from drone.agent.calls import in_words
from drone.agent.hooks.events import AgentError, HookEvent
from drone.agent.in_memory import EchoToolbox, KeptEvents, NoGuardrails, NoHooks, QuietControls
from drone.agent.values import Patched, Ruling, ToolResult, Verdict
from shared.errors import Conflict, Interrupted
from shared.events import ApprovalStep, DecisionStep, GuardrailStep, ToolResultStep
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus
from shared.work_order import Limits
from tests.support.clocks import HandClock
from tests.support.scripted import Loop, calls, raising, says


@dataclass
class Ruled(NoGuardrails):
    """Guardrails that say one thing before each call, and one thing after it."""

    first: Verdict = field(default_factory=Verdict)
    then: Verdict = field(default_factory=Verdict)

    def before(self, _call: ToolCall) -> Verdict:
        return self.first

    def after(self, _call: ToolCall, _result: ToolResult) -> Verdict:
        return self.then


@dataclass
class Patching(NoHooks):
    """Hooks that block, or that change every result."""

    why: str | None = None
    terminates: tuple[str, ...] = ()

    def block(self, _call: ToolCall) -> str | None:
        return self.why

    def patched(self, call: ToolCall, result: ToolResult) -> Patched:
        return Patched(
            replace(result, output=f"<{result.output}>"), any(name in call.arguments for name in self.terminates)
        )


class Answering(HandClock):
    """A clock by which a person answers after a while."""

    def __init__(self, controls: QuietControls, after: float, ruling: Ruling | BaseException) -> None:
        super().__init__()
        self.controls, self.after, self.ruling = controls, after, ruling

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.monotonic() >= self.after and isinstance(self.ruling, Ruling):
            self.controls.rulings["call_0_0"] = self.ruling
        elif self.monotonic() >= self.after and isinstance(self.ruling, BaseException):
            self.controls.signal, self.ruling = self.ruling, Ruling(approved=True)


def waiting(ruling: Ruling | BaseException, after: float = 100.0, **limits: float) -> Loop:
    """A loop whose calls all wait for a person, who answers after so many seconds."""
    controls = QuietControls()
    clock = Answering(controls, after, ruling)
    loop = Loop([calls("a"), says("done")], limits=Limits(**limits), controls=controls, clock=clock)
    loop.agent.approvals = AskingFor("all")
    return loop


def executions(loop: Loop) -> list[str]:
    return [body.execution for body in loop.recorder.bodies if isinstance(body, ToolResultStep)]


def results(loop: Loop) -> list[str]:
    return [body.output for body in loop.recorder.bodies if isinstance(body, ToolResultStep)]


def test_a_warning_stands_below_the_result_and_is_recorded() -> None:
    loop = Loop([calls("a"), says("done")])
    loop.agent.guardrails = Ruled(
        Verdict("warn", "Again?", "code_1", "loops"), Verdict("warn", "Slow.", "code_2", "time")
    )
    loop.run()
    assert results(loop) == ["a\n\n[Again?]\n\n[Slow.]"]
    assert [body.note for body in loop.recorder.bodies if isinstance(body, ToolResultStep)] == [
        "\n\n[Again?]\n\n[Slow.]"
    ]
    recorded = [body for body in loop.recorder.bodies if isinstance(body, GuardrailStep)]
    assert [(body.guardrail, body.action, body.code) for body in recorded] == [
        ("loops", "warn", "code_1"),
        ("time", "warn", "code_2"),
    ]


def test_a_blocked_call_is_not_run_and_the_run_goes_on() -> None:
    loop = Loop([calls("a"), says("done")])
    loop.agent.guardrails = Ruled(Verdict("block", "Not again.", "code", "loops"))
    assert loop.run().exit_status is ExitStatus.STOPPED
    assert loop.toolbox.ran == []
    assert results(loop) == ["This call was blocked: Not again."]
    assert executions(loop) == ["held_back"]


@pytest.mark.parametrize(
    "ruled", [{"first": Verdict("halt", "Enough.", "c", "g")}, {"then": Verdict("halt", "Enough.", "c", "g")}]
)
def test_a_halt_ends_the_run_with_every_call_answered(ruled: dict[str, Verdict]) -> None:
    loop = Loop([calls("a", "b")])
    loop.agent.guardrails = Ruled(**ruled)
    outcome = loop.run()
    assert (outcome.exit_status, outcome.reason) == (ExitStatus.HALTED, "A guardrail ended the run: Enough.")
    assert len(loop.toolbox.ran) == len(ruled.keys() & {"then"})
    assert len(results(loop)) == 2


def test_a_hook_that_blocks_goes_before_the_guardrails() -> None:
    loop = Loop([calls("a"), says("done")])
    loop.agent.hooks = Patching(why="not on Sundays")
    loop.agent.guardrails = Ruled(Verdict("halt", "never asked", "c", "g"))
    loop.run()
    assert results(loop) == ["This call was blocked: not on Sundays"]
    assert loop.toolbox.ran == []


def test_a_patched_result_is_what_the_model_sees_and_what_is_recorded() -> None:
    loop = Loop([calls("a"), says("done")])
    loop.agent.hooks = Patching()
    loop.run()
    assert results(loop) == ["<a>"]
    assert loop.told[1] == ("tool", "<a>")


def test_when_every_call_of_a_message_terminates_the_model_is_not_asked_again() -> None:
    loop = Loop([calls("a", "b")])
    loop.agent.hooks = Patching(terminates=("a", "b"))
    outcome = loop.run()
    assert (outcome.exit_status, outcome.reason) == (ExitStatus.STOPPED, "An extension ended the turn.")


def test_when_only_some_calls_terminate_the_turn_goes_on() -> None:
    loop = Loop([calls("a", "b"), says("done")])
    loop.agent.hooks = Patching(terminates=("a",))
    assert loop.run().response == "done"


def test_an_approved_call_is_run_and_the_wait_does_not_count() -> None:
    loop = waiting(Ruling(approved=True, comment="go"), max_run_seconds=60)
    outcome = loop.run()
    assert outcome.exit_status is ExitStatus.STOPPED
    assert [call.name for call in loop.toolbox.ran] == ["echo"]
    assert [body.kind for body in loop.recorder.bodies[2:6]] == ["tool_call", "approval", "decision", "tool_result"]
    assert loop.agent.stats().duration_ms < 1000
    assert loop.clock.monotonic() >= 100


def test_a_denied_call_is_not_run_and_the_model_reads_why() -> None:
    loop = waiting(Ruling(approved=False, comment="use the script"))
    loop.run()
    assert loop.toolbox.ran == []
    assert results(loop) == ["This call was not approved: use the script"]
    decided = next(body for body in loop.recorder.bodies if isinstance(body, DecisionStep))
    assert (decided.approved, decided.by, decided.comment) == (False, "person", "use the script")


def test_a_call_that_nobody_answers_counts_as_denied_after_its_time() -> None:
    loop = waiting(Ruling(approved=True), after=7200.0, approval_timeout=3600)
    loop.run()
    asked = next(body for body in loop.recorder.bodies if isinstance(body, ApprovalStep))
    decided = next(body for body in loop.recorder.bodies if isinstance(body, DecisionStep))
    assert asked.until is not None
    assert (decided.approved, decided.by) == (False, "clock")
    assert results(loop) == ["This call was not approved: not answered within 3600 s"]


def test_an_interruption_ends_the_wait_and_is_heard() -> None:
    loop = waiting(Interrupted(Message(role="user", content="Stop that.")))
    assert loop.run().response == "done"
    assert loop.toolbox.ran == []
    assert ("user", "Stop that.") in loop.told
    decided = next(body for body in loop.recorder.bodies if isinstance(body, DecisionStep))
    assert (decided.approved, decided.by) == (False, "interruption")


def test_a_malformed_call_is_answered_before_anybody_is_asked() -> None:
    loop = Loop([{"tool_calls": [{"name": "echo", "arguments": "not json"}]}, says("done")])
    loop.agent.approvals = AskingFor("all")
    loop.run()
    assert "approval" not in loop.kinds
    assert "not valid JSON" in results(loop)[0]


@pytest.mark.parametrize("depth", [65, 300, 900, 5000])
def test_arguments_that_are_nested_too_deep_are_refused_and_kept_as_text(depth: int) -> None:
    nested = '{"text": ' + "[" * depth + "]" * depth + "}"
    loop = Loop([{"tool_calls": [{"name": "echo", "arguments": nested}]}, says("done")])
    loop.run()
    assert results(loop) == [
        "Error: the arguments of echo are nested too deeply. Send the call again with plain values."
    ]
    assert (
        next(body for body in loop.recorder.bodies if body.kind == "tool_call").model_dump(mode="json")["arguments"]
        == nested
    )


def test_a_call_without_a_name_is_told_the_names() -> None:
    loop = Loop([{"tool_calls": [{"name": "", "arguments": {}}]}, says("done")])
    loop.run()
    assert results(loop) == ["Error: this call names no tool. Call one of: echo, submit."]


def test_after_its_end_a_run_can_go_on_with_what_the_loop_has_to_say() -> None:
    loop = Loop([says("first"), calls("a"), says("second")])
    assert loop.run().response == "first"
    assert loop.agent.go_on("Not good enough.").response == "second"
    assert loop.told[1] == ("user", "Not good enough.")


class Hearing(NoHooks):
    def __init__(self) -> None:
        self.heard: list[HookEvent] = []

    def notify(self, event: HookEvent) -> None:
        self.heard.append(event)


def test_extensions_hear_of_a_bug_that_ends_the_run() -> None:
    loop = Loop([calls("a")], toolbox=EchoToolbox(raising(KeyError("lost"))))
    loop.agent.hooks = hearing = Hearing()
    with pytest.raises(KeyError):
        loop.run()
    assert [event for event in hearing.heard if isinstance(event, AgentError)] == [AgentError("'lost'", "")]


def test_a_busy_agent_takes_no_other_turn() -> None:
    recorder = KeptEvents()
    toolbox = EchoToolbox(lambda _: loop.agent.run("x", (), "again"))
    loop = Loop([calls("a")], recorder=recorder, toolbox=toolbox)
    with pytest.raises(Conflict, match=r"the agent is busy \(phase: turn\)"):
        loop.run()
    assert loop.agent.phase == "idle"


def test_while_a_person_is_asked_the_run_says_that_it_waits_for_one_and_then_no_more() -> None:
    loop = waiting(Ruling(approved=True))
    loop.run()
    assert loop.recorder.waited_for == ["", "person", "", ""]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"command": "npm test"}', "shell: npm test"),
        ('{"path": "a.py", "text": "x"}', "shell: a.py"),
        ('{"url": "https://example.org/"}', "shell: https://example.org/"),
        ('{"command": 7}', "running shell"),
        ("[]", "running shell"),
        ("{", "running shell"),
    ],
)
def test_a_call_in_words_names_what_it_is_pointed_at(arguments: str, words: str) -> None:
    assert in_words(ToolCall(id="c", name="shell", arguments=arguments)) == words
