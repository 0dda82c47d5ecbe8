"""Graphs: orders that build on each other, submitted, shown and canceled as one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from control_plane.contract.declarations.operation import (
    ADDS_WORK,
    ENDS,
    READS,
    About,
    ByHand,
    Command,
    Operation,
    Tool,
)
from control_plane.contract.declarations.orders import OrderRequest
from control_plane.contract.documents.base import Document, Request
from control_plane.contract.documents.orders import OrderSummary
from shared.outcome import OrderOutcome

MOST = 200
"""Orders of one graph. Longer lists of independent work are not graphs."""
ID = About("graph", "The graph's id, or a unique prefix of it.", source="graphs:id")
NAME = About("name", "Name of the graph, for people.", absent="none")
PROJECT = About("project", "Project of the orders that name none (slug).", source="projects:slug")
PROVIDER = About("provider", "Provider of the orders that name none.", source="providers:name")
ORDERS = About("orders", "The orders: each has a name, a prompt, and the names of those that it starts after.")
GraphStatus = Literal["running", "blocked", "succeeded", "failed", "canceled"]
"""`blocked`: nothing runs, and what is left waits for an order that failed or was canceled."""


class GraphOrder(OrderRequest):
    """One order of a graph. `after` has names of orders of the same graph, or ids of other orders."""

    name: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    project: str | None = None


class GraphRequest(Request):
    name: Annotated[str, NAME] = Field("", max_length=255)
    project: Annotated[str | None, PROJECT] = None
    provider: Annotated[str | None, PROVIDER] = None
    orders: Annotated[list[GraphOrder], ORDERS] = Field(min_length=1, max_length=MOST)


class GraphSummary(Document):
    id: Annotated[str, ID]
    name: Annotated[str, NAME]
    status: Annotated[GraphStatus, About("status")]
    outcome: Annotated[OrderOutcome | None, About("outcome")]
    """The worst outcome of its orders; null until all of them have ended."""
    user: Annotated[str, About("submitted by")]
    created_at: Annotated[datetime, About("submitted")]
    total: Annotated[int, About("orders")]
    done: Annotated[int, About("done")]
    """Done, or nothing had to change."""
    succeeded: Annotated[int, About("succeeded")]
    """What starts the orders after them, also if a limit ended them."""
    failed: Annotated[int, About("failed")]
    """Failed or canceled."""
    cost_usd: Annotated[float | None, About("cost")]
    """Of all its orders; null if a price is unknown."""


class GraphDocument(GraphSummary):
    orders: list[OrderSummary]
    """In an order in which each follows those that it starts after; `key` is its name."""


class GraphFilter(Request):
    limit: Annotated[int, About("limit", "Maximum number of results, newest first.")] = Field(50, ge=1, le=500)


NAMES = {"graph_id": Annotated[str, Field(max_length=64), ID]}

SUBMIT = Operation(
    name="submit_graph",
    role="operator",
    route="POST /graphs",
    status=201,
    errors=(404, 409, 412, 413),
    idempotent=True,
    request=GraphRequest,
    answer=GraphDocument,
    summary="Submit a graph of orders",
    more="All of its orders or none. Each starts when those that it names in `after` have succeeded, from their work.",
    tool=Tool(
        "submit_graph",
        "Submit a graph of work orders",
        ADDS_WORK,
        "Submit several work orders that build on each other. Each has a unique name, and in after the names of the "
        "orders that must succeed first: it starts from the work of the first of them, with that of the others merged "
        "in. Then poll get_graph until its status is no longer running. Requires the operator role.",
    ),
    command=ByHand("graph run", "it reads a file, and can follow the graph"),
)
LIST = Operation(
    name="list_graphs",
    role="viewer",
    route="GET /graphs",
    request=GraphFilter,
    answer=list[GraphSummary],
    summary="List graphs, newest first",
    tool=Tool(
        "list_graphs",
        "List graphs",
        READS,
        "List the graphs of work orders, newest first, with the number of orders that succeeded and failed.",
        defaults={"limit": 20},
    ),
    command=Command(
        "graph ls",
        "List the graphs, newest first.",
        "fleet graph ls",
        columns=("id", "name", "status", "outcome", "done", "total", "cost_usd", "created_at"),
        empty="no graphs yet; submit one: fleet graph run FILE",
    ),
)
SHOW = Operation(
    name="show_graph",
    role="viewer",
    route="GET /graphs/{graph_id}",
    names=NAMES,
    errors=(404,),
    answer=GraphDocument,
    summary="Show a graph with its orders",
    tool=Tool(
        "get_graph",
        "Show a graph",
        READS,
        "A graph of work orders with the state of each. blocked means that nothing runs, and what is left waits for an "
        "order that failed or was canceled: call retry_order or resume_order for it, or cancel_graph.",
    ),
    command=Command("graph show", "Show a graph with its orders.", "fleet graph show GRAPH"),
)
CANCEL = Operation(
    name="cancel_graph",
    role="operator",
    route="POST /graphs/{graph_id}/cancel",
    names=NAMES,
    errors=(404,),
    answer=GraphDocument,
    summary="Cancel all orders of a graph that have not ended",
    tool=Tool(
        "cancel_graph",
        "Cancel a graph",
        ENDS,
        "Cancel all orders of a graph that have not ended. What they did so far is kept. Requires the operator role.",
    ),
    command=Command(
        "graph cancel",
        "Cancel all orders of a graph that have not ended.",
        "fleet graph cancel GRAPH",
    ),
)
