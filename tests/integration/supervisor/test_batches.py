"""Batches: as many orders as asked are under way, and each row gets one order, whatever happens."""

from __future__ import annotations

from collections import Counter, deque

import pytest
from sqlalchemy.exc import IntegrityError

from control_plane.contract.declarations.batches import BatchRequest, RetryBatchRequest, RowsRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.db.orders import Order
from control_plane.operations import projects
from control_plane.operations.batches import changing, comparing, reading, submitting
from control_plane.supervisor.groups import submit_due
from control_plane.supervisor.placing import place_queued
from shared import names
from shared.errors import Invalid, NotFound
from shared.work_order import WorkOrder
from tests.support.batches import COST, rows, rows_of, shown, submit_batch, work
from tests.support.made import start_run
from tests.support.planes import Plane
from tests.support.refusals import code_of
from tests.support.team_rows import end


def orders_of(plane: Plane) -> list[Order]:
    return plane.rows(Order, Order.group_id.is_not(None))


def unended(plane: Plane) -> list[Order]:
    """The orders under way, in the order of their submission."""
    found = plane.rows(Order, Order.group_id.is_not(None), Order.ended_at.is_(None))
    return sorted(found, key=lambda order: order.number)


def go_on(plane: Plane) -> list[str]:
    """What a supervisor does for batches in a round; the prompts of the orders that are under way then."""
    submit_due(plane.core)
    place_queued(plane.core)
    return [order.prompt for order in unended(plane)]


def ends(plane: Plane, order: Order, how: str = "succeeded") -> None:
    """A run of the order, which costs 0.25 USD, verifies its work if it succeeds, and ends the order."""
    plane.edit(Order, order.id, verification="verified" if how == "succeeded" else "failed")
    start_run(plane.core, order.id, cost_usd=COST)
    end(plane.core, order.id, how)


def work_off(plane: Plane, batch: str = "night", *, failing: str = "") -> int:
    """Run the batch to its end; the rows in `failing` fail. Returns how many orders were under way at most."""
    most = 0
    for _ in range(50):
        if not go_on(plane) and shown(plane, batch).status == "finished":
            return most
        most = max(most, len(unended(plane)))
        for order in unended(plane):
            ends(plane, order, "time_limit" if order.prompt[-1] in failing else "succeeded")
    pytest.fail(f"batch {batch} does not end")


@pytest.fixture
def plane(plane: Plane) -> Plane:
    """With a drone, and without any component: the tests do what those do for batches."""
    plane.drone("oka", concurrency=8)
    return plane


def test_only_so_many_orders_are_under_way_and_the_next_row_follows_when_one_ends(plane: Plane) -> None:
    submit_batch(plane, rows_of("abc"), parallel=2)
    assert go_on(plane) == ["solve a", "solve b"]
    assert (go_on(plane), shown(plane).waiting) == (["solve a", "solve b"], 1)
    ends(plane, unended(plane)[0])
    assert go_on(plane) == ["solve b", "solve c"]
    assert work_off(plane) == 2
    done = shown(plane)
    assert (done.status, done.succeeded, done.resolved, done.cost_usd) == ("finished", 3, 3, pytest.approx(3 * COST))
    assert (done.exit_statuses, done.verifications, done.remaining_s) == ({"stopped": 3}, {"verified": 3}, 0.0)
    assert {plane.order(row.order or "").batch for row in rows(plane)} == {done.id}
    one, other, _ = orders_of(plane)
    assert one.session_id != other.session_id
    # A second order of a row is refused by the database, too.
    with pytest.raises(IntegrityError):
        plane.edit(Order, other.id, idempotency_key=one.idempotency_key)


def test_nothing_starts_before_the_last_rows_are_there_and_a_row_whose_project_is_gone_is_refused(plane: Plane) -> None:
    projects.add(plane.core, plane.admin, ProjectRequest(slug="gone", git_url="https://git.example/g.git"))
    # A repeated submission replaces the rows.
    for ids in ("ax", "ab"):
        request = BatchRequest.model_validate({"name": "night", "parallel": 1, "rows": rows_of(ids), "more": True})
        submitting.submit(plane.core, plane.admin, request)
    assert (go_on(plane), shown(plane).status) == ([], "loading")
    last = [*rows_of("b"), *rows_of("c", project="gone"), *rows_of("d")]
    submitting.add_rows(plane.core, plane.admin, "night", RowsRequest.model_validate({"rows": last}))
    projects.remove(plane.core, plane.admin, "gone")
    assert work_off(plane) == 1
    found = {row.id: (row.state, row.outcome) for row in rows(plane)}
    done = ("succeeded", "unchanged")
    assert found == {"a": done, "b": done, "c": ("refused", None), "d": done}
    assert "'gone' not found (E-PROJECT-404)" in rows(plane, state="refused")[0].reason
    assert ([row.id for row in rows(plane, state="unresolved")], shown(plane).outcome) == (["c"], "failed")


@pytest.mark.dialects
def test_retry_runs_the_failed_rows_again_in_their_own_orders_and_within_the_limit_on_each_database(
    plane: Plane,
) -> None:
    submit_batch(plane, rows_of("abcdef"), parallel=2)
    assert work_off(plane, failing="bdf") == 2
    before = {row.id: row.order for row in rows(plane)}
    assert shown(plane).exit_statuses == {"stopped": 3, "time_limit": 3}
    assert [row.id for row in rows(plane, state="failed")] == ["b", "d", "f"]
    assert [row.id for row in rows(plane, state="resolved", after=1)] == ["c", "e"]

    again = changing.retry(plane.core, plane.admin, "night", RetryBatchRequest())
    assert (again.status, again.ended) == ("running", 3)
    assert work_off(plane) == 2
    assert {row.id: row.order for row in rows(plane)} == before
    assert (shown(plane).resolved, shown(plane).cost_usd) == (6, pytest.approx(9 * COST))
    retry = code_of(lambda: changing.retry(plane.core, plane.admin, "night", RetryBatchRequest()))
    assert retry == "E-BATCH-STATE"


