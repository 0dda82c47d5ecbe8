"""Any conversation and any window: what a compaction leaves is valid, fits, and is what the record says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drone.agent.compaction.cut import Cause, cut
from drone.agent.transcript import Transcript
from shared.events import Usage
from shared.messages import Message
from shared.transcripts import messages_of, problems
from tests.support.compactions import SYSTEM, Compacting, called, is_as_recorded, outline, said

Plan = list[tuple[str, list[tuple[str, int]]]]
"""Kinds of messages, each with what its texts repeat and how often: what is drawn stays short enough to be shown."""
_TEXT = st.tuples(st.sampled_from(["word ", "x", "é", "日本", "😀"]), st.sampled_from([0, 1, 30, 400, 3_000, 10_000]))
_STEP = st.tuples(st.sampled_from(["user", "assistant", "calls"]), st.lists(_TEXT, min_size=1, max_size=6))
_FIRST = st.just([("summary", [("word ", 100)])]) | st.just([])


def _built(plan: Plan) -> list[Message]:
    return [SYSTEM, *(message for number, step in enumerate(plan) for message in _step(number, *step))]


def _step(number: int, kind: str, parts: list[tuple[str, int]]) -> list[Message]:
    """One message, or a message with calls and their results."""
    texts = [letters * length for letters, length in parts]
    if kind == "summary":
        return [said("user", f"<summary>\n{texts[0]}\n</summary>")]
    if kind != "calls":
        return [said(kind, texts[0])]
    pairs = [called(10 * number + at, text, text=texts[-1][:500]) for at, text in enumerate(texts)]
    asks = pairs[0][0].model_copy(update={"tool_calls": tuple(pair[0].tool_calls[0] for pair in pairs)})
    return [asks, *(pair[1] for pair in pairs)]


_PLANS = st.builds(lambda first, steps: first + steps, _FIRST, st.lists(_STEP, max_size=12))
_PARTS: dict[str, Any] = {
    "plan": _PLANS,
    "window": st.sampled_from([4_000, 16_000, 64_000, 200_000]),
    "cause": st.sampled_from(["window", "overflow", "asked"]),
}


@given(plan=_PLANS, window=_PARTS["window"], cause=st.sampled_from(["window", "asked"]))
def test_what_fits_stays_word_for_word(plan: Plan, window: int, cause: Cause) -> None:
    around, messages = Compacting(window=window), _built(plan)
    transcript = Transcript(messages)
    around.compaction.compact(transcript, cause)
    recorded = messages_of(around.recorder.bodies, messages[1:])
    assert list(transcript[1:]) == recorded or around.estimate.messages(*messages) > window // 8


@given(plan=_PLANS, window=_PARTS["window"], times=st.floats(0.6, 3.9))
def test_what_the_endpoint_counts_decides_and_not_the_guess(plan: Plan, window: int, times: float) -> None:
    around, messages = Compacting(window=window), _built(plan)
    counted = int(around.estimate.question(messages) * times)
    around.compaction.learned(Usage(input_tokens=counted), messages)
    too_much = counted > window - min(8192, window // 4)
    assert around.compaction.due(messages) == (
        too_much and cut(messages, around.compaction._estimate, "window") is not None
    )


def _unseen(messages: Sequence[Message]) -> list[str | None]:
    """The ids of the results that the model has not answered yet."""
    later = list(takewhile(lambda message: message.role != "assistant", reversed(messages)))
    return [message.tool_call_id for message in reversed(later) if message.role == "tool"]


def _cannot_leave(around: Compacting, transcript: Sequence[Message]) -> int:
    """What people said since the model's last word: it stays however long it is."""
    return around.estimate.messages(*(message for message in transcript[1:] if message.role == "user"))


@given(**_PARTS)
def test_what_is_left_is_valid_keeps_the_newest_and_the_unseen_and_is_what_the_record_says(
    plan: Plan, window: int, cause: Cause
) -> None:
    around, messages = Compacting(window=window), _built(plan)
    transcript = Transcript(messages)
    around.compaction.compact(transcript, cause)
    assert problems(transcript) == []
    assert transcript[0] == SYSTEM
    # Only results and the model's own words are shortened.
    kept = around.steps[0].kept if around.steps else len(messages) - 1
    tail = messages[len(messages) - kept :]
    assert [outline(message) for message in transcript[len(transcript) - kept :]] == [*map(outline, tail)]
    assert around.steps == [] or kept < len(messages) - 1
    assert _unseen(transcript) == _unseen(messages)
    recorded = messages_of(around.recorder.bodies, messages[1:])
    assert len(recorded) == len(transcript) - 1
    assert all(map(is_as_recorded, transcript[1:], recorded))
    if cause == "window":
        room = window - min(8192, window // 4) + _cannot_leave(around, transcript)
        assert not around.compaction.due(transcript)
        assert around.estimate.question(transcript) <= room
