"""Compaction: when it is due, what it leaves and records, its summaries and their footer, and who has a say in it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drone.agent.compaction.cut import Cause, cut
from drone.agent.compaction.estimate import Estimate
from drone.agent.compaction.footer import Footer, footer_of, parted, without_tags
from drone.agent.compaction.window_compaction import WindowCompaction
from drone.agent.hooks.events import CANCEL
from drone.agent.in_memory import KeptEvents
from drone.agent.transcript import Transcript
from drone.agent.values import ModelCallFailed, ToolSpec
from shared.errors import Conflict, LimitsExceeded
from shared.events import Body, Usage
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome
from shared.transcripts import messages_of, summary_message
from shared.work_order import Limits
from tests.support.compactions import (
    SYSTEM,
    Compacting,
    Heard,
    called,
    conversation,
    is_as_recorded,
    long_conversation,
    outline,
    said,
)
from tests.support.scripted import calls, says
from tests.support.transcripts import assert_valid, problems


def test_it_is_due_when_the_question_has_more_tokens_than_window_less_reserve() -> None:
    around = Compacting(window=16_000)
    assert not around.compaction.due(long_conversation(steps=19))
    assert around.compaction.due(long_conversation(steps=21))
    many = [ToolSpec(f"tool_{n}", "Does what it says.") for n in range(100)]
    heavy = WindowCompaction(around.model, around.recorder, around.hooks, around.budget, lambda: many, "")
    assert heavy.due(long_conversation(steps=18))
    # Who asks gets one also of a short conversation, by their instructions.
    short = long_conversation(steps=4, characters=100)
    assert not around.compaction.due(short)
    assert around.compaction.compact(short, "asked", "Keep the names of the tests.")
    assert (around.steps[0].cause, around.steps[0].tokens_after < around.steps[0].tokens_before) == ("asked", True)
    assert "Keep the names of the tests." in around.asked_with[0]


def test_a_call_that_is_too_long_is_shortened_and_its_unseen_result_and_signed_thinking_stay() -> None:
    around = Compacting()
    step = called(
        1, f"first {'y' * 60_000} last", path="a.py", content="begin " + "x" * 60_000 + " end", mode=[7, True]
    )
    signed = ({"type": "thinking", "thinking": "Hm.", "signature": "s" * 200},)
    step[0] = step[0].model_copy(update={"thinking_blocks": signed})
    transcript = conversation(*long_conversation()[1:], *step, said("user", "And?"))
    assert around.compaction.compact(transcript, "window")
    assert [message.role for message in transcript] == ["system", "user", "assistant", "tool", "user"]
    asked, result, last = transcript[-3:]
    given = json.loads(asked.tool_calls[0].arguments)
    assert (given["path"], given["mode"], last.content) == ("a.py", [7, True], "And?")
    left_out = r"\n\[… [\d,]+ characters left out to save room …\]\n"
    assert re.fullmatch(rf"begin x+{left_out}x+ end", given["content"])
    assert re.fullmatch(rf"first y*{left_out}y* last", result.content)
    assert asked.thinking_blocks == signed
    assert around.estimate.question(transcript) <= 12_000
    assert not around.compaction.due(transcript)


def test_a_summary_stands_for_all_but_the_system_prompt_and_a_quarter_of_a_window() -> None:
    usage = {"input_tokens": 900, "output_tokens": 7}
    around = Compacting(summaries=[{"text": "A summary.", "usage": usage}])
    earlier = [said("user", "What is the port?"), said("assistant", "It is 8421.")]
    transcript = conversation(*earlier, *long_conversation()[1:])
    before = list(transcript)
    assert around.compaction.compact(transcript, "window")
    kept = len(transcript) - 2
    assert list(transcript) == [before[0], transcript[1], *before[-kept:]]
    assert transcript[1].content == "<summary>\nA summary.\n</summary>"
    assert 3_000 < around.estimate.messages(*before[-kept:]) <= 4_000
    # What is recorded gives the same conversation.
    assert messages_of(around.recorder.bodies, before[1:]) == list(transcript[1:])
    (step,) = around.steps
    assert (step.cause, step.kept, step.tokens_after) == ("window", kept, around.estimate.question(transcript))
    assert step.tokens_after < step.tokens_before // 3
    # The model was asked without tools, about all that went before, and paid from the budget.
    (question,) = around.model.asked_for_summary
    assert [message.role for message in question] == ["system", "user"]
    assert "[person]\nWhat is the port?\n\n[agent]\nIt is 8421." in question[1].content
    stats = around.budget.stats()
    assert (stats.input_tokens, stats.output_tokens, stats.cost_usd, around.budget.iterations) == (900, 7, 0.01, 0)
    # Its text is not shown, but is a sign of progress.
    assert around.recorder.deltas == [("output", "")]


def test_a_second_compaction_folds_the_first_summary_in() -> None:
    around = Compacting(summaries=[{"text": "The port is 8421."}, {"text": "Both."}])
    transcript = long_conversation()
    around.compaction.compact(transcript, "window")
    transcript.append(*long_conversation()[2:])
    around.compaction.compact(transcript, "window")
    assert "<summary_so_far>\nThe port is 8421.\n</summary_so_far>" in around.asked_with[1]
    assert transcript[1].content == "<summary>\nBoth.\n</summary>"


def test_an_opening_prompt_alone_cannot_be_compacted() -> None:
    for cause in ("window", "overflow", "asked"):
        around = Compacting()
        transcript = conversation(said("user", "word " * 100_000))
        assert not around.compaction.due(transcript)
        assert not around.compaction.compact(transcript, cause)  # type: ignore[arg-type]
        assert (len(transcript), around.steps, around.model.asked_for_summary) == (2, [], [])
    summarized = conversation(summary_message("Old."), said("user", "Go on."))
    assert not Compacting().compaction.compact(summarized, "asked")
    alone = Compacting(script=[says("", status=413)])
    assert alone.agent.run("You are tested.", (), "word " * 50_000).exit_status is ExitStatus.MODEL_ERROR


def test_a_hook_may_cancel_or_write_the_summary_itself() -> None:
    around, transcript = Compacting(hooks=Heard(CANCEL)), long_conversation()
    assert not around.compaction.compact(transcript, "window")
    assert (len(transcript), around.steps, around.model.asked_for_summary) == (62, [], [])
    event = around.hooks.events[0]
    assert (event.cause, event.messages[0].content) == ("window", "Mend it.")
    assert event.tokens == around.estimate.question(transcript)
    # It is tried again when the conversation has grown, and not at every step.
    transcript.append(*called(90, "short"))
    assert not around.compaction.due(transcript)
    transcript.append(*called(91, "long " * 1_000))
    assert around.compaction.due(transcript)
    by_hand, transcript = Compacting(hooks=Heard("By hand.")), long_conversation()
    assert by_hand.compaction.compact(transcript, "window")
    assert (by_hand.steps[0].summary, by_hand.model.asked_for_summary) == ("By hand.", [])


class _FullDisk(KeptEvents):
    """A recorder that cannot record."""

    def record(self, body: Body) -> int:
        raise OSError("the disk is full")


def test_without_a_summary_a_record_of_it_or_a_budget_for_it_nothing_changes() -> None:
    for reply in ({"text": " \n"}, {"thinking": "Hm."}, {"status": 500}):
        around, transcript = Compacting(summaries=[reply]), long_conversation()
        before = list(transcript)
        with pytest.raises(ModelCallFailed):
            around.compaction.compact(transcript, "window")
        assert (list(transcript), around.steps) == (before, [])
    around, transcript = Compacting(limits=Limits(token_limit=100)), long_conversation()
    broken = WindowCompaction(around.model, _FullDisk(), around.hooks, around.budget, around.toolbox.specs, "")
    with pytest.raises(OSError, match="full"):
        broken.compact(transcript, "window")
    around.budget.charge(Usage(input_tokens=100))
    with pytest.raises(LimitsExceeded):
        around.compaction.compact(transcript, "window")
    assert list(transcript) == list(long_conversation())


# --- in the loop -----------------------------------------------------------------------------------


def test_a_turn_compacts_between_two_steps_and_after_an_overflow_and_goes_on() -> None:
    script = [*(calls("x" * 6_000) for _ in range(12)), says("Done.")]
    around = Compacting(script=script, summaries=[{"text": f"Summary {n}."} for n in range(5)])
    outcome = around.agent.run("You are tested.", (), "Do it.")
    assert_valid(around.agent.transcript)
    assert (outcome.exit_status, len(around.steps)) == (ExitStatus.STOPPED, 3)
    assert (around.budget.iterations, around.agent.phase) == (13, "idle")
    assert messages_of(around.recorder.bodies) == list(around.agent.transcript[1:])
    over = Compacting(script=[says("", status=413), says("Done.")])
    assert over.agent.run("You are tested.", long_conversation(steps=10)[1:], "Do it.").response == "Done."
    assert over.steps[0].cause == "overflow"
    assert len(over.model.asked[1]) < len(over.model.asked[0])
    failing = Compacting(script=[calls("hello"), says("Done.")], summaries=[{"status": 500}])
    failing.controls.to_compact = ""
    outcome = failing.agent.run("You are tested.", long_conversation(steps=4)[1:], "Do it.")
    assert (outcome.exit_status, "error" in [body.kind for body in failing.recorder.bodies]) == (
        ExitStatus.STOPPED,
        True,
    )


def test_the_last_call_of_a_run_that_finishes_is_not_used_for_a_compaction() -> None:
    around = Compacting(script=[says("It is half done.")])
    around.budget.ends_with, around.controls.to_compact = Outcome(ExitStatus.COST_LIMIT, "used up"), ""
    outcome = around.agent.run("You are tested.", long_conversation()[1:], "Answer with a summary.")
    assert (outcome.response, around.steps) == ("It is half done.", [])


def test_a_turn_waits_for_a_compaction_that_another_thread_has_begun() -> None:
    around = Compacting(script=[says("Done."), says("Again.")])
    begun, awaited = threading.Event(), threading.Event()

    class TellsWhenAwaited:
        """The agent's lock, which tells when a turn begins to wait for it."""

        def __init__(self, lock: threading.Lock) -> None:
            self.acquire, self.release = lock.acquire, lock.release

        def __enter__(self) -> None:
            awaited.set()
            self.acquire()

        def __exit__(self, *_: object) -> None:
            self.release()

    around.agent.run("You are tested.", long_conversation(steps=4)[1:], "Do it.")
    around.agent._at_work = TellsWhenAwaited(around.agent._at_work)  # type: ignore[assignment]
    around.hooks.before_compaction = lambda _: (begun.set(), awaited.wait(60), None)[2]  # type: ignore[method-assign]
    made: list[bool] = []
    thread = threading.Thread(target=lambda: made.append(around.agent.compact()))
    thread.start()
    assert begun.wait(60)
    with pytest.raises(Conflict, match="compaction"):
        around.agent.compact()
    assert around.agent.go_on("And now?").response == "Again."
    thread.join()
    assert made == [True]
    assert "compaction" in [body.kind for body in around.recorder.bodies[:-2]]


