"""Runs in hand: what is said to them, what the heartbeat says of them, and when they are let go of."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.reporting.journal import RunIdentity
from drone.reporting.reporter import Reporter
from drone.runs.directory import Meta, RunDirectory
from drone.runs.pipe import ToRun
from drone.runs.stop_requests import Wish
from drone.worker.inbox import ControlActions
from drone.worker.tracked_runs import FAR_TOO_MUCH, MOST_MEMORY, OVERGROWN_SECONDS, TrackedRun, TrackedRuns
from shared.control import Compact, ControlMessage, Decide, Say
from shared.events import Event, Phase, RunEnded
from tests.support.clocks import HandClock

IDENTITY = RunIdentity("run000000000", "order0000000", 2)


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    made = RunDirectory(tmp_path / "runs" / IDENTITY.run_id)
    made.create(Meta(IDENTITY.order_id, IDENTITY.generation, "boot00000000", "2026-11-21T12:00:00+00:00"))
    return made


def event(seq: int, body: Phase | RunEnded) -> Event:
    return Event(
        run_id=IDENTITY.run_id, order_id=IDENTITY.order_id, generation=2, seq=seq, at=HandClock().now(), body=body
    )


END = RunEnded(status="success", exit_status="stopped", reason="done")


class Unused(Reporter):
    """A reporter of a drone that reports nothing."""

    def __init__(self) -> None:
        """It has no stream."""


def tracked(directory: RunDirectory) -> tuple[TrackedRuns, TrackedRun]:
    """A drone's runs, and the only one of them."""
    runs, run = TrackedRuns(), TrackedRun(directory, IDENTITY, HandClock())
    runs.add(run)
    return runs, run


def test_words_decisions_and_compactions_wait_for_the_process_in_their_order_and_end_with_it(
    directory: RunDirectory,
) -> None:
    (runs, run), said = tracked(directory), list[ToRun]()
    actions = ControlActions(runs, Unused(), lambda _: None, lambda: None, lambda _: None)
    words = [
        Say(run_id=IDENTITY.run_id, text="stop", interrupt=True),
        Decide(run_id=IDENTITY.run_id, call_id="c1", approved=False, comment="no"),
        Compact(run_id=IDENTITY.run_id, instructions="keep the names"),
        Say(run_id=IDENTITY.run_id, text="later", after=True),
    ]
    for word in (Say(run_id="other0000000", text="of a run that is not in hand"), *words):
        actions.act(ControlMessage(id="a", body=word))
    run.attach(said.append)
    assert said == words
    run.gone()
    actions.act(ControlMessage(id="a", body=words[0]))
    assert said == words


def test_a_cancel_or_terminate_that_comes_before_its_run_is_tracked_ends_it_all_the_same(
    directory: RunDirectory,
) -> None:
    runs, run = TrackedRuns(), TrackedRun(directory, IDENTITY, HandClock())
    runs.cancel(IDENTITY.run_id, IDENTITY.generation - 1, "of another generation")
    runs.add(run)
    assert run.wish is None
    for wish in (Wish("cancel", "enough"), Wish("terminate", "stopped in Flower")):
        runs, run = TrackedRuns(), TrackedRun(directory, IDENTITY, HandClock())
        if wish.kind == "cancel":
            runs.cancel(IDENTITY.run_id, IDENTITY.generation, wish.reason)
        else:
            runs.terminate(IDENTITY.run_id, wish.reason)
        runs.add(run)
        assert run.wish == wish


def test_a_revoke_leaves_a_run_alone_that_has_begun_and_a_terminate_ends_it(directory: RunDirectory) -> None:
    runs, run = tracked(directory)
    runs.refuse(IDENTITY.run_id, "revoked")
    assert run.wish is None
    runs.terminate(IDENTITY.run_id, "stopped in Flower")
    assert run.wish == Wish("terminate", "stopped in Flower")


def test_a_cancel_replaces_a_stop_and_a_stop_does_not_replace_a_cancel(directory: RunDirectory) -> None:
    clock = HandClock()
    run = TrackedRun(directory, IDENTITY, clock)
    run.ask_to_end(Wish("stop", "the drone stops"), within=30)
    run.ask_to_end(Wish("cancel", "enough"), within=60)
    run.ask_to_end(Wish("stop", "the drone stops"), within=30)
    assert run.wish == Wish("cancel", "enough")
    assert not run.overdue()
    clock.sleep(60)
    assert run.overdue()


def test_a_run_that_uses_too_much_memory_is_asked_to_end_and_killed_if_it_uses_far_too_much_or_does_not_end(
    directory: RunDirectory,
) -> None:
    for used, wish in ((0, None), (MOST_MEMORY, None), (MOST_MEMORY + 1, "overgrown")):
        run = TrackedRun(directory, IDENTITY, HandClock())
        run.uses(used)
        assert (used, run.wish and run.wish.kind, run.overdue()) == (used, wish, False)
    clock = HandClock()
    run, stubborn = (TrackedRun(directory, IDENTITY, clock) for _ in range(2))
    run.ask_to_end(Wish("stop", "the drone stops"), within=30)
    run.uses(MOST_MEMORY + 1)
    clock.sleep(100)
    run.uses(MOST_MEMORY + 1)
    assert (run.was_asked_to("overgrown"), run.overdue()) == (True, False)
    run.uses(int(MOST_MEMORY * FAR_TOO_MUCH) + 1)
    assert run.overdue()
    stubborn.uses(MOST_MEMORY + 1)
    stubborn.uses(0)
    clock.sleep(OVERGROWN_SECONDS)
    assert stubborn.overdue()


def test_the_beat_says_what_the_journal_said_last(directory: RunDirectory) -> None:
    _, run = tracked(directory)
    run.does("waiting for the model")
    run.note_event(event(4, Phase(name="working")))
    beat = run.beat()
    assert (beat.doing, beat.last_seq, beat.ended) == ("waiting for the model", 4, False)
    run.note_event(event(5, END))
    assert run.beat().ended


def test_a_run_is_let_go_only_when_it_is_gone_and_its_end_is_confirmed_and_leaves_a_mark(
    directory: RunDirectory,
) -> None:
    runs, run = tracked(directory)
    run.note_event(event(5, END))
    run.confirm(4)
    run.gone()
    assert runs.settle() == []
    run.confirm(5)
    assert (runs.settle(), runs.all()) == ([run], [])
    directory.journal.write_text("{}\n")
    directory.forget()
    meta = directory.meta()
    assert meta is not None
    assert (directory.journal.exists(), meta.confirmed, directory.create(meta)) == (False, True, False)
