"""Each event of a run counts once, in order, whatever comes twice, too early, too late, or from somebody else."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection

from control_plane.db.drones import RawEvent
from control_plane.db.installation import Lease
from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from control_plane.operations.drones import managing
from shared import names
from shared.events import (
    MAX_COUNT,
    MAX_DOLLARS,
    AssistantStep,
    ChargeStep,
    Delivered,
    Phase,
    Prepared,
    Stats,
    ToolCallStep,
    Usage,
)
from shared.work_order import WorkOrder
from tests.support.broker import BrokerServer
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

PRICED = AssistantStep(
    text="x", usage=Usage(input_tokens=10, output_tokens=5, thinking_tokens=2, cached_tokens=8, cost_usd=0.25)
)
UNPRICED = AssistantStep(text="x", usage=Usage(input_tokens=1))


def stored(plane: Plane, order: WorkOrder) -> list[int]:
    """The seqs of the run's stored events, in the order of the transcript."""
    steps = plane.rows(Step, Step.run_id == order.run_id)
    return [step.run_seq for step in sorted(steps, key=lambda step: step.seq)]


def run_of(plane: Plane, order: WorkOrder) -> Any:
    return next(iter(plane.rows(Run, Run.id == order.run_id)), None)


def stream_is_empty(plane: Plane, drone: DroneStandIn) -> bool:
    return plane.core.broker.redis.xlen(names.events_stream(drone.id)) == 0


@pytest.mark.dialects
def test_an_order_goes_to_its_end_which_is_confirmed_and_events_that_come_twice_count_once(
    running: Plane, oka: DroneStandIn
) -> None:
    work = running.begun(oka)
    for body in (Prepared(base_commit="a" * 40), PRICED, Delivered(), oka.ended()):
        twice = oka.journal(work, body)
        oka.send(twice), oka.send(twice)
    order = running.reaches(work.order_id, "succeeded")
    running.until(lambda: stream_is_empty(running, oka))
    kinds = ["run_started", "prepared", "assistant", "delivered", "run_ended"]
    assert ([step.kind for step in order.steps], stored(running, work)) == (kinds, [1, 2, 3, 4, 5])
    assert (order.attempt, order.generation, order.exit_status, order.response) == (1, 1, "stopped", "done")
    assert (order.stats.cost_usd, running.rows(RawEvent)) == (0.25, [])
    confirm = running.until(lambda: oka.told("confirm"))[0].body
    assert (confirm.run_id, confirm.last_seq) == (work.run_id, 5)


# --- what comes twice -----------------------------------------------------------------


def test_what_a_dead_collector_stored_and_did_not_acknowledge_counts_once(plane: Plane, valkey: BrokerServer) -> None:
    drone = plane.drone()
    first = plane.collector()
    plane.supervisor()
    order = plane.begun(drone)
    plane.until(lambda: stream_is_empty(plane, drone))
    valkey.redis.execute_command("ACL", "SETUSER", "control", "-xack")
    drone.report(order, PRICED)
    plane.until(lambda: stored(plane, order) == [1, 2])
    assert not stream_is_empty(plane, drone)
    plane.stop(first)
    valkey.redis.execute_command("ACL", "SETUSER", "control", "+xack")
    plane.collector()
    drone.report(order, PRICED)
    plane.until(lambda: stream_is_empty(plane, drone))
    assert (stored(plane, order), plane.order(order.order_id).stats.cost_usd) == ([1, 2, 3], 0.5)


def test_what_another_reader_took_and_did_not_store_is_stored_although_no_later_event_comes(
    running: Plane, oka: DroneStandIn, valkey: BrokerServer
) -> None:
    order = running.begun(oka)
    running.until(lambda: stream_is_empty(running, oka))
    oka.send(oka.journal(order, oka.ended()), live=False)
    stream: dict[Any, Any] = {names.events_stream(oka.id): ">"}
    assert valkey.redis.xreadgroup(names.EVENTS_GROUP, "collector", stream)
    running.reaches(order.order_id, "succeeded")
    running.until(lambda: stream_is_empty(running, oka))


def test_two_collectors_share_the_streams_and_double_nothing(running: Plane) -> None:
    drones = [running.drone(name) for name in ("ada", "bo", "cy", "di")]
    running.collector()
    running.until(lambda: sorted(_streams_each(running)) == [2, 2])
    orders = [running.begun(drone) for drone in drones]
    [drone.report(order, *[PRICED] * 5) for drone, order in zip(drones, orders, strict=True)]
    running.until(lambda: all(stream_is_empty(running, drone) for drone in drones))
    assert [stored(running, order) for order in orders] == [list(range(1, 7))] * 4


def _streams_each(plane: Plane) -> list[int]:
    holders = [owner.holder for owner in plane.rows(Lease) if owner.name.startswith("stream:")]
    return [holders.count(holder) for holder in set(holders)]


# --- what comes too early, or not at all --------------------------------------------------


