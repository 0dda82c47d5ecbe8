"""Graphs: orders that build on each other, submitted, shown and canceled as one."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane.contract.declarations.graphs import GraphRequest
from control_plane.contract.declarations.sessions import MAX_SESSION_NAME
from control_plane.db.orders import Order
from control_plane.operations import graphs
from control_plane.operations.orders import retrying
from control_plane.operations.sessions import reading as session_reading
from shared.errors import Invalid
from tests.support.planes import Plane
from tests.support.refusals import code_of
from tests.support.stand_in import DroneStandIn

ONE = {"name": "one", "prompt": "One"}
TWO = {"name": "two", "prompt": "Two", "after": ["one"]}
THREE = {"name": "three", "prompt": "Three", "after": ["two"]}


def submitted(
    plane: Plane, *orders: dict[str, Any], project: str | None = "app", name: str = "release"
) -> graphs.GraphDocument:
    request = {"name": name, "project": project, "orders": orders}
    return graphs.submit(plane.core, plane.admin, GraphRequest.model_validate(request))


def run(plane: Plane, drone: DroneStandIn, **ended: str) -> str:
    """The drone's next order, to its end; returns its name in the graph."""
    order = drone.taken()
    drone.report(order, drone.started(), drone.ended(**ended))
    plane.until(lambda: plane.order(order.order_id).ended_at is not None)
    return str(plane.order(order.order_id).key)


def test_the_orders_are_sorted_and_canceled_as_one(plane: Plane) -> None:
    earlier = plane.submit()
    graph = submitted(plane, THREE, TWO, {**ONE, "after": [earlier]})
    assert [order.key for order in graph.orders] == ["one", "two", "three"]
    ids = {order.key: order.id for order in graph.orders}
    assert [order.after for order in graph.orders] == [[earlier], [ids["one"]], [ids["two"]]]
    assert (graph.status, graph.total, graph.succeeded, graph.failed) == ("running", 3, 0, 0)
    assert [listed.id for listed in graphs.list_(plane.core, plane.admin)] == [graph.id]
    assert graphs.show(plane.core, plane.admin, graph.id[:6]).id == graph.id
    canceled = graphs.cancel(plane.core, plane.admin, graph.id)
    assert (canceled.status, canceled.failed) == ("canceled", 3)
    assert "with graph release" in str(canceled.orders[2].reason)


def test_sessions_are_named_by_graph_and_order_and_of_a_long_name_the_graphs_part_is_cut(plane: Plane) -> None:
    names = {}
    for graph, order in (("release", "one"), ("g" * 255, "o" * 64)):
        (made,) = submitted(plane, {**ONE, "name": order}, name=graph).orders
        names[order] = session_reading.show(plane.core, plane.admin, made.session).name
    assert names == {"one": "release: one", "o" * 64: f"{'g' * (MAX_SESSION_NAME - 66)}: {'o' * 64}"}


def test_after_a_failure_the_rest_is_blocked_until_it_is_retried_and_runs_in_its_order(
    running: Plane, oka: DroneStandIn
) -> None:
    plane = running
    graph = submitted(plane, THREE, ONE, TWO)
    run(plane, oka, status="failed", exit_status="time_limit")
    blocked = graphs.show(plane.core, plane.admin, graph.id)
    assert (blocked.status, blocked.failed) == ("blocked", 1)
    retrying.retry(plane.core, plane.admin, blocked.orders[0].id)
    assert graphs.show(plane.core, plane.admin, graph.id).status == "running"
    assert [run(plane, oka) for _ in range(3)] == ["one", "two", "three"]
    assert graphs.show(plane.core, plane.admin, graph.id).status == "succeeded"


def test_it_is_blocked_by_a_failed_order_outside_and_behind_a_waiting_order_in_a_session(
    running: Plane, oka: DroneStandIn
) -> None:
    plane, other = running, submitted(running, ONE, name="other").orders[0]
    outside, session = other.id, other.session
    graph = submitted(plane, {**ONE, "after": [outside], "session": session}, {**TWO, "session": session, "after": []})
    assert graph.status == "running"
    run(plane, oka, status="failed", exit_status="time_limit")
    assert graphs.show(plane.core, plane.admin, graph.id).status == "blocked"
    listed = {each.name: each.status for each in graphs.list_(plane.core, plane.admin)}
    assert listed == {"release": "blocked", "other": "failed"}


def test_a_graph_that_cannot_be_is_refused_as_a_whole(plane: Plane) -> None:
    bad: list[tuple[str, tuple[dict[str, Any], ...], str | None]] = [
        ("E-GRAPH-NAME", (ONE, ONE), "app"),
        ("E-GRAPH-AFTER", (TWO,), "app"),
        ("E-GRAPH-CYCLE", ({**ONE, "after": ["three"]}, TWO, THREE), "app"),
        ("E-GRAPH-CYCLE", ({**ONE, "after": ["one"]},), "app"),
        ("E-GRAPH-PROJECT", (ONE,), None),
        ("E-PROJECT-404", (ONE, {**TWO, "project": "nothing"}), "app"),
        ("E-ORDER-PROMPT", (ONE, {**TWO, "prompt": " "}), "app"),
        ("E-ORDER-404", (ONE, {**TWO, "after": ["abc123abc123"]}), "app"),
    ]
    found = [
        (code_of(lambda orders=orders, project=project: submitted(plane, *orders, project=project)), orders, project)
        for _, orders, project in bad
    ]
    assert found == bad
    assert plane.rows(Order) == []
    with pytest.raises(Invalid, match="order two: "):
        submitted(plane, ONE, {**TWO, "prompt": " "})
