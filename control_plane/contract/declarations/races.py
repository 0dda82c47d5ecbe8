"""Races: one prompt is given to several drones or models, and one result is taken."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from control_plane.contract.declarations.operation import (
    ADDS_WORK,
    ENDS,
    OVERWRITES,
    READS,
    About,
    ByHand,
    Command,
    Operation,
    Tool,
)
from control_plane.contract.declarations.orders import FOR_MODELS, CancelRequest, SubmitRequest
from control_plane.contract.documents.base import Document, Request
from control_plane.contract.documents.orders import OrderSummary
from shared.outcome import OrderOutcome
from shared.races import Pick

MOST = 6
"""Orders of one race, which is as many as people can compare side by side."""
MAX_RUBRIC = 20_000
ID = About("race", "The race's id, or a unique prefix of it.", source="races:id")
RaceStatus = Literal["running", "judging", "won", "undecided", "failed", "canceled"]
"""`won`: one order's work was taken. `undecided`: all have ended, and a user may take one. `failed`: none left any work
that can be taken.
"""


class RaceRequest(SubmitRequest):
    """One order for each of `models`, or as many as `count` for the same one."""

    count: Annotated[
        int | None,
        About("orders", f"How many times it is submitted, 2 to {MOST}.", absent="one for each model", flag="--race"),
    ] = Field(None, ge=2, le=MOST)
    models: Annotated[
        list[str], About("models", "Names of providers, or of their models: one order for each.", absent="one")
    ] = Field(default_factory=list, max_length=MOST)
    pick: Annotated[Pick, About("decided by", "Who decides: first (verified work), person or judge.")] = "first"
    rubric: Annotated[
        str | None,
        About("rubric", "What counts, for a judge.", absent="completeness, correctness and simplicity"),
    ] = Field(None, max_length=MAX_RUBRIC)


class TakeRequest(Request):
    order: Annotated[str, About("order", "The order whose work is taken.", source="orders:id")] = Field(max_length=64)


class RaceSummary(Document):
    id: Annotated[str, ID]
    status: Annotated[RaceStatus, About("status")]
    outcome: Annotated[OrderOutcome | None, About("outcome")]
    """What came of the order that won; null until the race is over."""
    reason: Annotated[str, About("reason")]
    """What it waits for, or how it was decided, in one sentence."""
    title: Annotated[str, About("title")]
    project: Annotated[str | None, About("project")]
    pick: Annotated[str, About("decided by")]
    winner: Annotated[str | None, About("winner")]
    """The order whose work is taken."""
    judge: Annotated[str | None, About("judging order")]
    base_commit: Annotated[str | None, About("base")]
    """What all its orders start from; null until the first of them has found it."""
    user: Annotated[str, About("submitted by")]
    created_at: Annotated[datetime, About("submitted")]
    total: Annotated[int, About("orders")]
    cost_usd: Annotated[float | None, About("cost")]
    """Of all its orders; null if a price is unknown."""


class RaceDocument(Document):
    race: RaceSummary
    orders: list[OrderSummary]
    """`key` is A, B, …"""


class RaceFilter(Request):
    limit: Annotated[int, About("limit", "Maximum number of results, newest first.")] = Field(50, ge=1, le=500)


NAMES = {"race_id": Annotated[str, Field(max_length=64), ID]}

SUBMIT = Operation(
    name="submit_race",
    role="operator",
    route="POST /races",
    status=201,
    errors=(404, 409, 412, 413),
    idempotent=True,
    request=RaceRequest,
    answer=RaceDocument,
    summary="Submit one prompt to several drones or models",
    more="Its orders start from the same commit. None of them pushes before one has won; the others keep patches.",
    tool=Tool(
        "submit_race",
        "Submit a race",
        ADDS_WORK,
        "Give one prompt to several drones (count) or models (models), and take one result. With pick first, the first "
        "order whose work passes its verify commands wins, and the others are canceled. With person, all run "
        "to their end: compare their patches with get_patch, then call take_order. With judge, an order that reads all "
        "patches takes one by rubric. Each order counts against limits and budgets. Then poll get_race. Requires the "
        "operator role.",
        about={
            **FOR_MODELS,
            "session": "Must be absent: each order of a race has a session of its own.",
        },
    ),
    command=ByHand("submit", "its --race and --models submit a race"),
)
LIST = Operation(
    name="list_races",
    role="viewer",
    route="GET /races",
    request=RaceFilter,
    answer=list[RaceSummary],
    summary="List races, newest first",
    tool=Tool(
        "list_races",
        "List races",
        READS,
        "List the races, newest first, with their state, the order that won, and the cost of all their orders.",
        defaults={"limit": 20},
    ),
    command=Command(
        "race ls",
        "List the races, newest first.",
        "fleet race ls",
        columns=("id", "status", "outcome", "title", "project", "pick", "winner", "total", "cost_usd", "created_at"),
        empty="no races yet; start one: fleet submit 'PROMPT' --race 3",
    ),
)
SHOW = Operation(
    name="show_race",
    role="viewer",
    route="GET /races/{race_id}",
    names=NAMES,
    errors=(404,),
    answer=RaceDocument,
    summary="Show a race with its orders",
    tool=Tool(
        "get_race",
        "Show a race",
        READS,
        "A race with the state, changes and cost of each of its orders. undecided means that one of them may be taken: "
        "compare them with get_patch, then call take_order.",
    ),
    command=Command("race show", "Show a race with its orders.", "fleet race show RACE"),
)
TAKE = Operation(
    name="take_order",
    role="operator",
    route="POST /races/{race_id}/take",
    names=NAMES,
    errors=(404, 409),
    request=TakeRequest,
    answer=RaceDocument,
    summary="Take the work of one order of a race",
    more="It becomes the winner, and its branch is pushed. Orders that have not ended are canceled.",
    tool=Tool(
        "take_order",
        "Take the work of an order",
        OVERWRITES,
        "Take the work of one order of a race: its branch is pushed, and the race's orders that have not ended are "
        "canceled. Requires the operator role.",
    ),
    command=Command(
        "race take",
        "Take the work of one order of a race.",
        "fleet race take RACE ORDER",
        arguments=("order",),
    ),
)
CANCEL = Operation(
    name="cancel_race",
    role="operator",
    route="POST /races/{race_id}/cancel",
    names=NAMES,
    errors=(404,),
    request=CancelRequest,
    answer=RaceDocument,
    summary="Cancel all orders of a race that have not ended",
    tool=Tool(
        "cancel_race",
        "Cancel a race",
        ENDS,
        "Cancel all orders of a race that have not ended. What they did so far is kept. Requires the operator role.",
    ),
    command=Command("race cancel", "Cancel all orders of a race that have not ended.", "fleet race cancel RACE"),
)
