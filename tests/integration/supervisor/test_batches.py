"""Batches: as many orders as asked are under way, and each row gets one order, whatever happens."""

from __future__ import annotations

from collections import Counter, deque

import pytest
from sqlalchemy.exc import IntegrityError

from control_plane.contract.declarations.batches import RetryBatchRequest, RowsRequest
from control_plane.db.orders import Order
from control_plane.operations import projects
from control_plane.operations.batches import changing, comparing, reading, submitting
from shared import names
from shared.errors import Conflict, Invalid, NotFound, TooLarge
from shared.outcome import Verification
from shared.work_order import WorkOrder
from tests.support.batches import COST, ends, rows, rows_of, shown, submit_batch, work, work_off
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn


def orders_of(plane: Plane) -> list[Order]:
    return plane.rows(Order, Order.group_id.is_not(None))


def unended(plane: Plane) -> int:
    return len(plane.rows(Order, Order.group_id.is_not(None), Order.ended_at.is_(None)))


def fails(drone: DroneStandIn, order: WorkOrder) -> None:
    work(drone, order, Verification.FAILED, status="failed", exit_status="time_limit", order_at_fault=True)


def test_only_so_many_orders_are_under_way_and_the_next_row_follows_when_one_ends(running: Plane) -> None:
    oka = running.drone("oka", concurrency=8)
    submit_batch(running, rows_of("abcde"), parallel=2)
    first, second = oka.taken(), oka.taken()
    assert [first.prompt, second.prompt] == ["solve a", "solve b"]
    assert (unended(running), shown(running).waiting) == (2, 3)
    ends(oka, first)
    third = oka.taken()
    assert (third.prompt, unended(running)) == ("solve c", 2)
    ends(oka, second)
    ends(oka, third)
    work_off(running)
    done = shown(running)
    assert (done.status, done.succeeded, done.resolved, done.cost_usd) == ("finished", 5, 5, pytest.approx(5 * COST))
    assert (done.exit_statuses, done.verifications, done.remaining_s) == ({"stopped": 5}, {"verified": 5}, 0.0)
    assert len({each.session_id for each in orders_of(running)}) == 5
    assert {running.order(row.order or "").batch for row in rows(running)} == {done.id}


def test_a_row_whose_project_is_gone_is_refused_with_the_reason_and_the_others_go_on(running: Plane) -> None:
    projects.add(running.core, running.admin, projects.ProjectRequest(slug="gone", git_url="https://git.example/g.git"))
    submit_batch(running, [*rows_of("a"), *rows_of("b", project="gone"), *rows_of("c")], parallel=1)
    running.until(lambda: unended(running) == 1)
    projects.remove(running.core, running.admin, "gone")
    running.drone("oka")
    work_off(running)
    found = {row.id: (row.state, row.resolved) for row in rows(running)}
    assert found == {"a": ("succeeded", True), "b": ("refused", False), "c": ("succeeded", True)}
    assert "'gone' not found (E-PROJECT-404)" in rows(running, state="refused")[0].reason
    assert (shown(running).outcome, [row.outcome for row in rows(running)]) == (
        "failed",
        ["unchanged", None, "unchanged"],
    )
    assert [row.id for row in rows(running, state="unresolved")] == ["b"]


