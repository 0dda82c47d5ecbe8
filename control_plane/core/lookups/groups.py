"""Finding a graph, race or batch by its id, or by a unique prefix of it; a batch also by its name."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.validation.checks import shown
from control_plane.core import Caller
from control_plane.db.groups import OrderGroup
from shared.errors import Invalid, NotFound

GroupKind = Literal["graph", "race", "batch"]
_PLURALS = {"graph": "graphs", "race": "races", "batch": "batches"}
_CANDIDATES = 5


def find_group(db: Db, caller: Caller, kind: GroupKind, written: str, *, lock: bool = False) -> OrderGroup:
    """The group of this kind in the caller's organization.

    Raises NotFound, and Invalid for a prefix that several ids begin with.
    """
    wanted = select(OrderGroup).where(
        OrderGroup.organization_id == caller.organization_id,
        OrderGroup.kind == kind,
        OrderGroup.id.startswith(written.lower(), autoescape=True),
    )
    found = db.scalars((wanted.with_for_update() if lock else wanted).limit(_CANDIDATES + 1)).all() if written else []
    match found:
        case [only]:
            return only
        case []:
            raise NotFound(f"{kind} {shown(written)} not found", code="E-GROUP-404", next=f"fleet {kind} ls")
    raise Invalid(
        f"{shown(written)} is ambiguous: the ids of several {_PLURALS[kind]} begin with it",
        code="E-ID-AMBIGUOUS",
        why=", ".join(f"{each.id} ({each.name})" for each in found[:_CANDIDATES]),
        next="use more characters of the id",
    )


def find_batch(db: Db, caller: Caller, written: str, *, lock: bool = False) -> OrderGroup:
    """The batch with this name, else with this id or prefix of it. Raises as `find_group`."""
    wanted = select(OrderGroup).where(
        OrderGroup.organization_id == caller.organization_id, OrderGroup.kind == "batch", OrderGroup.name == written
    )
    named = db.scalar(wanted.with_for_update() if lock else wanted)
    return named or find_group(db, caller, "batch", written, lock=lock)
