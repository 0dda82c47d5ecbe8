"""What a run was told by its worker, as the loop asks for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from drone.agent.values import UserMessage
from drone.runs.controls import RunControls
from drone.runs.lease import OFFLINE_GRACE_SECONDS, VALID_SECONDS, WAKING_SECONDS
from drone.runs.pipe import EndRun, LeaseExtended
from drone.runs.stop_requests import WishKind
from shared.control import TakeBack
from shared.errors import Preempted
from shared.outcome import ExitStatus
from tests.support.clocks import HandClock
from tests.support.runs import said


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def controls(clock: HandClock) -> RunControls:
    return RunControls(clock, VALID_SECONDS)


def test_a_canceled_run_ends_with_the_reason(controls: RunControls) -> None:
    controls.check()
    controls.receive(EndRun(wish="cancel", reason="not needed"))
    with pytest.raises(Preempted) as raised:
        controls.check()
    assert raised.value.outcome is not None
    assert (raised.value.outcome.exit_status, raised.value.outcome.reason) == (ExitStatus.CANCELED, "not needed")


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


def test_a_run_that_nobody_hears_of_gives_its_order_back_after_ten_minutes(
    controls: RunControls, clock: HandClock
) -> None:
    clock.sleep(VALID_SECONDS)
    controls.receive(LeaseExtended(until=2 * VALID_SECONDS))
    clock.sleep(VALID_SECONDS + OFFLINE_GRACE_SECONDS - WAKING_SECONDS)
    controls.check()
    clock.sleep(WAKING_SECONDS - 1)
    controls.check()
    clock.sleep(1)
    assert controls.wish is not None
    assert controls.wish.kind == "stop"


def test_what_people_say_is_given_once_and_in_order(controls: RunControls) -> None:
    controls.receive(said("a"))
    controls.receive(said("b", after=True))
    controls.receive(said("c"))
    assert (texts(controls.steering()), texts(controls.follow_ups())) == (["a", "c"], ["b"])
    assert (controls.steering(), controls.follow_ups()) == ([], [])


def texts(messages: Sequence[UserMessage]) -> list[str]:
    return [message.text for message in messages]


def test_a_message_that_is_to_be_answered_alone_is_given_alone(controls: RunControls) -> None:
    for text, alone in (("a", False), ("b", False), ("c", True), ("d", True), ("e", False), ("f", False)):
        controls.receive(said(text, alone=alone))
    taken = [texts(controls.steering()) for _ in range(5)]
    assert taken == [["a", "b"], ["c"], ["d"], ["e", "f"], []]


def test_what_is_taken_back_is_given_to_nobody_and_told_of_and_what_was_taken_before_is_not(
    controls: RunControls,
) -> None:
    told: list[str] = []
    controls.on_taken_back = lambda messages: told.extend(say.message for say in messages)
    controls.receive(said("a").model_copy(update={"message": "1"}))
    assert [(each.text, each.id) for each in controls.steering()] == [("a", "1")]
    controls.receive(said("b").model_copy(update={"message": "2"}))
    controls.receive(said("c", after=True).model_copy(update={"message": "3"}))
    controls.receive(TakeBack(run_id="run000000000", messages=("1", "2", "3")))
    assert (controls.steering(), controls.follow_ups(), controls.pending()) == ([], [], False)
    assert told == ["2", "3"]


def test_once_a_run_has_come_to_its_end_nothing_is_taken_back_any_more(controls: RunControls) -> None:
    told: list[object] = []
    controls.on_taken_back = told.append
    controls.receive(said("a").model_copy(update={"message": "1"}))
    assert texts(controls.left_over()) == ["a"]
    controls.receive(said("b").model_copy(update={"message": "2"}))
    controls.receive(TakeBack(run_id="run000000000", messages=("1", "2")))
    assert told == []
