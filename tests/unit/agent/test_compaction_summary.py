"""The summary: one call where one is enough, several that fold where not, and never more than its room."""

from __future__ import annotations

import pytest

from drone.agent.values import ModelCallFailed
from tests.support.compactions import Compacting, called, conversation, long_conversation, said


def test_what_one_request_cannot_hold_is_summarized_in_several_each_folding_in_the_last() -> None:
    around = Compacting(window=8_000, summaries=[{"text": f"Up to {n}."} for n in range(9)])
    talk = [said("user" if n % 2 else "assistant", f"Word {n}. " * 300) for n in range(30)]
    around.compaction.compact(conversation(*talk), "window")
    asked = around.asked_with
    assert len(asked) > 3
    assert [f"<summary_so_far>\nUp to {n}.\n</summary_so_far>" in asked[n + 1] for n in range(len(asked) - 1)] == [
        True
    ] * (len(asked) - 1)
    assert all(around.estimate.messages(*question) < 6_000 for question in around.model.asked_for_summary)
    assert [any(f"Word {n}. Word {n}." in text for text in asked) for n in range(25)] == [True] * 25


def test_a_message_longer_than_a_request_is_told_in_pieces() -> None:
    around = Compacting(window=8_000)
    words = " ".join(f"w{n}" for n in range(12_000))
    around.compaction.compact(
        conversation(said("user", words), said("assistant", "Yes."), *called(1, "x" * 9_000)), "asked"
    )
    told = "".join(text.split("<conversation>\n")[1].split("\n</conversation>")[0] for text in around.asked_with)
    assert told.replace("\n", "").replace(" ", "").endswith("w11999[agent]Yes.")
    assert told.count("w6000") == 1


def test_a_request_that_the_endpoint_finds_too_long_is_made_in_smaller_parts() -> None:
    refusals = [{"status": 413}, {"status": 413}]
    around = Compacting(summaries=[*refusals, {"text": "Then it went.", "repeat": True}])
    assert around.compaction.compact(long_conversation(), "window")
    lengths = [len(text) for text in around.asked_with]
    assert lengths[0] > lengths[1] > lengths[2]
    assert around.steps[0].summary == "Then it went."


def test_an_endpoint_that_takes_nothing_is_not_asked_for_ever() -> None:
    around = Compacting(summaries=[{"status": 413, "repeat": True}])
    with pytest.raises(ModelCallFailed):
        around.compaction.compact(long_conversation(), "window")
    assert len(around.asked_with) < 8


def test_a_summary_that_is_too_long_is_cut_and_a_blank_one_of_a_hook_does_not_count() -> None:
    endless = "and then " * 20_000
    for by_hook in (None, endless):
        around = Compacting(summaries=[{"text": endless}])
        around.hooks.answer = by_hook
        around.compaction.compact(long_conversation(), "window")
        assert around.estimate.text(around.steps[0].summary) <= 1_610
        assert around.steps[0].summary.endswith("[…]")
    blank = Compacting()
    blank.hooks.answer = " "
    blank.compaction.compact(long_conversation(), "window")
    assert blank.steps[0].summary == "A summary."
