"""Budgets: upper bounds on what the runs of a project, an agent, a user, an organization or a session may cost."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from control_plane.contract.declarations.operation import READS, About, Command, NoDoor, Operation, Tool
from control_plane.contract.documents.base import Document, Request
from shared.budgets import Per

State = Literal["ok", "warning", "exhausted"]
KINDS = ("project", "agent", "user", "organization", "session")
KIND = About(
    "kind",
    "Whose runs are limited: project, agent, user, organization or session.",
    choices=KINDS,
    metavar="|".join(KINDS),
)
NAME = About(
    "name",
    "Slug of the project, name of the agent or organization, e-mail address or name of the user, or id of the session.",
)
USD = About("limit", "Maximum cost in one period, in USD.", unit="USD")
PER = About("per", "Period in which the cost is counted: day, month, or total for all time.")
ZONE = About(
    "zone",
    "IANA time zone of its days and months.",
    absent="as before; UTC for a new budget",
    metavar="ZONE",
)


class BudgetRequest(Request):
    usd: Annotated[float, USD] = Field(allow_inf_nan=False)
    per: Annotated[Per, PER]
    zone: Annotated[str | None, ZONE] = Field(None, max_length=64)


class BudgetFilter(Request):
    per: Annotated[
        Per | None, About("per", "Only the budget per this period: day, month or total.", absent="all of them")
    ] = None


class BudgetDocument(Document):
    """A budget in its current period."""

    id: str
    kind: str
    name: str
    """The target's name now; the id of a session."""
    per: str
    zone: str
    limit_usd: float
    spent_usd: float
    """In this period."""
    reserved_usd: float
    """Reserved by running orders for their next model calls; what they do not spend returns."""
    left_usd: float
    """What can still be reserved; never negative."""
    percent: float
    """The spent part of the limit."""
    forecast_usd: float | None
    """What the period will have cost at this pace; null for a budget in total, and early in a period."""
    state: State
    """warning: 80 % are spent; exhausted: all is spent, or a model call was refused in this period."""
    refuses: str
    """Which model calls would be refused now, in words."""
    period_begins_at: datetime | None
    """Null for a budget in total."""
    period_ends_at: datetime | None
    set_by: str
    created_at: datetime


class BudgetsDocument(Document):
    """The budgets of one project, agent, user, organization or session: at most one per day, month and in total."""

    kind: str
    name: str
    budgets: list[BudgetDocument]


ONE = "/budgets/{kind}/{name}"
NAMES = {"kind": Annotated[str, Field(max_length=32), KIND], "name": Annotated[str, Field(max_length=255), NAME]}
PEOPLE_DECIDE = NoDoor("what may be spent is left to people")

SET = Operation(
    name="set_budget",
    role="admin",
    route=f"PUT {ONE}",
    names=NAMES,
    errors=(404, 409),
    request=BudgetRequest,
    answer=BudgetDocument,
    summary="Set a budget",
    more="Replaces the amount of the same period; a target may have one budget per day, one per month and one in total "
    "at the same time. What was already spent in the current period counts.",
    tool=PEOPLE_DECIDE,
    command=Command(
        "budget set",
        "Set a budget. Model calls that could exceed it are not made; what was already spent in the period counts.",
        "fleet budget set project shop 20 --per day --zone Europe/Berlin",
        arguments=("usd",),
    ),
)
LIST = Operation(
    name="list_budgets",
    role="viewer",
    route="GET /budgets",
    answer=list[BudgetDocument],
    summary="List budgets, with what is spent, reserved and left",
    tool=Tool(
        "list_budgets",
        "List budgets",
        READS,
        "List the organization's budgets in their current periods: limit, spent (with a forecast to the end of the "
        "period), reserved by running orders, left, and which model calls would be refused now. People set budgets in "
        "the terminal. list_costs shows what was spent on what.",
    ),
    command=Command(
        "budget ls",
        "List the budgets, with what is spent, reserved and left.",
        "fleet budget ls",
    ),
)
SHOW = Operation(
    name="show_budgets",
    role="viewer",
    route=f"GET {ONE}",
    names=NAMES,
    errors=(404,),
    answer=BudgetsDocument,
    summary="Show the budgets of one target",
    tool=NoDoor("list_budgets returns every field"),
    command=Command(
        "budget show",
        "Show the budgets of a project, an agent, a user, an organization or a session.",
        "fleet budget show project shop",
    ),
)
REMOVE = Operation(
    name="remove_budgets",
    role="admin",
    route=f"DELETE {ONE}",
    names=NAMES,
    errors=(404,),
    request=BudgetFilter,
    answer=BudgetsDocument,
    summary="Remove the budgets of one target, or the one per a period",
    tool=PEOPLE_DECIDE,
    command=Command(
        "budget rm",
        "Remove the budgets of a project, an agent, a user, an organization or a session.",
        "fleet budget rm project shop --per day",
        confirm="Remove the budget of {kind} {name}?",
    ),
)
