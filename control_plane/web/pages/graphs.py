"""Graphs of orders: the list, and one graph."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from control_plane.operations import graphs
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.pages.frame import frame_for
from control_plane.web.rendering import page, wants_part

router = APIRouter(prefix="/graphs", include_in_schema=False)
LISTED = 100


@router.get("")
def graph_list(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The newest graphs."""
    around = frame_for(request, caller, "orders", ["orders"])
    context = {**around, "graphs": graphs.list_(core, caller, LISTED)}
    return page("graphs/list.html" if wants_part(request) else "graphs/page.html", context)


@router.get("/{graph_id}")
def graph(request: Request, core: CoreDep, caller: CallerDep, graph_id: str) -> Response:
    """One graph: its orders, what each waits for, and what can be done about it."""
    found = graphs.show(core, caller, graph_id)
    topics = [f"order:{order.id}" for order in found.orders]
    around = frame_for(request, caller, "orders", topics)
    names = {order.id: order.key for order in found.orders}
    context = {**around, "graph": found, "names": names, "topics": topics}
    return page("graphs/orders.html" if wants_part(request) else "graphs/graph.html", context)