def test_what_one_request_cannot_hold_is_summarized_in_several_each_folding_in_the_last() -> None:
    around = Compacting(window=8_000, summaries=[{"text": f"Up to {n}."} for n in range(9)])
    talk = [said("user" if n % 2 else "assistant", f"Word {n}. " * 300) for n in range(30)]
    around.compaction.compact(conversation(*talk), "window")
    asked = around.asked_with
    assert len(asked) > 3
    for number, text in enumerate(asked[1:]):
        assert f"<summary_so_far>\nUp to {number}.\n</summary_so_far>" in text
    assert all(around.estimate.messages(*question) < 6_000 for question in around.model.asked_for_summary)
    assert all(any(f"Word {n}. Word {n}." in text for text in asked) for n in range(25))


def test_a_request_that_the_endpoint_finds_too_long_is_made_in_smaller_parts_and_not_for_ever() -> None:
    refusals = [{"status": 413}, {"status": 413}]
    around = Compacting(summaries=[*refusals, {"text": "Then it went.", "repeat": True}])
    assert around.compaction.compact(long_conversation(), "window")
    lengths = [len(text) for text in around.asked_with]
    assert lengths[0] > lengths[1] > lengths[2]
    assert around.steps[0].summary == "Then it went."
    never = Compacting(summaries=[{"status": 413, "repeat": True}])
    with pytest.raises(ModelCallFailed):
        never.compaction.compact(long_conversation(), "window")
    assert len(never.asked_with) < 8


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


