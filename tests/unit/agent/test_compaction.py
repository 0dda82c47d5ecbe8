"""Compaction: when it is due, what it leaves, what it records, and who has a say in it."""

from __future__ import annotations

import json
import re
import threading

import pytest

from drone.agent.compaction import WindowCompaction
from drone.agent.hooks.events import CANCEL
from drone.agent.in_memory import KeptEvents
from drone.agent.values import ModelCallFailed, ToolSpec
from shared.errors import Conflict, LimitsExceeded
from shared.events import Body, Usage
from shared.outcome import ExitStatus
from shared.transcripts import assert_valid, messages_of
from shared.work_order import Limits
from tests.support.compactions import Compacting, Heard, called, conversation, long_conversation, said
from tests.support.scripted import calls, says


class _FullDisk(KeptEvents):
    """A recorder that cannot record."""

    def record(self, body: Body) -> int:
        raise OSError("the disk is full")


def test_it_is_due_when_the_question_has_more_tokens_than_window_less_reserve() -> None:
    around = Compacting(window=16_000)
    assert not around.compaction.due(long_conversation(steps=19))
    assert around.compaction.due(long_conversation(steps=21))
    many = [ToolSpec(f"tool_{n}", "Does what it says.") for n in range(100)]
    heavy = WindowCompaction(around.model, around.recorder, around.hooks, around.budget, lambda: many, "")
    assert heavy.due(long_conversation(steps=18))


def test_who_asks_gets_a_compaction_also_of_a_short_conversation_by_their_instructions() -> None:
    around, transcript = Compacting(), long_conversation(steps=4, characters=100)
    assert not around.compaction.due(transcript)
    assert around.compaction.compact(transcript, "asked", "Keep the names of the tests.")
    assert around.steps[0].tokens_after < around.steps[0].tokens_before
    assert around.steps[0].cause == "asked"
    assert "Keep the names of the tests." in around.asked_with[0]


def test_a_call_that_is_too_long_is_shortened_and_its_unseen_result_and_signed_thinking_stay() -> None:
    around = Compacting()
    step = called(1, "wrote it", path="a.py", content="begin " + "x" * 60_000 + " end", mode=[7, True])
    signed = ({"type": "thinking", "thinking": "Hm.", "signature": "s" * 200},)
    step[0] = step[0].model_copy(update={"thinking_blocks": signed})
    transcript = conversation(said("user", "Write."), *step, said("user", "And?"))
    assert around.compaction.compact(transcript, "window")
    asked, result, last = transcript[-3:]
    given = json.loads(asked.tool_calls[0].arguments)
    assert (given["path"], given["mode"], result.content, last.content) == ("a.py", [7, True], "wrote it", "And?")
    assert re.fullmatch(r"begin x+\n\[… [\d,]+ characters left out to save room …\]\nx+ end", given["content"])
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


def test_it_is_recorded_before_it_is_done() -> None:
    around, transcript = Compacting(), long_conversation()
    before = list(transcript)
    broken = WindowCompaction(around.model, _FullDisk(), around.hooks, around.budget, around.toolbox.specs, "")
    with pytest.raises(OSError, match="full"):
        broken.compact(transcript, "window")
    assert list(transcript) == before


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
    summarized = conversation(said("user", "<summary>\nOld.\n</summary>"), said("user", "Go on."))
    assert not Compacting().compaction.compact(summarized, "asked")
    alone = Compacting(script=[says("", status=413)])
    assert alone.agent.run("You are tested.", (), "word " * 50_000).exit_status is ExitStatus.MODEL_ERROR


def test_a_hook_may_cancel() -> None:
    around, transcript = Compacting(hooks=Heard(CANCEL)), long_conversation()
    assert not around.compaction.compact(transcript, "window")
    assert (len(transcript), around.steps, around.model.asked_for_summary) == (62, [], [])
    event = around.hooks.events[0]
    assert (event.cause, event.messages[0].content) == ("window", "Mend it.")
    assert event.tokens == around.estimate.question(transcript)


def test_a_hook_may_write_the_summary_itself() -> None:
    around, transcript = Compacting(hooks=Heard("By hand.")), long_conversation()
    assert around.compaction.compact(transcript, "window")
    assert around.steps[0].summary == "By hand."
    assert around.model.asked_for_summary == []


