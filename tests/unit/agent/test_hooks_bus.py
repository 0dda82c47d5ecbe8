"""Handlers, what they may change, and what comes of those that do wrong: through the real loop."""

from __future__ import annotations

from typing import Any

import pytest

from drone.agent.agent import Agent
from drone.agent.hooks.bus import TOO_OFTEN, HookBus
from drone.agent.hooks.events import CANCEL, EVENTS, BeforeCompaction, Block, Patch, Settled, TurnStart
from drone.agent.values import ToolResult
from shared.events import ToolResultStep
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus
from tests.support.scripted import Loop, calls, raising, says

CALL = ToolCall(id="c1", name="echo")
COMPACTION = BeforeCompaction("window", 100, ())


class Hooked(Loop):
    """The loop with a bus, whose reports are kept."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reports: list[str] = []
        self.bus = HookBus(lambda what, detail: self.reports.append(what), "the context")
        self.agent = Agent(
            self.model, self.toolbox, self.recorder, self.controls, self.limits, self.clock, hooks=self.bus
        )

    def give(self, event: str, *given: Any) -> None:
        """Register one handler for each answer."""
        for one in given:
            self.bus.on(event, lambda event, context, one=one: one, source="the extension x.py")


def test_handlers_are_called_in_the_order_of_their_registration_until_they_are_taken_back() -> None:
    loop, heard = Hooked([says("Done.")]), []
    loop.bus.on("agent_start", lambda event, context: heard.append(("never", event.name, context)))()
    loop.bus.on("agent_start", lambda event, context: heard.append(("first", event.name, context)))
    loop.bus.on("agent_start", lambda event, context: heard.append(("second", event.name, context)))
    loop.run()
    assert heard == [("first", "agent_start", "the context"), ("second", "agent_start", "the context")]


def test_only_plain_functions_are_registered_and_for_events_that_exist() -> None:
    async def handler(event: object, context: object) -> None: ...

    loop = Hooked([])
    for event in EVENTS:
        loop.give(event, None)
    assert [event for event in EVENTS if not loop.bus.listens(event)] == []
    with pytest.raises(ValueError, match="tool_cal"):
        loop.bus.on("tool_cal", print)
    with pytest.raises(TypeError, match="async"):
        loop.bus.on("input", handler)


def test_context_replaces_the_history_which_is_mended_wherever_it_was_cut() -> None:
    asked = Message(role="assistant", tool_calls=(CALL,))
    history = (Message(role="user", content="x"), asked, Message(role="tool", tool_call_id="c1", content="y"))
    for kept in ([0], [1], [2], [0, 2], [1, 0], []):
        loop = Hooked([says("Done.")])
        loop.bus.on("context", lambda event, context, kept=kept: [event.messages[n] for n in kept])
        loop.run(*history)
        assert loop.reports == []
        assert ("x" in [message.content for message in loop.model.asked[0]]) == (0 in kept)


class Mean(Exception):
    def __str__(self) -> str:
        raise RuntimeError


WRONG = [
    ("before_agent_start", 5, "int"),
    ("before_agent_start", " ", "str"),
    ("context", "hello", "str"),
    ("context", [1], "list"),
    ("context", [Message(role="system", content="x")], "system message"),
    ("ephemeral", {"role": "user"}, "dict"),
    ("ephemeral", [Message(role="assistant", content="x")], "role"),
    ("tool_call", True, "bool"),
    ("tool_result", "patched", "str"),
    ("tool_result", Patch(output=5), "wrong types"),  # type: ignore[arg-type]
]


def test_a_policy_that_fails_or_gives_a_wrong_answer_lets_no_call_pass() -> None:
    loop = Hooked([calls("one"), says("Done.")])
    loop.bus.on("tool_call", lambda *_: raising(ValueError("boom"))(None), source="the extension p.py", policy=True)
    loop.run()
    assert loop.toolbox.ran == []
    assert "the extension p.py is a policy and failed: ValueError: boom" in loop.told[1][1]
    # It goes on to block, and does not fill the journal.
    assert all("boom" in (loop.bus.block(CALL) or "") for _ in range(50))
    assert len(loop.reports) == TOO_OFTEN
    bus = HookBus(lambda *_: None)
    bus.on("tool_call", lambda *_: False, policy=True)
    assert "bool" in (bus.block(CALL) or "")


def test_a_handler_of_everything_observes_and_its_answers_count_for_nothing() -> None:
    loop, heard = Hooked([calls("one"), says("Done.")]), []
    loop.bus.on("*", lambda event, context: heard.append(event.name) or "this is no answer")
    assert loop.run().exit_status is ExitStatus.STOPPED
    assert {"input", "tool_call", "tool_result", "settled"} <= set(heard)
    assert loop.reports == []


def test_a_blocked_call_is_not_run_and_the_model_is_told_why() -> None:
    loop = Hooked([calls("one"), says("Done.")])
    loop.give("tool_call", None, Block("not on Sundays"), "never asked")
    loop.run()
    assert loop.toolbox.ran == []
    assert loop.told[1] == ("tool", "This call was blocked: not on Sundays")
    assert [kind for kind in loop.kinds if kind.startswith("tool")] == ["tool_call", "tool_result"]


def test_patches_add_up_and_each_handler_sees_what_those_before_it_made() -> None:
    loop, seen = Hooked([calls("one"), says("Done.")]), []
    loop.bus.on("tool_result", lambda event, context: Patch(output=event.result.output + " two"))
    loop.bus.on("tool_result", lambda event, context: Patch(output=event.result.output + " three", is_error=True))
    loop.bus.on("tool_result", lambda event, context: seen.append((event.result.output, event.result.is_error)))
    loop.run()
    assert seen == [("one two three", True)]
    assert loop.told[1] == ("tool", "one two three")


def test_a_call_that_all_hooks_end_is_the_last_question_to_the_model() -> None:
    loop = Hooked([calls("one", "two"), says("never")])
    loop.give("tool_result", Patch(terminate=True), Patch())
    assert loop.run().exit_status is ExitStatus.STOPPED
    assert (len(loop.model.asked), len(loop.toolbox.ran)) == (1, 2)
    other = Hooked([calls("one", "two"), says("Done.")])
    other.bus.on("tool_result", lambda event, context: Patch(terminate=event.result.output == "one"))
    other.run()
    assert len(other.model.asked) == 2


def test_before_agent_start_replaces_the_prompt_and_each_handler_sees_the_last_one() -> None:
    loop = Hooked([says("Done.")])
    loop.bus.on("before_agent_start", lambda event, context: event.system_prompt + " Twice.")
    loop.bus.on("before_agent_start", lambda event, context: event.system_prompt.upper())
    loop.run()
    assert loop.model.asked[0][0].content == "YOU ARE TESTED. TWICE."


def test_ephemeral_messages_are_in_the_question_and_nowhere_else() -> None:
    loop = Hooked([calls("one"), says("Done.")])
    loop.bus.on("ephemeral", lambda event, context: [Message(role="user", content="two windows are open")])
    loop.run()
    assert [asked[-1].content for asked in loop.model.asked] == ["two windows are open"] * 2
    assert "windows" not in str([*loop.agent.transcript, *loop.recorder.bodies])


def test_a_compaction_is_canceled_or_replaced_by_the_first_handler_that_answers() -> None:
    loop = Hooked([])
    loop.give("session_before_compact", None, "what went before", CANCEL)
    assert loop.bus.before_compaction(COMPACTION) == "what went before"
    loop.bus.replace([])
    loop.give("session_before_compact", CANCEL)
    assert loop.bus.before_compaction(COMPACTION) is CANCEL


def test_an_observer_that_raises_is_reported_and_breaks_nothing() -> None:
    errors = {"ValueError: boom": ValueError("boom"), "SystemExit": SystemExit(1), "Mean": Mean()}
    for event in ("input", "context", "turn_start", "tool_result", "ephemeral", "agent_end", "settled"):
        for said, error in {**errors, "KeyboardInterrupt": KeyboardInterrupt()}.items():
            loop = Hooked([calls("one"), says("Done.")])
            loop.bus.on(event, lambda *_, error=error: raising(error)(None), source="the extension x.py")
            assert loop.run().exit_status is ExitStatus.STOPPED
            assert loop.reports[0].startswith(f"The extension x.py failed on {event}: {said}")
    late = Hooked([says("Done.")])
    late.bus.on("ephemeral", lambda *_: (raising(ValueError("late"))(None) for _ in range(1)))
    assert late.run().exit_status is ExitStatus.STOPPED
    assert "ValueError: late" in late.reports[0]


def test_an_answer_of_the_wrong_type_is_reported_and_ignored() -> None:
    for event, answer, complaint in WRONG:
        loop = Hooked([calls("one"), says("Done.")])
        loop.give(event, answer)
        loop.run()
        assert complaint in loop.reports[0]
        assert loop.told == [("assistant", ""), ("tool", "one"), ("assistant", "Done.")]
    compacting = Hooked([])
    compacting.give("session_before_compact", 7)
    assert compacting.bus.before_compaction(COMPACTION) is None
    assert len(compacting.reports) == 1


def test_a_policy_holds_for_the_calls_of_children_and_other_handlers_do_not_hear_of_them() -> None:
    loop = Hooked([])
    loop.give("*", None)
    loop.give("tool_call", "not a policy")
    children = loop.bus.for_children()
    assert children.block(CALL) is None
    loop.bus.on("tool_call", lambda *_: "the owner forbids it", policy=True)
    assert children.block(CALL) == "the owner forbids it"


def test_a_handler_that_fails_all_the_time_is_switched_off_and_does_not_fill_the_journal() -> None:
    loop = Hooked([says("Done.")])
    loop.bus.on("turn_start", lambda *_: raising(ValueError("boom"))(None), source="the extension x.py")
    assert [loop.bus.notify(TurnStart(number)) for number in range(50)]
    assert len(loop.reports) == TOO_OFTEN


def test_what_a_handler_sets_off_itself_no_handler_is_told_of() -> None:
    loop, heard = Hooked([]), []
    loop.bus.on("settled", lambda event, context: (heard.append(event), loop.bus.notify(event)))
    loop.bus.notify(Settled())
    assert len(heard) == 1


def test_foreign_texts_with_half_characters_and_nul_can_be_recorded() -> None:
    bus = HookBus(lambda *_: None)
    bus.on("tool_result", lambda *_: Patch(output="a\ud800b\0c"))
    bus.on("tool_call", lambda *_: "no\ud800")
    assert ToolResultStep(call_id="c", output=bus.patched(CALL, ToolResult("x")).result.output).output == "a?b␀c"
    assert bus.block(CALL) == "no?"