def test_a_missing_event_is_asked_for_and_the_later_ones_wait(running: Plane, oka: DroneStandIn) -> None:
    order = running.claimed(oka)
    first, second = oka.journal(order, oka.started()), oka.journal(order, PRICED)
    oka.send(second)
    running.until(lambda: oka.told("resend"))
    assert run_of(running, order) is None
    oka.send(first)
    running.until(lambda: stored(running, order) == [1, 2])

    missing, later = oka.journal(order, PRICED), oka.journal(order, Phase(name="working"))
    oka.send(later)
    wanted = (order.run_id, 3)
    running.until(lambda: wanted in [(each.body.run_id, each.body.from_seq) for each in oka.told("resend")])
    assert stored(running, order) == [1, 2]
    oka.send(missing)
    running.until(lambda: stored(running, order) == [1, 2, 3, 4])
    running.until(lambda: stream_is_empty(running, oka))


def test_a_gap_that_is_never_filled_is_closed_with_a_step_that_says_so(plane: Plane, oka: DroneStandIn) -> None:
    plane.collector(gap_after=0.5), plane.supervisor()
    order = plane.begun(oka)
    [oka.journal(order, PRICED) for _ in range(2)]
    oka.report(order, Phase(name="working"))
    plane.until(lambda: stored(plane, order) == [1, 2, 4])
    gap = plane.order(order.order_id).steps[1]
    assert (gap.kind, gap.missing) == ("gap", 2)
    plane.until(lambda: stream_is_empty(plane, oka))


def test_the_end_of_a_run_that_redis_lost_is_asked_for_by_the_beat(
    running: Plane, oka: DroneStandIn, valkey: BrokerServer
) -> None:
    order = running.begun(oka)
    end = oka.journal(order, oka.ended())
    valkey.redis.flushall()
    running.until(lambda: oka.beat(oka.run_beat(order, ended=True)) or oka.told("resend"))
    oka.send(end)
    running.reaches(order.order_id, "succeeded")
    running.until(lambda: oka.told("confirm"))


def test_events_that_nobody_was_told_of_are_found_and_a_group_that_vanished_is_made_again(
    running: Plane, oka: DroneStandIn, valkey: BrokerServer
) -> None:
    order = running.begun(oka)
    oka.send(oka.journal(order, PRICED), live=False)
    running.until(lambda: stored(running, order) == [1, 2])
    valkey.redis.xgroup_destroy(names.events_stream(oka.id), names.EVENTS_GROUP)
    oka.report(order, PRICED)
    running.until(lambda: stored(running, order) == [1, 2, 3])


# --- what cannot be stored ------------------------------------------------------------------


def test_what_is_forged_or_fails_five_times_is_kept_raw_and_others_go_on(running: Plane, oka: DroneStandIn) -> None:
    bad, good = running.begun(oka), running.begun(oka)
    oka.put("event", "0123456789abcdef.Zm9yZ2Vk")
    (forged,) = running.until(lambda: running.rows(RawEvent))
    assert "cannot be opened" in forged.error
    assert forged.fields["e"].endswith("Zm9yZ2Vk")
    with running.core.database.write() as db:
        when = "NEW.body LIKE '%unstorable%'"
        db.execute(text(f"CREATE TRIGGER t BEFORE INSERT ON steps WHEN {when} BEGIN SELECT RAISE(ABORT, 'no'); END"))
    oka.report(bad, AssistantStep(text="unstorable"))
    oka.report(good, PRICED)
    running.until(lambda: len(running.rows(RawEvent)) == 2)
    running.until(lambda: stored(running, good) == [1, 2])
    assert "failed 5 times" in [row.error for row in running.rows(RawEvent)]


def test_a_fault_of_the_database_gives_up_no_event_and_what_it_cannot_hold_is_given_up(
    running: Plane, oka: DroneStandIn
) -> None:
    slow = OperationalError("INSERT", None, psycopg.errors.QueryCanceled("statement timeout"))
    full = NoConnection("QueuePool limit of size 5 overflow 10 reached")
    large = OperationalError("INSERT", None, psycopg.errors.ProgramLimitExceeded("string is too long for tsvector"))
    met: list[Exception] = []

    def fail(*given: Any) -> None:
        if met and given[2].startswith("INSERT INTO steps"):
            raise met.pop()

    event.listen(running.core.database.engine, "before_cursor_execute", fail)
    order = running.begun(oka)
    for fault, steps, raw in ((slow, [1, 2], 0), (full, [1, 2, 3], 0), (large, [1, 2, 3], 1)):
        met += [fault] * 5
        oka.report(order, PRICED)
        running.until(lambda: stream_is_empty(running, oka))
        assert (met, stored(running, order), len(running.rows(RawEvent))) == ([], steps, raw)


# --- what the events mean --------------------------------------------------------------------