@pytest.mark.dialects
def test_retry_runs_the_failed_rows_again_in_their_own_orders_and_within_the_limit_on_each_database(
    running: Plane,
) -> None:
    running.drone("oka", concurrency=8)
    submit_batch(running, rows_of("abcdef"), parallel=2)
    work_off(running, lambda drone, order: (fails if order.prompt[-1] in "bdf" else work)(drone, order))
    before = {row.id: row.order for row in rows(running)}
    assert shown(running).exit_statuses == {"stopped": 3, "time_limit": 3}
    assert [row.id for row in rows(running, state="failed")] == ["b", "d", "f"]
    assert [row.id for row in rows(running, state="resolved", after=1)] == ["c", "e"]

    again = changing.retry(running.core, running.admin, "night", RetryBatchRequest())
    assert (again.status, again.ended) == ("running", 3)
    most = []

    def counted(drone: DroneStandIn, order: WorkOrder) -> None:
        most.append(unended(running))
        work(drone, order)

    work_off(running, counted)
    assert max(most) <= 2
    assert {row.id: row.order for row in rows(running)} == before
    assert (shown(running).resolved, shown(running).cost_usd) == (6, pytest.approx(9 * COST))
    with pytest.raises(Conflict, match="no row of batch night has failed"):
        changing.retry(running.core, running.admin, "night", RetryBatchRequest())
    found = comparing.compare(running.core, running.admin, "night", shown(running).id)
    assert (found.both, found.a.resolved, found.cost_a_usd) == (6, 6, pytest.approx(9 * COST))
    assert changing.cancel(running.core, running.admin, "night").status == "canceled"
    assert [each.name for each in reading.list_(running.core, running.admin)] == ["night"]


def test_cancel_ends_what_runs_and_starts_nothing_more_and_retry_continues(running: Plane) -> None:
    oka = running.drone("oka")
    submit_batch(running, rows_of("abcd"), parallel=1)
    work(oka, running.until(oka.take))
    running.until(lambda: shown(running).succeeded == 1 and shown(running).open == 1)
    changing.cancel(running.core, running.admin, "night")
    running.until(lambda: shown(running).status == "canceled")
    assert [row.state for row in rows(running)] == ["succeeded", "canceled", "canceled", "canceled"]
    assert len(orders_of(running)) == 2

    changing.retry(running.core, running.admin, "night", RetryBatchRequest(which="canceled"))
    work_off(running)
    assert (shown(running).resolved, len(orders_of(running))) == (4, 4)


def test_nothing_starts_before_the_last_rows_are_there_and_a_repeated_submission_replaces_them(running: Plane) -> None:
    running.drone("oka")
    request = {"name": "night", "rows": rows_of("ax"), "more": True}
    submitting.submit(running.core, running.admin, submitting.BatchRequest.model_validate(request))
    assert shown(running).status == "loading"
    request["rows"] = rows_of("ab")
    submitting.submit(running.core, running.admin, submitting.BatchRequest.model_validate(request))
    assert orders_of(running) == []
    submitting.add_rows(running.core, running.admin, "night", RowsRequest.model_validate({"rows": rows_of("bc")}))
    work_off(running)
    assert [row.id for row in rows(running)] == ["a", "b", "c"]


def test_the_same_name_with_the_same_rows_is_the_same_batch_and_with_others_a_conflict(plane: Plane) -> None:
    first = submit_batch(plane, rows_of("ab"))
    assert submit_batch(plane, rows_of("ab")).id == first.id
    with pytest.raises(Conflict) as refusal:
        submit_batch(plane, rows_of("ba"))
    assert refusal.value.code == "E-BATCH-CHANGED"
    changed = RowsRequest.model_validate({"rows": rows_of("a", priority=5)})
    with pytest.raises(Conflict, match="row 'a' differs from the one that batch night has"):
        submitting.add_rows(plane.core, plane.admin, "night", changed)
    assert shown(plane).total == 2


def test_one_bad_row_refuses_all_and_is_named(plane: Plane) -> None:
    cases = (
        ([*rows_of("ab"), *rows_of("c", project="nowhere")], NotFound, "c"),
        ([*rows_of("a"), *rows_of("b", prompt="  ")], Invalid, "b"),
        ([*rows_of("a"), *rows_of("b", base="main")], Invalid, "b"),
        ([*rows_of("a"), *rows_of("b", provider="gpt")], NotFound, "b"),
        ([*rows_of("a"), *rows_of("b", session="x")], Invalid, "b"),
        (rows_of("aba"), Invalid, "a"),
    )
    for bad, kind, row in cases:
        with pytest.raises(kind, match=f"'{row}'"):
            submit_batch(plane, bad)
    with pytest.raises(NotFound):
        shown(plane)


