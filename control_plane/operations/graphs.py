"""Graphs: orders that build on each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import graphs as declared
from control_plane.contract.declarations.graphs import (
    GraphDocument,
    GraphOrder,
    GraphRequest,
    GraphStatus,
    GraphSummary,
)
from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.contract.declarations.sessions import MAX_SESSION_NAME
from control_plane.contract.documents.orders import OrderSummary
from control_plane.contract.validation.checks import check_text
from control_plane.core import Caller, Core
from control_plane.core.lookups.groups import find_group
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.operations.gateway import performs
from control_plane.operations.groups import cancel_open, cost_of, submit_once
from control_plane.operations.orders.reading import orders_of_groups
from control_plane.operations.orders.submitting import check_request, draft_of
from control_plane.orders.draft import create_order
from shared.errors import FleetError, Invalid
from shared.outcome import GREEN, outcome_together
from shared.states import OrderStatus

_GONE = {OrderStatus.FAILED, OrderStatus.CANCELED}


@performs(declared.SUBMIT)
def submit(core: Core, caller: Caller, request: GraphRequest, idempotency_key: str | None = None) -> GraphDocument:
    """Submit all orders of a graph, or none of them; they are durable when this returns.

    Raises Invalid for names that are not unique, that do not exist or that form a cycle, and as `submit` for each of
    its orders.
    """
    check_text("the name", request.name, limit=255, empty=True)
    ordered = _sorted(request.orders)
    wanted = [(each.name, _request_of(each, request)) for each in ordered]
    for name, order in wanted:
        with _named(name):
            check_request(order, None)

    def write(db: Db, group: OrderGroup) -> Sequence[str]:
        ids: dict[str, str] = {}
        for name, order in wanted:
            with _named(name):
                after = [ids.get(each, each) for each in order.after]
                draft = draft_of(db, core, caller, order.model_copy(update={"after": after}))
            if order.session is None:
                draft.session.name = _session_name(group.name, name)
            ids[name] = create_order(db, core, replace(draft, group_id=group.id, group_key=name)).id
        return list(ids.values())

    group_id = submit_once(core, caller, ("graph", request.name, request, idempotency_key), write)
    return show(core, caller, group_id)


@performs(declared.LIST)
def list_(core: Core, caller: Caller, limit: int = 50) -> list[GraphSummary]:
    """The organization's graphs, newest first."""
    with core.database.read() as db:
        wanted = select(OrderGroup).where(
            OrderGroup.organization_id == caller.organization_id, OrderGroup.kind == "graph"
        )
        rows = db.scalars(wanted.order_by(OrderGroup.created_at.desc(), OrderGroup.id).limit(limit)).all()
        orders = orders_of_groups(db, core, caller, [row.id for row in rows])
    gone = _gone_before(core, [order for row in rows for order in orders[row.id]])
    return [GraphSummary(**_summary(row, orders[row.id], gone)) for row in rows]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, graph_id: str) -> GraphDocument:
    """A graph with its orders. Raises NotFound, and Invalid for an ambiguous prefix."""
    with core.database.read() as db:
        row = find_group(db, caller, "graph", graph_id)
        orders = orders_of_groups(db, core, caller, [row.id])[row.id]
    return GraphDocument(**_summary(row, orders, _gone_before(core, orders)), orders=orders)


@performs(declared.CANCEL)
def cancel(core: Core, caller: Caller, graph_id: str) -> GraphDocument:
    """Cancel the graph's orders that have not ended. Raises as `show`."""
    graph = show(core, caller, graph_id)
    cancel_open(core, caller, graph.orders, f"with graph {graph.name or graph.id}")
    return show(core, caller, graph.id)


def status_of(orders: Sequence[OrderSummary], gone: Set[str]) -> GraphStatus:
    """The state of a graph with these orders; `gone`: those that failed or were canceled of the orders before them."""
    states = {order.status for order in orders}
    if states == {OrderStatus.SUCCEEDED}:
        return "succeeded"
    open_ones = [order for order in orders if order.ended_at is None]
    if not open_ones:
        return "failed" if OrderStatus.FAILED in states else "canceled"
    return "blocked" if _stuck(orders, gone) >= {order.id for order in open_ones} else "running"