def test_without_a_summary_nothing_changes() -> None:
    for reply in ({"text": " \n"}, {"thinking": "Hm."}, {"status": 500}):
        around, transcript = Compacting(summaries=[reply]), long_conversation()
        before = list(transcript)
        with pytest.raises(ModelCallFailed):
            around.compaction.compact(transcript, "window")
        assert (list(transcript), around.steps) == (before, [])


def test_what_failed_is_tried_again_when_the_conversation_has_grown_and_not_at_every_step() -> None:
    around, transcript = Compacting(hooks=Heard(CANCEL)), long_conversation()
    around.compaction.compact(transcript, "window")
    transcript.append(*called(90, "short"))
    assert not around.compaction.due(transcript)
    transcript.append(*called(91, "long " * 1_000))
    assert around.compaction.due(transcript)


def test_no_summary_is_asked_for_when_the_budget_is_used_up() -> None:
    around, transcript = Compacting(limits=Limits(token_limit=100)), long_conversation()
    around.budget.charge(Usage(input_tokens=100))
    with pytest.raises(LimitsExceeded):
        around.compaction.compact(transcript, "window")
    assert (len(transcript), around.model.asked_for_summary) == (62, [])


def test_a_result_too_long_for_the_window_is_shown_with_head_and_tail() -> None:
    around = Compacting()
    transcript = conversation(said("user", "Look."), *called(1, "begin " + "x" * 90_000 + " end"))
    assert around.compaction.due(transcript)
    assert around.compaction.compact(transcript, "window")
    shown = transcript[-1].content
    assert shown.startswith("begin xxx")
    assert shown.endswith("xxx end")
    assert "characters left out to save room" in shown
    assert (around.steps, len(transcript)) == ([], 4)
    assert not around.compaction.due(transcript)


def test_an_unseen_result_is_never_folded_into_the_summary_however_small_the_window() -> None:
    for window in (2_000, 16_000):
        around = Compacting(window=window)
        step = called(99, "first " + "y" * 60_000 + " last", content="z" * 60_000)
        transcript = conversation(*long_conversation()[1:], *step, said("user", "Wait. " * 2_000))
        around.compaction.compact(transcript, "window")
        assert [message.role for message in transcript] == ["system", "user", "assistant", "tool", "user"]
        shown = transcript[3].content
        assert re.fullmatch(r"(?s)first y*\n\[… [\d,]+ characters left out to save room …\]\ny* last", shown)
        assert not around.compaction.due(transcript)


def test_a_window_that_is_smaller_than_stated_is_remembered() -> None:
    around = Compacting(window=131_072, summaries=[{"text": "One."}, {"text": "Two."}])
    transcript = long_conversation(steps=15)
    around.compaction.learned(Usage(input_tokens=9_000), transcript)
    transcript.append(*called(98, "z" * 5_000))
    around.compaction.compact(transcript, "overflow")
    assert not around.compaction.due(transcript)
    transcript.append(*long_conversation(steps=13)[2:])
    assert around.compaction.due(transcript)


# --- in the loop -----------------------------------------------------------------------------------


def test_a_turn_compacts_between_two_steps_and_goes_on() -> None:
    script = [*(calls("x" * 6_000) for _ in range(12)), says("Done.")]
    around = Compacting(script=script, summaries=[{"text": f"Summary {n}."} for n in range(5)])
    outcome = around.agent.run("You are tested.", (), "Do it.")
    assert_valid(around.agent.transcript)
    assert (outcome.exit_status, len(around.steps)) == (ExitStatus.STOPPED, 3)
    assert around.budget.iterations == 13
    assert messages_of(around.recorder.bodies) == list(around.agent.transcript[1:])
    assert around.agent.phase == "idle"


def test_a_turn_goes_on_when_a_summary_that_was_not_urgent_fails() -> None:
    around = Compacting(script=[calls("hello"), says("Done.")], summaries=[{"status": 500}])
    around.controls.to_compact = ""
    outcome = around.agent.run("You are tested.", long_conversation(steps=4)[1:], "Do it.")
    assert outcome.exit_status is ExitStatus.STOPPED
    assert "error" in [body.kind for body in around.recorder.bodies]


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


def test_an_overflow_is_compacted_and_the_question_asked_again() -> None:
    script = [says("", status=413), says("Done.")]
    around = Compacting(script=script)
    outcome = around.agent.run("You are tested.", long_conversation(steps=10)[1:], "Do it.")
    assert outcome.response == "Done."
    assert around.steps[0].cause == "overflow"
    assert len(around.model.asked[1]) < len(around.model.asked[0])
