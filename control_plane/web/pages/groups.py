"""Groups of orders: batches with their statistics and rows, the comparison of two, and graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.datastructures import QueryParams
from starlette.responses import Response

from control_plane.contract.declarations.batches import BatchDocument, RowState
from control_plane.operations import graphs
from control_plane.operations.batches import comparing, reading
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.live.topics import MOST_BATCHES, MOST_GRAPHS
from control_plane.web.pages.frame import frame_for
from control_plane.web.problems import problem_of
from control_plane.web.rendering import page, wants_part
from shared.errors import Refused

router = APIRouter(include_in_schema=False)
LISTED = 100
STEP = 100
"""Rows of a batch on one page."""


@router.get("/batches")
def list_batches(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The newest batches with their progress."""
    part = wants_part(request)
    around = frame_for(request, caller, "batches", ["batches"])
    context = {**around, "batches": reading.list_(core, caller, limit=MOST_BATCHES)}
    return page("batches/list.html" if part else "batches/page.html", context)


@router.get("/batches/{batch_id}")
def show_batch(request: Request, core: CoreDep, caller: CallerDep, batch_id: str) -> Response:
    """One batch, and the rows that the address asks for. Raises NotFound."""
    batch = reading.show(core, caller, batch_id)
    chosen, after = _asked(request.query_params)
    part = wants_part(request)
    around = frame_for(request, caller, "batches", [f"batch:{batch.id}"])
    rows = reading.rows(core, caller, batch.id, state=chosen, after=after, limit=STEP)
    context = {
        **around,
        "batch": batch,
        "rows": rows,
        "tabs": _tabs(batch),
        "state": chosen or "",
        "here": _address(batch.id, state=chosen or "", after=after),
        "more": _address(batch.id, state=chosen or "", after=rows[-1].number) if len(rows) == STEP else None,
        "others": [each for each in reading.list_(core, caller, limit=LISTED) if each.id != batch.id],
    }
    return page("batches/details.html" if part else "batches/batch.html", context)


@router.get("/batches/{batch_id}/compare")
def compare_batches(
    request: Request,
    core: CoreDep,
    caller: CallerDep,
    batch_id: str,
    other: Annotated[str, Query(max_length=128)] = "",
) -> Response:
    """Two batches, paired by row. Raises NotFound for the first one."""
    batch = reading.show(core, caller, batch_id)
    around = frame_for(request, caller, "batches")
    found, problem = None, None
    try:
        found = comparing.compare(core, caller, batch.id, other)
    except Refused as error:
        problem = problem_of(request.scope, error).model_dump()
    context = {**around, "batch": batch, "found": found, "problem": problem}
    return page("batches/compare.html", context, problem["status"] if problem else 200)


def _asked(query: QueryParams) -> tuple[RowState | None, int]:
    """The state of the rows, and the number of the row that they follow; what is no such value is ignored."""
    state = next((each for each in get_args(RowState) if each == query.get("state")), None)
    after = query.get("after", "")
    return state, int(after) if after.isdecimal() and len(after) < 9 else 0


@dataclass(frozen=True)
class StateTab:
    """A state, with the number of rows in it."""

    state: str
    words: str
    count: int
    address: str


def _tabs(batch: BatchDocument) -> list[StateTab]:
    """The states in which there are rows."""
    counts: dict[str, int] = {
        "": batch.total,
        "open": batch.open,
        "waiting": batch.waiting,
        "resolved": batch.resolved,
        "unresolved": batch.ended - batch.resolved,
        "succeeded": batch.succeeded,
        "failed": batch.failed,
        "canceled": batch.canceled,
        "refused": batch.refused,
    }
    words = {"": "All", "open": "Under way"}
    return [
        StateTab(state, words.get(state, state.capitalize()), count, _address(batch.id, state=state))
        for state, count in counts.items()
        if count or not state
    ]


def _address(batch_id: str, **terms: object) -> str:
    given = {name: value for name, value in terms.items() if value}
    return f"/batches/{batch_id}?{urlencode(given)}" if given else f"/batches/{batch_id}"


# --- graphs ---------------------------------------------------------------------------------------


@router.get("/graphs")
def graph_list(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The newest graphs."""
    around = frame_for(request, caller, "orders", ["graphs"])
    context = {**around, "graphs": graphs.list_(core, caller, limit=MOST_GRAPHS)}
    return page("graphs/list.html" if wants_part(request) else "graphs/page.html", context)


@router.get("/graphs/{graph_id}")
def graph(request: Request, core: CoreDep, caller: CallerDep, graph_id: str) -> Response:
    """One graph: its orders, what each waits for, and what can be done about it."""
    found = graphs.show(core, caller, graph_id)
    topics = [f"order:{order.id}" for order in found.orders]
    around = frame_for(request, caller, "orders", topics)
    names = {order.id: order.key for order in found.orders}
    context = {**around, "graph": found, "names": names, "topics": topics}
    return page("graphs/orders.html" if wants_part(request) else "graphs/graph.html", context)