def test_cancel_ends_what_runs_and_starts_nothing_more_and_retry_continues(plane: Plane) -> None:
    submit_batch(plane, rows_of("abcd"), parallel=1)
    go_on(plane)
    ends(plane, unended(plane)[0])
    go_on(plane)
    changing.cancel(plane.core, plane.admin, "night")
    assert (go_on(plane), shown(plane).status) == ([], "canceled")
    assert [row.state for row in rows(plane)] == ["succeeded", "canceled", "canceled", "canceled"]
    assert len(orders_of(plane)) == 2

    changing.retry(plane.core, plane.admin, "night", RetryBatchRequest(which="canceled"))
    work_off(plane)
    assert (shown(plane).resolved, len(orders_of(plane))) == (4, 4)
    assert [each.name for each in reading.list_(plane.core, plane.admin)] == ["night"]


def test_cancel_leaves_a_finished_batch_as_it_is_and_ends_one_whose_rows_are_not_all_there(plane: Plane) -> None:
    submit_batch(plane, rows_of("a"))
    work_off(plane)
    assert changing.cancel(plane.core, plane.admin, "night").status == "finished"
    submitting.add_rows(plane.core, plane.admin, "night", RowsRequest.model_validate({"rows": rows_of("b")}))
    work_off(plane)
    assert [row.state for row in rows(plane)] == ["succeeded", "succeeded"]
    loading = BatchRequest.model_validate({"name": "day", "rows": rows_of("a"), "more": True})
    submitting.submit(plane.core, plane.admin, loading)
    assert changing.cancel(plane.core, plane.admin, "day").status == "canceled"


def test_the_same_name_with_the_same_rows_is_the_same_batch_and_other_or_too_many_rows_are_refused(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = submit_batch(plane, rows_of("ab"))
    assert submit_batch(plane, rows_of("ab")).id == first.id
    monkeypatch.setattr(submitting.declared, "MOST_ROWS", 2)
    changed, more = (RowsRequest.model_validate({"rows": each}) for each in (rows_of("a", priority=5), rows_of("c")))
    codes = [
        code_of(lambda: submit_batch(plane, rows_of("ba"))),
        code_of(lambda: submitting.add_rows(plane.core, plane.admin, "night", changed)),
        code_of(lambda: submitting.add_rows(plane.core, plane.admin, "night", more)),
    ]
    assert codes == ["E-BATCH-CHANGED", "E-BATCH-CHANGED", "E-BATCH-SIZE"]
    assert shown(plane).total == 2


def test_one_bad_row_refuses_all_and_is_named(plane: Plane) -> None:
    cases = (
        ([*rows_of("ab"), *rows_of("c", project="nowhere")], NotFound, "c"),
        ([*rows_of("a"), *rows_of("b", prompt="  ")], Invalid, "b"),
        ([*rows_of("a"), *rows_of("b", base="main")], Invalid, "b"),
        ([*rows_of("a"), *rows_of("b", provider="gpt")], NotFound, "b"),
        ([*rows_of("a"), *rows_of("b", session="x")], Invalid, "b"),
        ([*rows_of("a"), *rows_of("b", mode="reviw")], NotFound, "b"),
        ([*rows_of("a"), *rows_of("b", profile="nope")], NotFound, "b"),
        ([*rows_of("a"), *rows_of("b", reviewer="gpt")], NotFound, "b"),
        ([*rows_of("a", mode="plan"), *rows_of("b", mode="plan", plan_first=True)], Invalid, "b"),
        ([*rows_of("a"), *rows_of("b", verify=[""])], Invalid, "b"),
        (rows_of("aba"), Invalid, "a"),
    )
    for bad, kind, row in cases:
        with pytest.raises(kind, match=f"'{row}'"):
            submit_batch(plane, bad)
    with pytest.raises(NotFound):
        shown(plane)


def test_two_batches_are_paired_by_row_and_compared_with_mcnemars_exact_test(plane: Plane) -> None:
    submit_batch(plane, rows_of("abcdefg"), "first", 8)
    work_off(plane, "first", failing="efg")
    submit_batch(plane, rows_of("gfedcbx"), "second", 8)
    work_off(plane, "second", failing="gfdcx")
    found = comparing.compare(plane.core, plane.admin, "first", shown(plane, "second").id)
    assert (found.pairs, found.unpaired_a, found.unpaired_b, found.unfinished) == (6, 1, 1, 0)
    # first resolved b, c, d of the pairs; second b and e.
    assert (found.both, found.only_a, found.only_b, found.neither) == (1, 2, 1, 2)
    assert found.p_value == 1.0
    assert [(each.id, each.resolved_by) for each in found.different] == [("c", "a"), ("d", "a"), ("e", "b")]
    assert (found.cost_a_usd, found.cost_b_usd) == (pytest.approx(6 * COST), pytest.approx(6 * COST))


@pytest.mark.parametrize("number", [12, pytest.param(1000, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_each_row_runs_exactly_once_although_the_control_plane_restarts_twice_and_a_drone_is_lost(
    plane: Plane, number: int
) -> None:
    drones = [*plane.drones, *(plane.drone(name) for name in ("mila", "vida", "lost"))]
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
        most = max(most, len(unended(plane)))
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