REQUEST = "Mend the login, script:fix-it."
OPENING = Message(role="user", content=f"{REQUEST}\n\n<situation>\n</situation>", part="opening")


def _files(*steps: list[Message]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    footer = footer_of([message for step in steps for message in step], (), Footer(), "")
    return footer.read, footer.changed


def _long(*first: Message) -> Transcript:
    return conversation(*first, *long_conversation()[2:])


def test_files_are_listed_by_what_was_done_to_them_and_once() -> None:
    steps = [
        called(1, "Error: the first line of a log", "file_read", path="a.py"),
        called(2, "text", "file_read", path="b.py", mode="lines", start_line=3),
        called(6, "text", "file_read", path="d.py"),
        called(3, "text", "file_read", path="a.py", mode="view"),
        called(4, "edited", "editor", path="c.py", command="str_replace"),
        called(5, "wrote", "file_write", path="b.py", content="new"),
    ]
    assert _files(*steps) == (("d.py", "a.py"), ("c.py", "b.py"))


def test_request_files_and_open_items_are_carried_through_every_further_compaction() -> None:
    around = Compacting(request=REQUEST)
    listed = _todo(72, ("Read", "done"), ("Write the\ntest", "in_progress"), ("Ship", "pending"))
    refused = _todo(73, ("Refused", "pending"), failed=True)
    files = [*called(70, "x", "file_read", path="a.py"), *called(71, "x", "editor", path="b.py")]
    transcript = _long(OPENING, *files, *_todo(69, ("Old", "pending")), *listed, *refused)
    for number in range(3):
        around.compaction.compact(transcript, "window")
        transcript.append(*called(80 + number, "x", "file_read", path=f"{number}.py"), *long_conversation()[2:])
    items = "<todo>\n[in progress] Write the test\n[pending] Ship\n</todo>"
    asked = f"<request>\n{REQUEST}\n</request>"
    assert (around.steps[-1].files_read, around.steps[-1].files_changed) == (("a.py", "0.py", "1.py"), ("b.py",))
    for part in (items, asked):
        assert [step.summary.count(part) for step in around.steps] == [1, 1, 1]
        assert [text.count(part) for text in around.asked_with] == [1, 1, 1]
    transcript.append(*_todo(90, ("Ship", "done")), *long_conversation()[2:])
    around.compaction.compact(transcript, "window")
    assert ("<todo>" in around.steps[-1].summary, "<todo>" in around.asked_with[-1]) == (False, False)


def _todo(number: int, *items: tuple[str, str], failed: bool = False) -> list[Message]:
    listed = [{"text": text, "status": status} for text, status in items]
    return called(number, "noted", "todo", failed=failed, items=listed)


_NAMES = st.lists(
    st.from_regex(r"[a-z<>/(),. ]{1,20}", fullmatch=True).filter(lambda n: n not in {".", "./"}), unique=True
)


@given(text=st.text(), request=st.text(), read=_NAMES, changed=_NAMES, items=st.lists(st.text(min_size=1)))
def test_what_is_written_is_read_again(
    text: str, request: str, read: list[str], changed: list[str], items: list[str]
) -> None:
    steps = [called(n, "x", "file_read", path=name) for n, name in enumerate(read)]
    steps += [called(100 + n, "x", "file_write", path=name) for n, name in enumerate(changed)]
    steps.append(called(200, "noted", "todo", items=[{"text": item} for item in items]))
    footer = footer_of([message for step in steps for message in step], (), Footer(), request)
    assert parted(f"{without_tags(text)}\n\n{footer.text(100_000)}") == (without_tags(text), footer)


def test_an_overflow_raises_a_guess_or_means_a_smaller_window_if_the_guess_was_corrected() -> None:
    messages = [SYSTEM, said("user", "The quick brown fox jumps over the lazy dog. " * 100)]
    guessed, corrected = (Estimate(Compacting(window=16_000).model, lambda: (), Limits()) for _ in range(2))
    guessed.overflowed(messages)
    assert guessed.question(messages) == pytest.approx(16_000, abs=1)
    assert guessed.room().window == 16_000
    corrected.learned(Usage(input_tokens=1_200), messages)
    corrected.overflowed(messages)
    assert corrected.room().window == 1_200
    corrected.learned(Usage(input_tokens=1_500), messages)
    assert corrected.room().window == 1_500


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
