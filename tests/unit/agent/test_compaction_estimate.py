"""Estimates of tokens: by length, corrected by the endpoint's count, at a cost that does not grow with the texts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from drone.agent.compaction import estimate as estimate_module
from drone.agent.compaction.estimate import Estimate, WindowBudget
from drone.agent.values import ToolSpec
from shared.events import Usage
from shared.messages import Message
from shared.work_order import Limits
from tests.support.compactions import SYSTEM, Compacting, called, long_conversation, said

TEXT = "The quick brown fox jumps over the lazy dog. " * 100


def _estimate(tools: Sequence[ToolSpec] = (), window: int = 16_000) -> Estimate:
    return Estimate(Compacting(window=window).model, lambda: tools, Limits())


@pytest.mark.parametrize(
    ("window", "full", "keep"), [(131_072, 122_880, 16_384), (16_000, 12_000, 4_000), (32_768, 24_576, 8_192)]
)
def test_reserve_and_what_is_kept_are_a_quarter_of_a_small_window(window: int, full: int, keep: int) -> None:
    assert (WindowBudget(window).full, WindowBudget(window).keep) == (full, keep)


def test_everything_that_is_sent_counts() -> None:
    plain = _estimate().messages(said("assistant", "x"))
    richer = [
        said("assistant", TEXT),
        said("assistant", "x").model_copy(update={"thinking": TEXT}),
        said("assistant", "x").model_copy(update={"thinking_blocks": ({"thinking": TEXT},)}),
        called(1, "", text=TEXT)[0],
    ]
    assert [_estimate().messages(message) > plain + 1_000 for message in richer] == [True] * 4
    assert _estimate([ToolSpec("look", TEXT)]).question([SYSTEM]) > 1_000


def test_text_beyond_ascii_counts_by_its_bytes() -> None:
    assert _estimate().text("日本語" * 100) > 300 > _estimate().text("abc" * 100)
    assert _estimate().text("\ud800") >= 1


def test_the_first_guess_is_corrected_by_what_the_endpoint_counts() -> None:
    estimate = _estimate()
    messages = [SYSTEM, said("user", TEXT)]
    estimate.learned(Usage(input_tokens=1_000), messages)
    assert estimate.question(messages) == 1_000
    assert estimate.question([*messages, said("user", TEXT)]) == pytest.approx(1_990, abs=20)


def test_a_conversation_counted_as_it_grows_has_the_tokens_of_one_counted_at_once() -> None:
    conversation, growing = list(long_conversation(steps=60)), _estimate()
    for count in range(1, len(conversation) + 1):
        assert growing.question(conversation[:count]) == _estimate().question(conversation[:count])
    last = conversation[-7:]
    assert growing.messages(*last) == growing.messages(*reversed(last))


@pytest.mark.parametrize("counted", [7, 10_000_000])
def test_nonsense_corrects_within_bounds(counted: int) -> None:
    estimate = _estimate()
    messages = [SYSTEM, said("user", TEXT)]
    guess = estimate.question(messages)
    estimate.learned(Usage(input_tokens=counted), messages)
    assert guess / 2 - 1 <= estimate.question(messages) <= guess * 4


def test_an_endpoint_that_counts_nothing_changes_nothing() -> None:
    estimate = _estimate()
    guess = estimate.question([SYSTEM])
    estimate.learned(Usage(), [SYSTEM])
    assert estimate.question([SYSTEM]) == guess


def test_an_overflow_raises_a_guess_that_was_never_corrected() -> None:
    estimate = _estimate(window=16_000)
    messages = [SYSTEM, said("user", TEXT)]
    estimate.overflowed(messages)
    assert estimate.question(messages) == pytest.approx(16_000, abs=1)
    assert estimate.room().window == 16_000


def test_an_overflow_against_a_corrected_guess_means_a_smaller_window_until_more_was_taken() -> None:
    estimate = _estimate(window=16_000)
    messages = [SYSTEM, said("user", TEXT)]
    estimate.learned(Usage(input_tokens=1_200), messages)
    estimate.overflowed(messages)
    assert estimate.room().window == 1_200
    estimate.learned(Usage(input_tokens=1_500), messages)
    assert estimate.room().window == 1_500


def test_a_window_that_changes_counts_at_once() -> None:
    around = Compacting(window=16_000)
    transcript = long_conversation(steps=18)
    assert not around.compaction.due(transcript)
    around.model.window = 8_000
    assert around.compaction.due(transcript)


def test_what_is_no_longer_asked_is_forgotten() -> None:
    estimate = _estimate()
    for number in range(500):
        estimate.question([SYSTEM, said("user", str(number))])
    assert len(estimate._sizes) < 100


def test_a_further_look_at_a_long_conversation_measures_only_what_was_added(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Message] = []
    size_of = estimate_module._message_size
    monkeypatch.setattr(
        estimate_module, "_message_size", lambda message: (measured.append(message), size_of(message))[1]
    )
    history = [SYSTEM, *(message for number in range(400) for message in called(number, "é" * 100))]
    around = Compacting(window=10**9)
    around.compaction.due(history)
    assert len(measured) == len(history)
    measured.clear()
    around.compaction.due([*history, (added := said("user", "More."))])
    assert measured == [added]
