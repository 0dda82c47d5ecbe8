"""Graphs: orders that build on each other, submitted, shown and canceled as one."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane.db.orders import Order
from control_plane.declarations.graphs import GraphRequest
from control_plane.operations import graphs
from control_plane.operations.orders import retrying
from shared.errors import Conflict, FleetError, Invalid, NotFound
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

ONE = {"name": "one", "prompt": "One"}
TWO = {"name": "two", "prompt": "Two", "after": ["one"]}
THREE = {"name": "three", "prompt": "Three", "after": ["two"]}


def request(*orders: dict[str, Any], **more: Any) -> GraphRequest:
    return GraphRequest.model_validate({"name": "release", "project": "app", **more, "orders": orders})


def submitted(plane: Plane, *orders: dict[str, Any], **more: Any) -> graphs.GraphDocument:
    return graphs.submit(plane.core, plane.admin, request(*orders, **more))


def run(plane: Plane, drone: DroneStandIn, **ended: str) -> str:
    """The drone's next order, to its end; returns its name in the graph."""
    order = plane.until(drone.take)
    assert drone.claim(order)
    drone.report(order, drone.started(), drone.ended(**ended))
    plane.until(lambda: plane.order(order.order_id).ended_at is not None)
    return str(plane.order(order.order_id).key)


def test_the_orders_are_created_together_sorted_and_named(plane: Plane) -> None:
    graph = submitted(plane, THREE, TWO, ONE)
    assert [order.key for order in graph.orders] == ["one", "two", "three"]
    ids = {order.key: order.id for order in graph.orders}
    assert [order.after for order in graph.orders] == [[], [ids["one"]], [ids["two"]]]
    assert (graph.status, graph.total, graph.succeeded, graph.failed) == ("running", 3, 0, 0)
    assert {order.graph for order in graph.orders} == {graph.id}
    assert [listed.id for listed in graphs.list_(plane.core, plane.admin)] == [graph.id]
    assert graphs.show(plane.core, plane.admin, graph.id[:6]).id == graph.id


def test_it_runs_in_its_order_and_succeeds(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    graph = submitted(plane, THREE, ONE, TWO)
    assert [run(plane, oka) for _ in range(3)] == ["one", "two", "three"]
    assert graphs.show(plane.core, plane.admin, graph.id).status == "succeeded"


def test_after_a_failure_the_rest_is_blocked_until_it_is_retried(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    graph = submitted(plane, ONE, TWO, THREE)
    run(plane, oka, status="failed", exit_status="time_limit")
    blocked = graphs.show(plane.core, plane.admin, graph.id)
    assert (blocked.status, blocked.failed) == ("blocked", 1)
    retrying.retry(plane.core, plane.admin, blocked.orders[0].id)
    assert graphs.show(plane.core, plane.admin, graph.id).status == "running"
    assert [run(plane, oka) for _ in range(3)] == ["one", "two", "three"]


def test_it_is_canceled_as_one(plane: Plane) -> None:
    graph = submitted(plane, ONE, TWO, THREE)
    canceled = graphs.cancel(plane.core, plane.admin, graph.id)
    assert (canceled.status, canceled.failed) == ("canceled", 3)
    assert canceled.orders[2].reason == "canceled by system: with graph release; it had not started"


def test_the_same_key_gives_the_same_graph_once(plane: Plane) -> None:
    made = [graphs.submit(plane.core, plane.admin, request(ONE, TWO), "key").id for _ in range(2)]
    assert made[0] == made[1]
    assert len(plane.rows(Order, Order.group_id == made[0])) == 2
    with pytest.raises(Conflict):
        graphs.submit(plane.core, plane.admin, request(ONE), "key")


def test_an_order_may_start_after_one_that_is_not_in_the_graph(plane: Plane) -> None:
    earlier = plane.submit()
    graph = submitted(plane, {**ONE, "after": [earlier]})
    assert graph.orders[0].after == [earlier]


@pytest.mark.parametrize(
    ("orders", "more", "error", "code_and_text"),
    [
        ([ONE, ONE], {}, Invalid, ("E-GRAPH-NAME", "two orders are named one")),
        ([TWO], {}, Invalid, ("E-GRAPH-AFTER", "order two starts after 'one'")),
        ([{**ONE, "after": ["three"]}, TWO, THREE], {}, Invalid, ("E-GRAPH-CYCLE", "one")),
        ([{**ONE, "after": ["one"]}], {}, Invalid, ("E-GRAPH-CYCLE", "one → one")),
        ([ONE], {"project": None}, Invalid, ("E-GRAPH-PROJECT", "order one has no project")),
        ([ONE, {**TWO, "project": "nothing"}], {}, NotFound, ("E-PROJECT-404", "order two: ")),
        ([ONE, {**TWO, "prompt": " "}], {}, Invalid, ("E-ORDER-PROMPT", "order two: the prompt is empty")),
        ([ONE, {**TWO, "after": ["abc123abc123"]}], {}, NotFound, ("E-ORDER-404", "order two: ")),
    ],
)
def test_a_graph_that_cannot_be_is_refused_as_a_whole(
    plane: Plane,
    orders: list[dict[str, Any]],
    more: dict[str, Any],
    error: type[FleetError],
    code_and_text: tuple[str, str],
) -> None:
    code, text = code_and_text
    with pytest.raises(error) as refusal:
        submitted(plane, *orders, **more)
    assert (refusal.value.code, text in refusal.value.what) == (code, True)
    assert plane.rows(Order) == []


def test_a_graph_that_does_not_exist_is_not_found(plane: Plane) -> None:
    with pytest.raises(NotFound) as refusal:
        graphs.show(plane.core, plane.admin, "0" * 12)
    assert refusal.value.code == "E-GROUP-404"
