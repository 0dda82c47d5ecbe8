"""Any sequence of deltas, whole or odd, becomes answers that leave a valid transcript."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drone.agent.values import ModelResponse, OnDelta, ToolSpec
from drone.model.assembly import Assembly
from shared.messages import Message
from shared.transcripts import problems
from tests.support.clocks import HandClock
from tests.support.scripted import Loop

_text = st.one_of(st.none(), st.text(max_size=4))
_function = st.builds(
    SimpleNamespace,
    name=st.sampled_from([None, "", "echo", "submit", "nothing"]),
    arguments=st.sampled_from([None, "", "{", '{"text":', ' "x"}', "{}", "[]", '"x"', "\ud83d"]),
)
_piece = st.builds(
    SimpleNamespace,
    index=st.sampled_from([None, 0, 0, 1, 7]),
    id=st.sampled_from([None, "", "a", "b"]),
    function=_function,
)
_delta = st.builds(
    SimpleNamespace,
    content=_text,
    reasoning_content=_text,
    tool_calls=st.one_of(st.none(), st.lists(_piece, max_size=3)),
)
_answer = st.tuples(st.lists(_delta, max_size=8), st.sampled_from(["stop", "tool_calls", "length"]))


class Streaming:
    """A model whose answers are put together from deltas, and which then has nothing left to say."""

    window = 131_072

    def __init__(self, answers: Sequence[tuple[list[Any], str]]) -> None:
        self._answers = list(answers)
        self.asked: list[list[Message]] = []

    def answer(self, messages: Sequence[Message], _tools: Sequence[ToolSpec], on_delta: OnDelta) -> ModelResponse:
        self.asked.append(list(messages))
        if not self._answers:
            return ModelResponse(Message(role="assistant", content="Done."), finish_reason="stop")
        deltas, finish = self._answers.pop(0)
        assembly = Assembly(on_delta, HandClock())
        any(map(assembly.add, deltas))
        return ModelResponse(assembly.message(), finish_reason=finish)


@settings(deadline=None)
@given(st.lists(_answer, max_size=6))
def test_any_deltas_leave_a_valid_transcript_whose_text_is_theirs(answers: list[tuple[list[Any], str]]) -> None:
    loop = Loop([])
    loop.agent.model = model = Streaming(answers)
    loop.run()
    assert [problems(asked) for asked in model.asked] == [[]] * len(model.asked)
    told = "".join(text for kind, text in loop.recorder.deltas if kind == "text")
    said = "".join(body.text for body in loop.recorder.bodies if body.kind == "assistant")
    assert said.removesuffix("Done.") == told
