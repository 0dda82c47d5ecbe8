"""Foreign code in a thread of its own: bounded, given up where it must be, and unable to hold a cancel up."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from drone.agent.hooks.calling import CallFailed
from drone.agent.in_memory import QuietControls
from drone.extensions.controls import HeldControls
from drone.extensions.time_limit import ForeignCalls
from shared.errors import Halted, Interrupted, Preempted
from shared.messages import Message
from tests.support import wait_until
from tests.support.scripted import raising

SAID = Interrupted(Message(role="user", content="Wait."))


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """Something to wait for that comes when the test is over."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def calls() -> Iterator[ForeignCalls]:
    made = ForeignCalls(60)
    yield made
    made.close()


def test_a_call_returns_what_the_code_returns_in_a_thread_that_is_not_ours(calls: ForeignCalls) -> None:
    names = {calls(threading.get_ident) for _ in range(3)}
    assert (len(names), threading.get_ident() in names) == (1, False)


def test_whatever_the_code_raises_is_a_failed_call(calls: ForeignCalls) -> None:
    cases: list[BaseException] = [ValueError("boom"), SystemExit(3), KeyboardInterrupt(), Preempted()]
    for error in cases:
        with pytest.raises(CallFailed, match=type(error).__name__) as failed:
            calls(partial(raising(error), None))
        assert failed.value.why == "raised", error
        assert "scripted.py" in failed.value.detail, error
        assert calls(lambda: "still there") == "still there", error


def test_a_call_that_takes_too_long_is_given_up_and_the_next_one_goes_on(never: threading.Event) -> None:
    calls = ForeignCalls(0.05)
    with pytest.raises(CallFailed, match=r"took longer than 0\.05 s"):
        calls(never.wait)
    assert calls(lambda: "next") == "next"
    calls.close()


def test_endless_python_code_does_not_go_on_running_beside_the_run() -> None:
    calls, ident = ForeignCalls(0.1), []

    def endless() -> None:
        ident.append(threading.get_ident())
        while True:
            pass

    with pytest.raises(CallFailed, match="took longer"):
        calls(endless)
    assert wait_until(lambda: ident[0] not in sys._current_frames())


def test_a_call_is_given_up_when_the_run_is_to_end(never: threading.Event) -> None:
    controls = QuietControls()
    held = HeldControls(controls)
    controls.signal = Preempted()
    with pytest.raises(CallFailed) as failed:
        ForeignCalls(60, held.stop_waiting)(never.wait)
    assert failed.value.why == "run_ends"
    with pytest.raises(Preempted):
        held.check()


def test_the_signal_that_ends_the_run_comes_before_what_a_person_said_and_none_is_lost() -> None:
    controls = QuietControls()
    held = HeldControls(controls)
    controls.signal = SAID
    held.stop_waiting()
    controls.signal = Preempted()
    assert held.stop_waiting()
    with pytest.raises(Preempted):
        held.check()
    with pytest.raises(Interrupted):
        held.check()
    # It comes before what an extension said, too.
    held.end("no more")
    controls.signal = Preempted()
    with pytest.raises(Preempted):
        held.check()
    with pytest.raises(Halted):
        held.check()


def test_looking_at_what_people_said_takes_nothing_away() -> None:
    controls = QuietControls()
    controls.to_steer, controls.to_follow_up = ["left"], ["later"]
    held = HeldControls(controls)
    assert (held.pending(), held.pending()) == (True, True)
    controls.to_steer.append("right")
    steered, followed = [each.text for each in held.steering()], [each.text for each in held.follow_ups()]
    assert (steered, followed, held.pending()) == (["left", "right"], ["later"], False)