def _stuck(orders: Sequence[OrderSummary], gone: Set[str]) -> set[str]:
    """The ids of the orders that wait, directly or not, for one that failed or was canceled."""
    stuck: set[str] = set()
    sessions: set[str] = set()
    for order in orders:
        waits = order.session in sessions or not (gone | stuck).isdisjoint(order.after)
        if order.status == OrderStatus.QUEUED and waits:
            stuck.add(order.id)
            sessions.add(order.session)
    return stuck


def _gone_before(core: Core, orders: Sequence[OrderSummary]) -> Set[str]:
    """Those that failed or were canceled of the orders that these start after."""
    before = {each for order in orders for each in order.after}
    if not before:
        return frozenset()
    with core.database.read() as db:
        return set(db.scalars(select(Order.id).where(Order.id.in_(before), Order.status.in_(_GONE))))


def _summary(row: OrderGroup, orders: Sequence[OrderSummary], gone: Set[str]) -> Mapping[str, object]:
    return {
        "id": row.id,
        "name": row.name,
        "status": status_of(orders, gone),
        "outcome": outcome_together([order.outcome for order in orders]),
        "user": row.user,
        "created_at": row.created_at,
        "total": len(orders),
        "done": sum(order.outcome in GREEN for order in orders),
        "succeeded": sum(order.status == OrderStatus.SUCCEEDED for order in orders),
        "failed": sum(order.status in _GONE for order in orders),
        "cost_usd": cost_of(orders),
    }


def _session_name(graph: str, order: str) -> str:
    """`GRAPH: ORDER`; of a graph with a long name, its beginning."""
    return f"{graph[: MAX_SESSION_NAME - len(order) - 2]}: {order}" if graph else order


def _request_of(order: GraphOrder, graph: GraphRequest) -> SubmitRequest:
    """The order as it would be submitted alone. Raises Invalid without a project."""
    project = order.project or graph.project
    if project is None:
        raise Invalid(
            f"order {order.name} has no project",
            code="E-GRAPH-PROJECT",
            next="name a project for the graph, or for each of its orders",
        )
    fields = order.model_dump(exclude={"name"})
    return SubmitRequest(**{**fields, "project": project, "provider": order.provider or graph.provider})


def _sorted(orders: Sequence[GraphOrder]) -> list[GraphOrder]:
    """The orders, each behind those that it starts after, else as they were given.

    Raises Invalid for a name that is there twice, one that is unknown, and a cycle.
    """
    named: dict[str, GraphOrder] = {}
    for each in orders:
        if each.name in named:
            raise Invalid(
                f"two orders are named {each.name}", code="E-GRAPH-NAME", next="give each order a name of its own"
            )
        named[each.name] = each
    for each in orders:
        for other in each.after:
            if other not in named and not _like_an_id(other):
                close = get_close_matches(other, named, n=1)
                raise Invalid(
                    f"order {each.name} starts after {other[:80]!r}, and no order of the graph has that name",
                    code="E-GRAPH-AFTER",
                    why=f"the names are: {', '.join(named)}"[:500],
                    next=f"did you mean {close[0]}?" if close else "name one of them, or the id of another order",
                )
    sorter = TopologicalSorter({each.name: [other for other in each.after if other in named] for each in orders})
    try:
        sorted_names = list(sorter.static_order())
    except CycleError as error:
        raise Invalid(
            f"the orders wait for each other: {' → '.join(reversed(error.args[1]))}",
            code="E-GRAPH-CYCLE",
            why="each of them would start only after itself",
            next="remove one of these names from the `after` of the order before it",
        ) from error
    return [named[name] for name in sorted_names]


def _like_an_id(text: str) -> bool:
    return text.startswith("@") or (len(text) >= 4 and set(text) <= set("0123456789abcdef"))


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Add the order's name to an error about it."""
    try:
        yield
    except FleetError as error:
        error.what = f"order {name}: {error.what}"
        error.args = (error.what,)
        raise
