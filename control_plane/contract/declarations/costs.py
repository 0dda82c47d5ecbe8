"""Cost: what runs have spent, by day, project, agent, model, drone, user or organization."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from control_plane.contract.declarations.operation import READS, About, ByHand, Operation, Tool
from control_plane.contract.documents.base import Document, Request

By = Literal["day", "project", "agent", "model", "drone", "user", "organization"]
MAX_TIME = 64
"""Characters."""
SINCE = About(
    "since", "Only money reserved from this day or time on, such as 2026-11-01.", metavar="TIME", absent="all"
)
UNTIL = About(
    "until",
    "Only money reserved up to and including this day, or before this time.",
    metavar="TIME",
    absent="all",
)
BY = About("by", "What the cost is summed by: day, project, agent, model, drone, user or organization.")
ZONE = About("zone", "IANA time zone in which days begin.", metavar="ZONE")


class CostFilter(Request):
    since: Annotated[str | None, SINCE] = Field(None, max_length=MAX_TIME)
    until: Annotated[str | None, UNTIL] = Field(None, max_length=MAX_TIME)
    by: Annotated[By, BY] = "day"
    zone: Annotated[str, ZONE] = Field("UTC", max_length=64)


class CostDocument(Document):
    """What was spent on one day, in one project, and so on."""

    by: str
    name: str | None
    """The day (2026-11-25), the project's slug, and so on; null for runs without an agent or a user."""
    id: str | None
    """Null for days and models, and where the name is null."""
    spent_usd: float
    reserved_usd: float
    """Reserved by running orders now; what they do not spend returns."""
    runs: int
    """Runs that spent or reserved money."""
    unknown_costs: int
    """Runs of models without a known price, whose cost is not included."""


LIST = Operation(
    name="list_costs",
    role="viewer",
    route="GET /costs",
    request=CostFilter,
    answer=list[CostDocument],
    summary="List what was spent, by day, project, agent, model, drone, user or organization",
    more="Money counts at the time at which a run reserved it. Days are listed in order, all others by cost.",
    tool=Tool(
        "list_costs",
        "List costs",
        READS,
        "List what the organization's runs have spent (spent_usd) and have reserved now (reserved_usd), summed by day, "
        "project, agent, model, drone, user or organization. unknown_costs counts runs whose model has no known price. "
        "list_budgets shows the limits.",
        about={
            "since": "Only from this day (2026-11-01) or time (ISO 8601 with a zone) on. Default: all.",
            "zone": "IANA time zone in which days begin, such as Europe/Berlin. Default: UTC.",
        },
    ),
    command=ByHand("cost", "it prints a total, and CSV for spreadsheets"),
)
