"""What a run was told by its worker, as the loop asks for it, and what becomes of its order."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import get_args

import pytest

from drone.agent.values import UserMessage
from drone.runs.conclusion import of_error, of_outcome, of_wish, step_of
from drone.runs.controls import RunControls
from drone.runs.lease import OFFLINE_GRACE_SECONDS, VALID_SECONDS, WAKING_SECONDS, RunLease
from drone.runs.pipe import EndRun, LeaseExtended
from drone.runs.stop_requests import Wish, WishKind
from shared.control import Say, TakeBack
from shared.errors import FleetFault, Forbidden, OrderError
from shared.outcome import ExitStatus, Outcome
from tests.support.clocks import HandClock
from tests.support.runs import said

RUN = "run000000000"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def controls(clock: HandClock) -> RunControls:
    return RunControls(clock, VALID_SECONDS)


# --- wishes and ends -----------------------------------------------------------------------------


def test_of_two_wishes_the_heavier_one_counts(clock: HandClock) -> None:
    pairs: dict[tuple[WishKind, WishKind], WishKind] = {
        ("stop", "stale"): "stale",
        ("stale", "stop"): "stale",
        ("stale", "cancel"): "cancel",
        ("stop", "stalled"): "stalled",
        ("stalled", "terminate"): "terminate",
        ("cancel", "stale"): "cancel",
        ("stop", "cancel"): "cancel",
        ("cancel", "stop"): "cancel",
    }
    counted = {}
    for pair in pairs:
        controls = RunControls(clock, VALID_SECONDS)
        for wish in pair:
            controls.receive(EndRun(wish=wish, reason=wish))
        counted[pair] = controls.wish and controls.wish.kind
    assert counted == pairs


def test_a_limit_fails_the_order_a_stop_gives_it_back_and_a_cancel_does_not() -> None:
    assert of_outcome(Outcome(ExitStatus.TIME_LIMIT, "time is up")).status == "failed"
    assert of_outcome(Outcome(ExitStatus.MAX_ITERATIONS, "enough answers")).status == "success"
    found = {kind: of_wish(Wish(kind, "because")) for kind in get_args(WishKind)}
    assert {kind: (each.status, each.exit_status, each.give_back) for kind, each in found.items()} == {
        "cancel": ("preempted", "canceled", False),
        "stale": ("preempted", "lost", False),
        "stop": ("preempted", "canceled", True),
        "terminate": ("failed", "canceled", False),
        "overgrown": ("failed", "halted", False),
        "stalled": ("failed", "no_progress", False),
    }
    assert {kind for kind, each in found.items() if each.order_at_fault} == {"terminate", "overgrown", "stalled"}


def test_only_an_order_at_fault_or_a_bug_ends_the_order() -> None:
    at_fault = {
        OrderError("no such branch", code="E"): True,
        FleetFault("the disk is full", code="E"): False,
        Forbidden("not allowed on this drone", code="E"): False,
        KeyError("a bug"): True,
        OSError(errno.ENOSPC, "No space left on device"): False,
        OSError(errno.EDQUOT, "Disk quota exceeded"): False,
    }
    for error, expected in at_fault.items():
        conclusion = of_error(error)
        assert (conclusion.status, conclusion.order_at_fault, conclusion.give_back) == ("failed", expected, False)
    assert step_of(OSError(errno.EDQUOT, "Disk quota exceeded")).code == "E-DISK-FULL"


# --- the lease -----------------------------------------------------------------------------------


def test_a_renewal_counts_from_when_it_left_and_an_older_one_moves_nothing_back(clock: HandClock) -> None:
    lease = RunLease(clock)
    clock.sleep(30)
    lease.renewed(left_at=20)
    lease.renewed(left_at=10)
    assert lease.valid_until == 20 + VALID_SECONDS


def test_a_run_without_contact_gives_its_order_back_after_ten_minutes(controls: RunControls, clock: HandClock) -> None:
    lease = RunLease(clock)
    clock.sleep(VALID_SECONDS)
    controls.receive(LeaseExtended(until=2 * VALID_SECONDS))
    lease.renewed(left_at=clock.boottime())
    clock.sleep(VALID_SECONDS)
    assert not lease.valid()
    for seconds in (OFFLINE_GRACE_SECONDS - WAKING_SECONDS, WAKING_SECONDS - 1):
        clock.sleep(seconds)
        controls.check()
        assert not lease.abandoned()
    clock.sleep(1)
    assert lease.abandoned()
    assert controls.wish is not None
    assert controls.wish.kind == "stop"


def test_whoever_slept_through_the_grace_waits_for_word_before_the_run_counts_as_abandoned(clock: HandClock) -> None:
    heard, unheard = RunLease(clock), RunLease(clock)
    clock.suspend(8 * 3600)
    assert (heard.valid(), heard.abandoned()) == (False, False)
    clock.sleep(WAKING_SECONDS - 1)
    heard.renewed(left_at=clock.boottime())
    assert (heard.abandoned(), unheard.abandoned()) == (False, False)
    clock.sleep(WAKING_SECONDS)
    assert (heard.abandoned(), unheard.abandoned()) == (False, True)


# --- messages ------------------------------------------------------------------------------------


def texts(messages: Sequence[UserMessage]) -> list[str]:
    return [message.text for message in messages]


def word(text: str, id: str, *, after: bool = False) -> Say:
    return Say(run_id=RUN, text=text, message=id, after=after)


def test_what_people_say_is_given_once_in_order_and_alone_where_it_is_to_be(controls: RunControls) -> None:
    for text, alone in (("a", False), ("b", False), ("c", True), ("d", True), ("e", False), ("f", False)):
        controls.receive(said(text, alone=alone))
    controls.receive(said("later", after=True))
    taken = [texts(controls.steering()) for _ in range(5)]
    assert taken == [["a", "b"], ["c"], ["d"], ["e", "f"], []]
    assert [texts(controls.follow_ups()) for _ in range(2)] == [["later"], []]


def test_what_is_taken_back_in_time_is_given_to_nobody_and_told_of(controls: RunControls) -> None:
    told: list[str] = []
    controls.on_taken_back = lambda messages: told.extend(say.message for say in messages)
    controls.receive(word("a", "1"))
    assert [(each.text, each.id) for each in controls.steering()] == [("a", "1")]
    controls.receive(word("b", "2"))
    controls.receive(word("c", "3", after=True))
    controls.receive(TakeBack(run_id=RUN, messages=("1", "2", "3")))
    assert (controls.steering(), controls.follow_ups(), controls.pending()) == ([], [], False)
    assert told == ["2", "3"]
    # Once a run has come to its end, nothing is taken back any more.
    controls.receive(word("d", "4"))
    assert texts(controls.left_over()) == ["d"]
    controls.receive(word("e", "5"))
    controls.receive(TakeBack(run_id=RUN, messages=("4", "5")))
    assert told == ["2", "3"]
