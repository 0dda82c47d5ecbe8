"""Failed checks in the inbox: providers and projects that did not work when a drone tried them, until they do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session as Db

from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.declarations.inbox import InboxItem, InboxKind
from control_plane.operations.access.roles import may
from control_plane.operations.inbox.scope import InboxView

_CHECKED: dict[Literal["provider", "project"], type[Provider | Project]] = {"provider": Provider, "project": Project}


def count_failed_checks(db: Db, inbox: InboxView) -> dict[str, int]:
    """The number of providers, and of projects, whose last check failed."""
    failed = {kind: _failed(inbox, checked).subquery() for kind, checked in _CHECKED.items()}
    return {kind: db.scalar(select(func.count()).select_from(rows)) or 0 for kind, rows in failed.items()}


def failed_check_items(db: Db, inbox: InboxView, only: InboxKind | None, limit: int) -> Iterator[InboxItem]:
    """The providers and projects whose last check failed, newest first, with what fixes them."""
    for kind, checked in _CHECKED.items():
        if only not in {None, kind}:
            continue
        rows = db.execute(_failed(inbox, checked).order_by(Order.ended_at.desc(), checked.id).limit(limit)).all()
        for row, order in rows:
            yield _item(inbox, kind, row, order)


def _item(
    inbox: InboxView, kind: Literal["provider", "project"], row: Provider | Project, order: Order | None
) -> InboxItem:
    name, report = row.name if isinstance(row, Provider) else row.slug, row.check_report or {}
    again = f"fleet {kind} test {name}"
    fix = report.get("next") or again
    since = order.ended_at if order is not None else None
    return InboxItem(
        id=f"{kind}:{row.id}",
        kind=kind,
        title=name,
        text=report.get("summary", ""),
        choices=[],
        default=None,
        deadline=None,
        since=since or datetime.fromisoformat(report.get("at") or row.created_at.isoformat()),
        organization=inbox.organizations[row.organization_id],
        project=name if kind == "project" else None,
        order=None,
        session=None,
        task=None,
        drone=report.get("drone"),
        user=order.user if order is not None else "",
        waiting_for=None,
        may_answer=may(inbox.caller, "operator" if fix == again else "admin"),
        # Some fixes are sentences: what to do on the drone's machine.
        next=inbox.command(fix, row.organization_id) if fix.startswith("fleet ") else fix,
    )


def _failed(inbox: InboxView, checked: type[Provider | Project]) -> Select[Any, Any]:
    """Each with the order that tried it, or None. While another one tries it again, it has not failed."""
    wanted = select(checked, Order).outerjoin(Order, Order.id == checked.check_order_id)
    mine = (Order.user_id == inbox.user_id,) if inbox.user_id is not None else ()
    return wanted.where(
        checked.organization_id.in_(inbox.organizations),
        checked.check_state == "failed",
        checked.removed_at.is_(None),
        *mine,
    )
