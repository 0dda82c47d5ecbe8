"""Names in Redis, git and on disk, the states of drones and orders, the limits of runs, and the user's messages."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import names
from shared.events import CompactionStep, UserStep
from shared.limits import LIMITS, checked_limits, effective
from shared.outcome import GREEN, EndedWork, ExitStatus, OrderOutcome, order_outcome, outcome_together
from shared.states import ENDED, DroneStatus, OrderStatus, drone_status
from shared.transcripts import messages_of, opens_turn, said, summary_in, summary_message
from shared.work_order import Limits
from tests.support.documents import ROOT

IDS = st.text("0123456789abcdef", min_size=names.ID_LENGTH, max_size=names.ID_LENGTH)


@given(one=IDS, other=IDS)
def test_no_name_of_one_drone_begins_with_a_name_of_another(one: str, other: str) -> None:
    built = (names.queue, names.events_stream, names.live_channel, names.inbox_key, names.lease_key)
    pairs = [(make(one), make(other)) for make in built]
    assert [left.startswith(right) for left, right in pairs] == [one == other] * len(built)
    # And a late branch does not lie below the order's own.
    assert not names.late_branch(one, 2).startswith(names.branch(one) + "/")


@given(drone=IDS, run=IDS)
def test_the_drone_can_be_told_from_every_name_that_holds_it(drone: str, run: str) -> None:
    made = [names.events_stream(drone), names.live_channel(drone), names.beat_channel(drone), names.run_key(drone, run)]
    assert {names.drone_of(each) for each in made} == {drone}


NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
FACTS: dict[str, Any] = {"now": NOW, "last_seen_at": NOW, "running": 0, "concurrency": 1}
FACTS |= dict.fromkeys(("stopped", "removed", "draining"), False)


def test_a_drone_is_what_the_facts_make_it() -> None:
    cases: list[tuple[dict[str, Any], DroneStatus]] = [
        ({}, DroneStatus.ONLINE),
        ({"running": 1}, DroneStatus.BUSY),
        ({"running": 1, "concurrency": 2}, DroneStatus.ONLINE),
        ({"draining": True, "running": 1}, DroneStatus.DRAINING),
        ({"last_seen_at": NOW - timedelta(seconds=14.9)}, DroneStatus.ONLINE),
        ({"last_seen_at": NOW - timedelta(seconds=15)}, DroneStatus.UNRESPONSIVE),
        ({"last_seen_at": NOW - timedelta(seconds=59.9), "draining": True}, DroneStatus.UNRESPONSIVE),
        ({"last_seen_at": NOW - timedelta(seconds=60)}, DroneStatus.OFFLINE),
        ({"last_seen_at": None}, DroneStatus.OFFLINE),
        ({"stopped": True}, DroneStatus.OFFLINE),
        ({"removed": True, "stopped": True}, DroneStatus.REMOVED),
    ]
    for facts, expected in cases:
        assert drone_status(**{**FACTS, **facts}) is expected, facts


def test_a_wrong_limit_is_refused() -> None:
    cases: list[tuple[str, Any]] = [("max_steps", 5), ("max_retries", 101), ("max_retries", 1.5), ("retry_enabled", 1)]
    cases += [("max_format_errors", 0), ("base_delay", "soon"), ("base_delay", float("nan")), ("base_delay", True)]
    for name, value in cases:
        with pytest.raises(ValueError, match=name):
            checked_limits({name: value})


def test_of_several_levels_the_first_that_sets_a_limit_counts_and_is_named() -> None:
    found = effective(
        [
            ("order", {"max_retries": 1}),
            ("session", {"max_retries": 2, "base_delay": 2.5}),
            ("organization", {"max_retries": 6, "base_delay": 6.0, "token_limit": 6}),
        ]
    )
    assert (found.limits.max_retries, found.limits.base_delay, found.limits.token_limit) == (1, 2.5, 6)
    assert found.sources == {"max_retries": "order", "base_delay": "session", "token_limit": "organization"}
    assert found.limits.command_timeout == 120


def test_the_page_lists_each_limit_with_its_meaning() -> None:
    text = (ROOT / "docs" / "run-settings.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", text, re.MULTILINE)
    assert {each.name for each in LIMITS} == set(Limits.model_fields)
    assert listed == [(each.name, each.help) for each in LIMITS]


OPENING = "Fix the login.\n\n<situation>\nDate: today\n</situation>"
SUMMARY = "<summary>\nAll is well.\n</summary>"


def test_steps_say_what_their_messages_are() -> None:
    steps = [
        UserStep(text=OPENING, source="prompt"),
        UserStep(text="And the logout.", source="steer"),
        CompactionStep(summary="All is well.", kept=1),
    ]
    assert [message.part for message in messages_of(steps[:2])] == ["opening", "other"]
    assert [message.part for message in messages_of(steps)] == ["summary", "other"]
    prompt = said(UserStep(text=SUMMARY, source="prompt"))
    assert (opens_turn(prompt), summary_in(prompt)) == (True, None)
    assert summary_in(summary_message("<summary>\nquoted\n</summary>")) == "<summary>\nquoted\n</summary>"
    # Words of a person that look like the loop's own are a person's.
    for text in (OPENING, SUMMARY):
        message = said(UserStep(text=text, source="steer"))
        assert (opens_turn(message), summary_in(message)) == (False, None), text


def test_an_outcome_is_green_only_for_whole_work_and_names_each_limit_as_incomplete() -> None:
    done = EndedWork(is_changed=True, asks=False, is_left_behind=False)
    less = {
        OrderOutcome.UNCHANGED: replace(done, is_changed=False),
        OrderOutcome.ASKS: replace(done, is_changed=False, asks=True),
        OrderOutcome.INCOMPLETE: replace(done, is_left_behind=True),
    }
    limits = {"max_iterations", "cost_limit", "time_limit", "token_limit", "no_progress"}
    gave_up = {*limits, "format_errors", "halted", "plan_unanswered"}
    for exit_status in ExitStatus:
        begun = exit_status in gave_up
        failed = OrderOutcome.INCOMPLETE if begun else OrderOutcome.FAILED
        assert order_outcome(OrderStatus.FAILED, exit_status, done) is failed
        assert (order_outcome(OrderStatus.SUCCEEDED, exit_status, done) in GREEN) is not begun
        assert order_outcome(OrderStatus.CANCELED, exit_status, done) is OrderOutcome.CANCELED
    assert {order_outcome(OrderStatus.SUCCEEDED, "stopped", work): work for work in less.values()} == less
    assert {order_outcome(status, "stopped", done) for status in OrderStatus if status not in ENDED} == {None}


def test_what_came_of_several_orders_is_the_worst_and_unknown_until_all_have_ended() -> None:
    for ended in product(OrderOutcome, repeat=3):
        together = outcome_together(ended)
        assert together in ended
        assert (together in GREEN) is (set(ended) <= GREEN)
        assert together == outcome_together(ended[::-1])
        assert outcome_together([*ended, None]) is None
    assert outcome_together(()) is None
    assert outcome_together([OrderOutcome.UNCHANGED, OrderOutcome.DONE]) is OrderOutcome.DONE
    assert outcome_together([OrderOutcome.CANCELED, OrderOutcome.FAILED]) is OrderOutcome.FAILED