def test_usage_adds_up_while_the_run_goes_on(running: Plane, oka: DroneStandIn) -> None:
    order = running.begun(oka)
    oka.report(order, PRICED, ToolCallStep(call_id="1", tool="shell"), PRICED)
    running.until(lambda: stored(running, order) == [1, 2, 3, 4])
    stats = running.order(order.order_id).stats
    assert (stats.input_tokens, stats.output_tokens, stats.thinking_tokens, stats.cached_tokens) == (20, 10, 4, 16)
    assert (stats.tool_calls, stats.cost_usd) == (1, 0.5)
    (run,) = running.order(order.order_id).runs
    assert (run.ended_at, run.status, run.cost_usd, run.drone) == (None, "running", 0.5, "oka")
    # Spending that is in no answer counts as well.
    charges = ChargeStep(about="summary", usage=Usage(input_tokens=7, cost_usd=0.5))
    oka.report(order, charges, ChargeStep(about="broken_off", usage=Usage(cost_usd=0.125)))
    running.until(lambda: run_of(running, order).cost_usd == 1.125)
    assert run_of(running, order).input_tokens == 27
    managing.remove_drone(running.core, running.admin, oka.name)
    running.until(lambda: run_of(running, order).status == "lost")
    assert run_of(running, order).cost_usd == 1.125


@pytest.mark.dialects
def test_what_a_run_reports_to_have_used_never_exceeds_what_a_database_stores(
    running: Plane, oka: DroneStandIn
) -> None:
    order = running.begun(oka)
    counts = dict.fromkeys(("input_tokens", "output_tokens", "thinking_tokens", "cached_tokens"), MAX_COUNT)
    most = AssistantStep(text="a\0b", usage=Usage(**counts, cost_usd=MAX_DOLLARS))
    oka.report(order, most, most, oka.ended(response="a\0b", stats=Stats(duration_ms=MAX_COUNT)))
    done = running.reaches(order.order_id, "succeeded")
    assert done.response == "ab"
    assert {name: getattr(done.stats, name) for name in counts} == counts
    assert (done.stats.duration_ms, done.stats.cost_usd) == (MAX_COUNT, MAX_DOLLARS)


def test_an_ended_run_says_how_it_ended_and_what_it_left_behind(running: Plane, oka: DroneStandIn) -> None:
    order = running.begun(oka)
    branch, base, head = f"fleet/{order.order_id}", "b" * 40, "c" * 40
    left = Delivered(branch=branch, base_commit=base, head_commit=head, pushed=True, patch_bytes=7)
    left = left.model_copy(update={"files_changed": 2, "lines_added": 12, "lines_removed": 3})
    # One price is unknown: then so is the cost, which is not zero.
    oka.report(order, Prepared(base_commit=base), PRICED, UNPRICED, PRICED)
    running.until(lambda: stored(running, order) == [1, 2, 3, 4, 5])
    assert running.order(order.order_id).stats.cost_usd is None
    end = oka.ended(exit_status="submitted", stats=Stats(duration_ms=5, cost_usd=None))
    oka.report(order, left, end)
    shown = running.reaches(order.order_id, "succeeded")
    (run,) = shown.runs
    assert (run.status, run_of(running, order).exit_status, shown.stats.duration_ms) == ("success", "submitted", 5)
    assert run.ended_at is not None
    assert run.started_at <= run.ended_at
    assert (shown.files_changed, shown.lines_added, shown.lines_removed, shown.stats.cost_usd) == (2, 12, 3, None)
    row = running.rows(Order, Order.id == order.order_id)[0]
    assert (row.branch, row.base_commit, row.head_commit, row.pushed) == (branch, base, head, True)
    assert row.result_run_id == order.run_id


# --- what comes too late -----------------------------------------------------------------------


def test_a_late_run_changes_nothing_but_its_cost_counts(running: Plane, oka: DroneStandIn) -> None:
    late = running.begun(oka)
    oka.restart()
    oka.do(running.until(oka.take))
    running.reaches(late.order_id, "succeeded")
    ref = f"fleet-late/{late.order_id}/1"
    oka.report(late, PRICED, Delivered(branch=f"fleet/{late.order_id}", late_ref=ref), oka.ended(response="late"))
    running.until(lambda: stream_is_empty(running, oka))
    order = running.order(late.order_id)
    assert (order.status, order.response, order.branch, order.late_refs) == ("succeeded", "done", None, [ref])
    assert order.stats.cost_usd == 0.25
    assert [(run.status, run.late) for run in order.runs] == [("lost", True), ("success", False)]
    assert [step.kind for step in order.steps][-3:] == ["assistant", "delivered", "run_ended"]
    running.until(lambda: late.run_id in [each.body.run_id for each in oka.told("confirm")])


def test_a_run_that_was_given_up_before_it_was_heard_of_is_late_from_its_first_event(
    running: Plane, oka: DroneStandIn
) -> None:
    lost = running.claimed(oka)
    first = oka.journal(lost, oka.started())
    oka.restart()
    running.until(lambda: (o := running.order(lost.order_id)).generation == 2 and o.status == "assigned")
    oka.send(first)
    running.until(lambda: stored(running, lost) == [1])
    assert running.order(lost.order_id).status == "assigned"
    assert (run_of(running, lost).status, run_of(running, lost).late) == ("lost", True)
