"""The rule that every transcript keeps, under any sequence of answers and of things that go wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drone.agent.approvals import AskingFor
from drone.agent.budget import RunBudget
from drone.agent.compaction.window_compaction import WindowCompaction
from drone.agent.in_memory import ECHO, SUBMIT, EchoToolbox, NoGuardrails, QuietControls
from drone.agent.values import ModelCallFailed, ModelResponse, OnDelta, Ruling, ToolResult, ToolSpec, Verdict
from shared.errors import Interrupted, LimitsExceeded, Preempted, Submitted
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.transcripts import messages_of, repaired
from shared.work_order import Limits
from tests.support.compactions import is_as_recorded
from tests.support.scripted import Loop
from tests.support.scripted_model import ScriptedModel
from tests.support.transcripts import problems

ASKED = Message(role="assistant", tool_calls=(ToolCall(id="a", name="echo"), ToolCall(id="b", name="echo")))
TOLD = Message(role="user", content="Go on.")


def _result(call_id: str) -> Message:
    return Message(role="tool", tool_call_id=call_id, content="done")


TWICE = Message(role="assistant", tool_calls=(ToolCall(id="a", name="echo"), ToolCall(id="a", name="echo")))


def test_each_way_to_break_the_rule_is_found() -> None:
    wire = {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": ""}}]}
    broken: list[tuple[list[Any], str]] = [
        ([ASKED, _result("a"), TOLD], "call 'b' is not answered before message 2"),
        ([ASKED, _result("a")], "call 'b' is never answered"),
        ([ASKED, _result("a"), _result("b"), _result("b")], "message 3 answers call 'b'"),
        ([TOLD, _result("a")], "message 1 answers call 'a'"),
        ([TOLD, Message(role="system", content="s")], "only the first message"),
        ([wire], "call 'x'"),
        ([TWICE, _result("a"), _result("a")], "2 times"),
    ]
    for messages, problem in broken:
        assert any(problem in found for found in problems(messages)), problem
    assert problems([Message(role="system"), TOLD, ASKED, _result("b"), _result("a"), TOLD]) == []


_messages = st.one_of(
    st.builds(Message, role=st.just("user"), content=st.text(max_size=5)),
    st.builds(_result, st.sampled_from("abc")),
    st.lists(st.sampled_from("abc"), unique=True).map(
        lambda ids: Message(role="assistant", tool_calls=tuple(ToolCall(id=i, name="echo") for i in ids))
    ),
)


@given(st.lists(_messages, max_size=12))
def test_any_history_is_mended_into_a_valid_one_which_stays_as_it_is(history: list[Message]) -> None:
    whole = repaired(history)
    assert problems(whole) == []
    assert repaired(whole) == whole


_arguments = st.one_of(
    st.dictionaries(st.just("text"), st.text(max_size=8)), st.sampled_from(["", "{", "[]", "null", "{}", '"x"'])
)
_call = st.fixed_dictionaries(
    {"name": st.sampled_from(["echo", "echo", "submit", "nothing"]), "arguments": _arguments},
    optional={"id": st.sampled_from(["", "0", "1"])},
)
_CANCELED = Outcome(ExitStatus.CANCELED, "Canceled.")
_signal = st.sampled_from(
    [
        None,
        None,
        Interrupted(Message(role="user", content="Wait.")),
        Preempted(outcome=_CANCELED),
        LimitsExceeded(outcome=Outcome(ExitStatus.TIME_LIMIT, "Too long.")),
        Submitted(),
    ]
)


class AtOnce(EchoToolbox):
    """The echo tools, whose calls of `echo` may run at the same time."""

    def specs(self) -> list[ToolSpec]:
        return [replace(ECHO, parallel=True), SUBMIT]


_verdict = st.sampled_from(
    [Verdict()] * 4 + [Verdict(action, "Hm.", "code", "rule") for action in ("warn", "block", "halt")]
)
_long_reply = st.fixed_dictionaries(
    {"text": st.text(max_size=300), "tool_calls": st.lists(_call, min_size=1, max_size=3)},
    optional={"status": st.sampled_from([200, 200, 200, 413])},
)


class Deciding(NoGuardrails):
    """Guardrails that say one thing after the other."""

    def __init__(self, verdicts: list[Verdict]) -> None:
        self._verdicts = verdicts

    def before(self, _call: ToolCall) -> Verdict:
        return self._verdicts.pop() if self._verdicts else Verdict()

    def after(self, _call: ToolCall, _result: ToolResult) -> Verdict:
        return self._verdicts.pop() if self._verdicts else Verdict()


class Judging(QuietControls):
    """Controls by which people approve every second call, and ask for a compaction now and then."""

    def __init__(self, compact_every: int) -> None:
        super().__init__()
        self._asked = self._steps = 0
        self._every = compact_every

    def ruling(self, _call_id: str) -> Ruling:
        self._asked += 1
        return Ruling(approved=self._asked % 2 == 1)

    def compaction_asked(self) -> str | None:
        self._steps += 1
        return "Be brief." if self._steps % self._every == 0 else None


class Small(ScriptedModel):
    """A scripted model with a small window, which is full at once for some questions, and summarizes in one word."""

    window = 2000

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_delta: OnDelta) -> ModelResponse:
        if not tools:
            return ModelResponse(Message(role="assistant", content="Summary."), finish_reason="stop", model="scripted")
        try:
            return super().answer(messages, tools, on_delta)
        except ModelCallFailed as failed:
            full = "413" in failed.what
            raise ModelCallFailed(failed.what, error_class="context_overflow" if full else "server") from failed


@settings(deadline=None)
@given(
    st.lists(_long_reply, max_size=14),
    st.lists(_verdict, max_size=12),
    st.lists(_signal, max_size=6),
    st.lists(_messages, max_size=10),
    st.tuples(st.integers(1, 6), st.booleans()),
)
def test_any_compactions_rulings_and_interruptions_leave_a_valid_transcript(
    script: list[dict[str, Any]],
    verdicts: list[Verdict],
    signals: list[Exception | None],
    history: list[Message],
    how: tuple[int, bool],
) -> None:
    compact_every, at_once = how
    toolbox = AtOnce() if at_once else EchoToolbox()
    loop = Loop(script, Limits(max_run_seconds=10), controls=Judging(compact_every), toolbox=toolbox)
    agent = loop.agent
    agent.model = loop.model = Small(script, loop.clock, cost_usd=0.0)
    budget = RunBudget(loop.limits, loop.clock)
    agent.compaction = WindowCompaction(agent.model, loop.recorder, agent.hooks, budget, lambda: agent.tools, "")
    agent.guardrails, agent.approvals = Deciding(verdicts), None if at_once else AskingFor("all")
    loop.toolbox.on_call = lambda _: setattr(loop.controls, "signal", signals.pop() if signals else None)
    loop.run(*history)
    assert [problems(asked) for asked in loop.model.asked] == [[]] * len(loop.model.asked)
    recorded = messages_of(loop.recorder.bodies, repaired(history))
    assert all(map(is_as_recorded, agent.transcript[1:], recorded))
    assert len(recorded) == len(agent.transcript) - 1
