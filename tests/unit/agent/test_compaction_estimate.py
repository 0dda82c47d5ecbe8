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
from tests.support.compactions import SYSTEM, Compacting, called, said

TEXT = "The quick brown fox jumps over the lazy dog. " * 100


def _estimate(tools: Sequence[ToolSpec] = (), window: int = 16_000) -> Estimate:
    return Estimate(Compacting(window=window).model, lambda: tools, Limits())


def test_reserve_and_what_is_kept_are_a_quarter_of_a_small_window() -> None:
    budgets = {131_072: (122_880, 16_384), 16_000: (12_000, 4_000), 32_768: (24_576, 8_192)}
    assert {window: (WindowBudget(window).full, WindowBudget(window).keep) for window in budgets} == budgets


def test_nonsense_corrects_within_bounds_and_nothing_not_at_all() -> None:
    messages = [SYSTEM, said("user", TEXT)]
    for counted in (7, 10_000_000, 0):
        estimate = _estimate()
        guess = estimate.question(messages)
        estimate.learned(Usage(input_tokens=counted), messages)
        assert guess / 2 - 1 <= estimate.question(messages) <= guess * (4 if counted else 1)


def test_an_overflow_raises_a_guess_or_means_a_smaller_window_if_the_guess_was_corrected() -> None:
    messages = [SYSTEM, said("user", TEXT)]
    guessed = _estimate(window=16_000)
    guessed.overflowed(messages)
    assert guessed.question(messages) == pytest.approx(16_000, abs=1)
    assert guessed.room().window == 16_000
    corrected = _estimate(window=16_000)
    corrected.learned(Usage(input_tokens=1_200), messages)
    corrected.overflowed(messages)
    assert corrected.room().window == 1_200
    corrected.learned(Usage(input_tokens=1_500), messages)
    assert corrected.room().window == 1_500


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
    assert _estimate().text("日本語" * 100) > 300 > _estimate().text("abc" * 100)
    assert _estimate().text("\ud800") >= 1


def test_the_first_guess_is_corrected_by_what_the_endpoint_counts() -> None:
    estimate = _estimate()
    messages = [SYSTEM, said("user", TEXT)]
    estimate.learned(Usage(input_tokens=1_000), messages)
    assert estimate.question(messages) == 1_000
    assert estimate.question([*messages, said("user", TEXT)]) == pytest.approx(1_990, abs=20)


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
