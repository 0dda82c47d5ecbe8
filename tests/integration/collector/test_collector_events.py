"""Each event of a run counts once, in order, whatever comes twice, too early, too late, or from somebody else."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from control_plane.db.drones import RawEvent
from control_plane.db.installation import Lease
from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from control_plane.operations.drones import managing
from shared import names
from shared.envelope import Binding
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
from shared.reasons import RunEnd
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


# --- what comes twice -----------------------------------------------------------------


def test_an_event_that_comes_twice_counts_once(any_plane: Plane) -> None:
    drone = any_plane.drone()
    any_plane.collector(), any_plane.supervisor()
    order = any_plane.begun(drone)
    twice = drone.journal(order, PRICED)
    [drone.send(twice) for _ in range(3)]
    any_plane.until(lambda: stream_is_empty(any_plane, drone))
    assert stored(any_plane, order) == [1, 2]
    assert any_plane.order(order.order_id).stats.cost_usd == 0.25
    assert any_plane.rows(RawEvent) == []


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


def test_two_collectors_share_the_streams_and_double_nothing(plane: Plane) -> None:
    drones = [plane.drone(name) for name in ("ada", "bo", "cy", "di")]
    plane.collector(), plane.collector(), plane.supervisor()
    plane.until(lambda: sorted(_streams_each(plane)) == [2, 2])
    orders = [plane.begun(drone) for drone in drones]
    [drone.report(order, *[PRICED] * 20) for drone, order in zip(drones, orders, strict=True)]
    plane.until(lambda: all(stream_is_empty(plane, drone) for drone in drones))
    assert [stored(plane, order) for order in orders] == [list(range(1, 22))] * 4


def _streams_each(plane: Plane) -> list[int]:
    holders = [owner.holder for owner in plane.rows(Lease) if owner.name.startswith("stream:")]
    return [holders.count(holder) for holder in set(holders)]


# --- what comes too early, or not at all --------------------------------------------------


def test_a_missing_event_is_asked_for_and_the_later_ones_wait(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.claimed(drone)
    first, second = drone.journal(order, drone.started()), drone.journal(order, PRICED)
    drone.send(second)
    plane.until(lambda: drone.told("resend"))
    assert run_of(plane, order) is None
    drone.send(first)
    plane.until(lambda: stored(plane, order) == [1, 2])

    missing, later = drone.journal(order, PRICED), drone.journal(order, Phase(name="working"))
    drone.send(later)
    wanted = (order.run_id, 3)
    plane.until(lambda: wanted in [(each.body.run_id, each.body.from_seq) for each in drone.told("resend")])
    assert stored(plane, order) == [1, 2]
    drone.send(missing)
    plane.until(lambda: stored(plane, order) == [1, 2, 3, 4])
    plane.until(lambda: stream_is_empty(plane, drone))


def test_a_gap_that_is_never_filled_is_closed_with_a_step_that_says_so(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(gap_after=0.5), plane.supervisor()
    order = plane.begun(drone)
    [drone.journal(order, PRICED) for _ in range(2)]
    drone.report(order, Phase(name="working"))
    plane.until(lambda: stored(plane, order) == [1, 2, 4])
    gap = plane.order(order.order_id).steps[1]
    assert (gap.kind, gap.missing) == ("gap", 2)
    plane.until(lambda: stream_is_empty(plane, drone))


def test_the_end_of_a_run_that_redis_lost_is_asked_for_by_the_beat(plane: Plane, valkey: BrokerServer) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(drone)
    end = drone.journal(order, drone.ended())
    valkey.redis.flushall()
    plane.until(lambda: drone.beat(drone.run_beat(order, ended=True)) or drone.told("resend"))
    drone.send(end)
    plane.until(lambda: plane.status(order.order_id) == "succeeded")
    plane.until(lambda: drone.told("confirm"))


def test_a_group_that_vanished_is_made_again(plane: Plane, valkey: BrokerServer) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(drone)
    valkey.redis.xgroup_destroy(names.events_stream(drone.id), names.EVENTS_GROUP)
    drone.report(order, PRICED)
    plane.until(lambda: stored(plane, order) == [1, 2])


def test_events_that_nobody_was_told_of_are_found_by_the_sweep(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(drone)
    drone.send(drone.journal(order, PRICED), live=False)
    plane.until(lambda: stored(plane, order) == [1, 2])


# --- what comes from somebody else ----------------------------------------------------------


def test_a_forged_envelope_is_kept_raw_and_changes_nothing(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(drone)
    drone.put("event", "0123456789abcdef.Zm9yZ2Vk")
    raw = plane.until(lambda: plane.rows(RawEvent))[0]
    assert "cannot be opened" in raw.error
    assert raw.fields["e"].endswith("Zm9yZ2Vk")
    drone.report(order, PRICED)
    plane.until(lambda: stored(plane, order) == [1, 2])


def test_a_drone_cannot_speak_of_anothers_run_in_its_own_envelope_or_in_that_of_the_other(plane: Plane) -> None:
    oka, mila = plane.drone("oka"), plane.drone("mila")
    plane.collector(), plane.supervisor()
    order = plane.begun(oka)
    mila.report(order, oka.ended())
    event = oka.journal(order, oka.ended())
    binding = Binding(direction="event", drone=oka.id, order=order.order_id, run=order.run_id, generation=1)
    mila.put("event", mila.seal(event.model_dump_json(), binding))
    plane.until(lambda: len(plane.rows(RawEvent, RawEvent.drone_id == mila.id)) == 2)
    assert plane.order(order.order_id).status == "running"


def test_an_entry_that_fails_five_times_is_kept_raw_and_others_go_on(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    bad, good = plane.begun(drone), plane.begun(drone)
    # The beginning of the year 1, a day ahead of UTC: the event is well formed, but its time cannot be stored.
    early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=23)))
    drone.send(drone.journal(bad, AssistantStep(text="x")).model_copy(update={"at": early}))
    drone.report(good, PRICED)
    plane.until(lambda: plane.rows(RawEvent))
    plane.until(lambda: stored(plane, good) == [1, 2])
    assert plane.rows(RawEvent)[0].error == "failed 5 times"


# --- what the events mean --------------------------------------------------------------------


def test_usage_adds_up_while_the_run_goes_on(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(drone)
    drone.report(order, PRICED, ToolCallStep(call_id="1", tool="shell"), PRICED)
    plane.until(lambda: stored(plane, order) == [1, 2, 3, 4])
    stats = plane.order(order.order_id).stats
    assert (stats.input_tokens, stats.output_tokens, stats.thinking_tokens, stats.cached_tokens) == (20, 10, 4, 16)
    assert (stats.tool_calls, stats.cost_usd) == (1, 0.5)
    (run,) = plane.order(order.order_id).runs
    assert (run.ended_at, run.status, run.cost_usd, run.drone) == (None, "running", 0.5, "oka")
    drone.report(order, drone.ended())
    plane.until(lambda: plane.status(order.order_id) == "succeeded")
    (run,) = plane.order(order.order_id).runs
    assert run.ended_at is not None
    assert run.started_at <= run.ended_at
    assert plane.order(order.order_id).stats.duration_label != "pending"


def test_what_a_run_reports_to_have_used_never_exceeds_what_a_database_stores(any_plane: Plane) -> None:
    drone = any_plane.drone()
    any_plane.collector(), any_plane.supervisor()
    order = any_plane.begun(drone)
    counts = dict.fromkeys(("input_tokens", "output_tokens", "thinking_tokens", "cached_tokens"), MAX_COUNT)
    usage = Usage(**counts, cost_usd=MAX_DOLLARS)
    most = AssistantStep(text="a\0b", usage=usage)
    drone.report(order, most, most, drone.ended(response="a\0b", stats=Stats(duration_ms=MAX_COUNT)))
    any_plane.until(lambda: any_plane.status(order.order_id) == "succeeded")
    assert any_plane.order(order.order_id).response == "ab"
    stats = any_plane.order(order.order_id).stats
    assert {name: getattr(stats, name) for name in counts} == counts
    assert (stats.duration_ms, stats.cost_usd) == (MAX_COUNT, MAX_DOLLARS)


def test_an_unknown_price_makes_the_cost_unknown_not_zero(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(drone)
    drone.report(order, PRICED, UNPRICED, PRICED, drone.ended(stats=Stats(cost_usd=None)))
    plane.until(lambda: plane.status(order.order_id) == "succeeded")
    assert plane.order(order.order_id).stats.cost_usd is None


def test_what_the_run_left_behind_is_on_the_order(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(drone)
    branch = f"fleet/{order.order_id}"
    left = Delivered(branch=branch, base_commit="b" * 40, head_commit="c" * 40, pushed=True, patch_bytes=7)
    left = left.model_copy(update={"files_changed": 2, "lines_added": 12, "lines_removed": 3})
    drone.report(order, Prepared(base_commit="b" * 40), left, drone.ended())
    plane.until(lambda: plane.status(order.order_id) == "succeeded")
    row = plane.rows(Order, Order.id == order.order_id)[0]
    assert (row.branch, row.base_commit, row.head_commit, row.pushed) == (branch, "b" * 40, "c" * 40, True)
    assert row.result_run_id == order.run_id
    shown = plane.order(order.order_id)
    assert (shown.files_changed, shown.lines_added, shown.lines_removed) == (2, 12, 3)


def test_a_failure_of_the_fleet_is_tried_again_and_at_last_given_up(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order_id = plane.submit()
    failed: dict[str, Any] = {"status": "failed", "exit_status": "model_error", "order_at_fault": False}
    for _ in range(3):
        order = plane.until(drone.take)
        drone.claim(order)
        drone.report(order, drone.started(), drone.ended(reason="the disk is full", **failed))
    found = plane.until(lambda: (o := plane.order(order_id)).status == "failed" and o)
    assert plane.facts(order_id).ended == RunEnd(detail="the disk is full", attempts=3)
    assert (found.attempt, found.generation) == (3, 3)


def test_a_run_that_is_given_back_runs_again_and_counts_as_no_failure(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(drone)
    drone.report(order, drone.ended(status="preempted", exit_status="canceled", reason="stopping", give_back=True))
    again = plane.until(drone.take)
    assert (again.order_id, again.generation, again.attempt) == (order.order_id, 2, 2)
    assert again.run_id != order.run_id
    assert plane.rows(Order)[0].lost_runs == 0


# --- what comes too late -----------------------------------------------------------------------


def test_a_late_run_changes_nothing_but_its_cost_counts(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    late = plane.begun(drone)
    drone.restart()
    current = plane.until(drone.take)
    drone.do(current)
    plane.until(lambda: plane.status(late.order_id) == "succeeded")
    ref = f"fleet-late/{late.order_id}/1"
    drone.report(late, PRICED, Delivered(branch=f"fleet/{late.order_id}", late_ref=ref), drone.ended(response="late"))
    plane.until(lambda: stream_is_empty(plane, drone))
    order = plane.order(late.order_id)
    assert (order.status, order.response, order.branch, order.late_refs) == ("succeeded", "done", None, [ref])
    assert order.stats.cost_usd == 0.25
    assert [(run.status, run.late) for run in order.runs] == [("lost", True), ("success", False)]
    assert [step.kind for step in order.steps][-3:] == ["assistant", "delivered", "run_ended"]
    plane.until(lambda: late.run_id in [each.body.run_id for each in drone.told("confirm")])


def test_a_run_that_was_given_up_before_it_was_heard_of_is_late_from_its_first_event(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    lost = plane.claimed(drone)
    first = drone.journal(lost, drone.started())
    drone.restart()
    plane.until(lambda: (o := plane.order(lost.order_id)).generation == 2 and o.status == "assigned")
    drone.send(first)
    plane.until(lambda: stored(plane, lost) == [1])
    assert plane.order(lost.order_id).status == "assigned"
    assert (run_of(plane, lost).status, run_of(plane, lost).late) == ("lost", True)


def test_an_ended_run_says_how_it_ended(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(drone)
    drone.report(order, drone.ended(exit_status="submitted", stats=Stats(duration_ms=5)))
    plane.until(lambda: plane.status(order.order_id) == "succeeded")
    run = run_of(plane, order)
    assert (run.status, run.exit_status, run.duration_ms) == ("success", "submitted", 5)


# --- spending that is in no answer -------------------------------------------------------


def test_summaries_and_answers_that_broke_off_count_towards_the_cost_of_a_run(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(drone)
    drone.report(order, PRICED)
    drone.report(order, ChargeStep(about="summary", usage=Usage(input_tokens=7, cost_usd=0.5)))
    drone.report(order, ChargeStep(about="broken_off", usage=Usage(cost_usd=0.125)))
    plane.until(lambda: run_of(plane, order).cost_usd == 0.875)
    assert run_of(plane, order).input_tokens == 17

    managing.remove_drone(plane.core, plane.admin, drone.name)
    plane.until(lambda: run_of(plane, order).status == "lost")
    assert run_of(plane, order).cost_usd == 0.875


# --- all of it ---------------------------------------------------------------------------------


def test_an_order_goes_from_submission_to_its_end_which_is_confirmed_to_the_drone(any_plane: Plane) -> None:
    drone = any_plane.drone()
    any_plane.collector(), any_plane.supervisor()
    order_id = any_plane.submit()
    work = any_plane.until(drone.take)
    drone.do(work)
    order = any_plane.until(lambda: (found := any_plane.order(order_id)).status == "succeeded" and found)
    kinds = ["run_started", "prepared", "user", "assistant", "delivered", "run_ended"]
    assert [step.kind for step in order.steps] == kinds
    assert (order.attempt, order.generation, order.exit_status, order.response) == (1, 1, "stopped", "done")
    confirm = any_plane.until(lambda: drone.told("confirm"))[0].body
    assert (confirm.run_id, confirm.last_seq) == (work.run_id, 6)