def test_two_batches_are_paired_by_row_and_compared_with_mcnemars_exact_test(running: Plane) -> None:
    running.drone("oka", concurrency=8)
    submit_batch(running, rows_of("abcdefg"), "first", 8)
    work_off(running, lambda drone, order: (work if order.prompt[-1] in "abcd" else fails)(drone, order), "first")
    submit_batch(running, rows_of("gfedcbx"), "second", 8)
    work_off(running, lambda drone, order: (work if order.prompt[-1] in "be" else fails)(drone, order), "second")
    found = comparing.compare(running.core, running.admin, "first", "second")
    assert (found.pairs, found.unpaired_a, found.unpaired_b, found.unfinished) == (6, 1, 1, 0)
    # first resolved b, c, d of the pairs; second b and e.
    assert (found.both, found.only_a, found.only_b, found.neither) == (1, 2, 1, 2)
    assert found.p_value == 1.0
    assert [(each.id, each.resolved_by) for each in found.different] == [("c", "a"), ("d", "a"), ("e", "b")]
    assert (found.cost_a_usd, found.cost_b_usd) == (pytest.approx(6 * COST), pytest.approx(6 * COST))


@pytest.mark.parametrize("number", [30, pytest.param(1000, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_each_row_runs_exactly_once_although_the_control_plane_restarts_twice_and_a_drone_is_lost(
    plane: Plane, number: int
) -> None:
    drones = [plane.drone(name) for name in ("oka", "mila", "vida", "lost")]
    parts = [plane.collector(), plane.supervisor(lost_after=3.0)]
    submit_batch(plane, rows_of(range(number)), parallel=4)
    done: Counter[str] = Counter()
    kept: list[WorkOrder] = []
    # A drone names what it did until that is confirmed; these are more than may be unconfirmed.
    ended = {drone.name: deque[WorkOrder](maxlen=8) for drone in drones}
    most, restarts = 0, {number // 3, 2 * number // 3}

    def step() -> bool:
        nonlocal most, parts
        for drone in drones:
            if drone.name != "lost" or not kept:
                drone.beat(*(drone.run_beat(order, ended=True) for order in ended[drone.name]))
            while (order := drone.take()) is not None:
                if drone.name == "lost":
                    # It claims one order, and is never heard of again.
                    drone.claim(order)
                    drone.report(order, drone.started())
                    kept.append(order)
                    plane.core.broker.redis.delete(names.lease_key(drone.id))
                    break
                done[order.prompt] += 1
                work(drone, order)
                ended[drone.name].append(order)
        most = max(most, unended(plane))
        if restarts and len(done) >= min(restarts):
            restarts.remove(min(restarts))
            for part in parts:
                plane.stop(part)
            parts = [plane.collector(), plane.supervisor(lost_after=3.0)]
        return shown(plane).status == "finished"

    plane.until(step, rounds=20 * number)
    assert kept
    assert not restarts
    assert most <= 4
    assert Counter(done.values()) == {1: number}
    found = rows(plane)
    assert [row.id for row in found] == [str(each) for each in range(number)]
    assert {(row.state, row.resolved) for row in found} == {("succeeded", True)}
    assert len({row.order for row in found}) == number == len(orders_of(plane))


def test_a_second_order_of_a_row_is_refused_by_the_database_too(plane: Plane) -> None:
    submit_batch(plane, rows_of("ab"))
    plane.supervisor()
    first, second = plane.until(lambda: len(orders_of(plane)) == 2 and orders_of(plane))
    with pytest.raises(IntegrityError):
        plane.edit(Order, second.id, idempotency_key=first.idempotency_key)


def test_a_batch_has_at_most_ten_thousand_rows(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submitting.declared, "MOST_ROWS", 3)
    submit_batch(plane, rows_of("abc"))
    more = RowsRequest.model_validate({"rows": rows_of("d")})
    with pytest.raises(TooLarge) as refusal:
        submitting.add_rows(plane.core, plane.admin, "night", more)
    assert refusal.value.code == "E-BATCH-SIZE"
