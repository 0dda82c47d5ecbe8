"""Limits: what a run may spend, and how long it waits; each can be set at several levels."""

from __future__ import annotations

from typing import Annotated

from control_plane.contract.declarations.operation import READS, About, Command, Operation, Tool
from control_plane.contract.documents.base import Document
from shared.limits import LimitValue


class LimitDocument(Document):
    """One limit that can be set."""

    name: Annotated[str, About("limit")]
    help: Annotated[str, About("meaning")]
    unit: Annotated[str, About("unit")]
    default: Annotated[LimitValue, About("default")]
    least: Annotated[LimitValue, About("least")]
    most: Annotated[LimitValue, About("most")]


LIST = Operation(
    name="list_limits",
    role="viewer",
    route="GET /limits",
    answer=list[LimitDocument],
    summary="List the limits that can be set, with units, bounds and defaults",
    more="An order shows the value of each, and where it is set.",
    tool=Tool(
        "list_limits",
        "List limits",
        READS,
        "List the limits of runs with their meaning, unit, bounds and default: the names that other tools take in "
        "`limits`. An order's own limit takes precedence over its session's, its agent's, its project's and its "
        "organization's, in this order; get_order shows each with its source.",
    ),
    command=Command(
        "limit ls",
        "List the limits that can be set with --limit.",
        "fleet limit ls",
        columns=("name", "default", "unit", "help"),
    ),
)
