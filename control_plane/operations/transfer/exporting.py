"""An organization as JSON lines, streamed from one snapshot of the database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel
from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import organizations as declared
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import in_organization
from control_plane.db.access import ApiToken, JoinToken, Pool
from control_plane.db.automation import Trigger, TriggerDelivery, Webhook, WebhookDelivery
from control_plane.db.base import Owned
from control_plane.db.code_hosts import HostLink
from control_plane.db.drafts import UNSENT, SavedDraft
from control_plane.db.drones import Drone, RawEvent
from control_plane.db.installation import Organization
from control_plane.db.orders import Dispatch, Order
from control_plane.db.projects import Project, Provider
from control_plane.db.reviews import ReviewComment
from control_plane.db.runs import Blob
from control_plane.db.spending import Budget
from control_plane.db.types import without_nul
from control_plane.db.users import Member
from control_plane.operations.gateway import performs
from control_plane.operations.transfer.kinds import (
    DRONE,
    END,
    HEADER,
    KINDS,
    ORGANIZATION,
    VERSION,
    Kind,
    TransferTotals,
)
from shared.redaction import MARK

BATCH = 500
"""Rows in memory at once."""
Line = dict[str, Any]


@performs(declared.EXPORT)
def export_lines(core: Core, caller: Caller, name: str) -> Iterator[str]:
    """All data of the organization as JSON lines, each with its newline: a header, one line per row, an end.

    Each line comes after the lines that its foreign keys refer to. No line contains a secret; the last line lists what
    was left out. Blobs are named, not contained. For admins. Raises NotFound before the first line.
    """
    caller = in_organization(core, caller, name)
    return _lines(core, caller)


def _lines(core: Core, caller: Caller) -> Iterator[str]:
    with core.database.snapshot() as db:
        organization = db.get_one(Organization, caller.organization_id)
        yield _line(_header(core, organization))
        counts: dict[str, int] = {}
        totals = TransferTotals()
        for kind, row in _rows(db, organization):
            counts[kind] = counts.get(kind, 0) + 1
            if kind == "run":
                totals.add(row)
            yield _line({"kind": kind, "row": row})
        left_out = _left_out(db, organization.id)
        yield _line({"kind": END, "counts": counts, "totals": totals.document, "left_out": left_out})


def _header(core: Core, organization: Organization) -> Line:
    return {
        HEADER: VERSION,
        "organization": organization.name,
        "acronym": organization.acronym,
        "organization_id": organization.id,
        "made_at": core.clock.now(),
        "blobs": "named, not contained",
    }


def _rows(db: Session, organization: Organization) -> Iterator[tuple[str, Line]]:
    yield "organization", {name: getattr(organization, name) for name in ORGANIZATION}
    for drone_id, name in db.execute(_drones(organization.id)):
        yield DRONE, {"id": drone_id, "name": name}
    for kind in KINDS:
        rows: Iterable[Line] = _of_kind(db, kind, organization.id)
        for row in _bosses_first(rows) if kind.name == "agent" else rows:
            yield kind.name, row


def _of_kind(db: Session, kind: Kind, organization_id: str) -> Iterator[Line]:
    table = kind.table
    wanted = select(*kind.columns).where(table.c.organization_id == organization_id)
    wanted = wanted.where(kind.only(table)) if kind.only is not None else wanted
    for row in db.execute(
        wanted.order_by(*(table.c[name] for name in kind.sorted_by)).execution_options(yield_per=BATCH)
    ):
        found = dict(row._mapping)
        if "git_url" in found:
            # The mark that replaces a login is not part of the address.
            found["git_url"] = found["git_url"].replace(f"{MARK}@", "", 1)
        yield found


def _bosses_first(rows: Iterable[Line]) -> Iterator[Line]:
    """Agents, each after its boss. Holds all of them in memory; there are few."""
    waiting, done = list(rows), set[str | None]({None})
    while waiting:
        ready = [row for row in waiting if row["boss_id"] in done]
        yield from ready or waiting
        done.update(row["id"] for row in ready)
        waiting = [row for row in waiting if row["id"] not in done] if ready else []


def _drones(organization_id: str) -> Select[str, str]:
    """All drones that the organization's orders refer to, including those of other organizations."""
    ran = select(Dispatch.drone_id).where(Dispatch.organization_id == organization_id)
    asked = select(Order.wanted_drone_id).where(Order.organization_id == organization_id)
    ended = select(Order.drone_id).where(Order.organization_id == organization_id)
    named = or_(Drone.id.in_(ran), Drone.id.in_(asked), Drone.id.in_(ended))
    return select(Drone.id, Drone.name).where(named).order_by(Drone.registered_at, Drone.id)


def _left_out(db: Session, organization_id: str) -> list[str]:
    """The data that is not in the file, one line each; for a secret, the name of its owner."""

    def names(column: Any, table: type[Owned], *also: Any) -> list[str]:
        return list(db.scalars(select(column).where(table.organization_id == organization_id, *also).order_by(column)))

    def number(table: type[Owned], *also: Any) -> int:
        own = select(func.count()).select_from(table).where(table.organization_id == organization_id, *also)
        return db.execute(own).scalar_one()

    alive = {table: table.removed_at.is_(None) for table in (Provider, Project, Trigger, Webhook)}
    sealed = (
        ("provider keys", names(Provider.name, Provider, alive[Provider], Provider.sealed_key.is_not(None))),
        (
            "passwords in git URLs of projects",
            names(Project.slug, Project, alive[Project], Project.sealed_git_url.is_not(None)),
        ),
        ("trigger secrets", names(Trigger.name, Trigger, alive[Trigger])),
        ("webhook secrets", names(Webhook.name, Webhook, alive[Webhook])),
    )
    counted = (
        (number(Member), "users and their roles"),
        (number(Budget, Budget.kind == "user", Budget.removed_at.is_(None)), "budgets of users"),
        (number(SavedDraft, UNSENT), "drafts of users"),
        (number(ReviewComment, ReviewComment.sent_at.is_(None)), "pending review comments"),
        (number(ApiToken), "API tokens"),
        (number(JoinToken, JoinToken.pool_id.is_(None)), "join tokens"),
        (number(Pool, Pool.removed_at.is_(None)), "pools and their tokens"),
        (number(Drone), "drones and their credentials"),
        (number(Blob), "blobs (patches, bundles, logs, checkpoints), referenced here by SHA-256"),
        (number(HostLink, HostLink.removed_at.is_(None)), "connections to code hosts, with their users and events"),
        (number(TriggerDelivery), "trigger deliveries"),
        (number(WebhookDelivery), "webhook deliveries"),
        (number(RawEvent), "drone reports that could not be processed"),
    )
    return [
        *(f"{what}: {', '.join(named)}" for what, named in sealed if named),
        *(f"{n:,} {what}" for n, what in counted if n),
    ]


def _line(row: Mapping[str, Any]) -> str:
    """The row as JSON, without the NUL characters of a model's output."""
    line = json.dumps(row, default=_plain, separators=(",", ":"))
    if "\\u0000" in line:
        line = json.dumps(without_nul(json.loads(line)), separators=(",", ":"))
    return line + "\n"


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"a column of type {type(value).__name__} cannot be exported")
