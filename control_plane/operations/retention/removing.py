"""Removes what was found, in small transactions: rows first, then the files that no row names any more.

Killed at any point, it leaves no row that names a missing file; the next run removes what is left. Of a conversation,
the newest steps go first, so that what is left is one that was cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from sqlalchemy import delete, select, tuple_
from sqlalchemy.orm import Session, aliased

from control_plane.core import Core
from control_plane.db.base import Row
from control_plane.db.drones import RawEvent
from control_plane.db.orders import Dispatch, Order, SteeringMessage, Turn
from control_plane.db.runs import Blob, Run, Step
from control_plane.db.sessions import ChatSession, SessionEntry
from control_plane.db.waits import Wait
from control_plane.operations.retention.needed import chunks, fresh_forks, needed_sessions
from control_plane.operations.retention.removable import (
    UNNAMED,
    File,
    RemovalFigures,
    RemovalPhase,
    blobs_of,
    named_by_rows,
    size_of,
)

AT_ONCE = 500
"""Rows that one transaction removes."""
JUST_STORED = timedelta(hours=1)
"""A file that was stored since then may belong to a row that is not written yet."""
_ORDERS_AT_ONCE = 50
_CHECKED_FOR_S = 10.0
_OF_ORDER: tuple[type[Row], ...] = (Wait, SteeringMessage, Run, Dispatch, Turn)


@dataclass
class Remover:
    """Removes the phases of one run, in their order."""

    core: Core
    _needed: set[str] = field(default_factory=set)
    _checked_at: float | None = None

    def __post_init__(self) -> None:
        # Forks from then on: what was found takes the earlier ones into account.
        self._began = self.core.clock.now() + timedelta(microseconds=1)

    def remove(self, phase: RemovalPhase) -> RemovalPhase:
        """Remove what the phase names, unless it is needed by now; the answer says what was removed."""
        match phase.kind:
            case "steps":
                figures = self._steps(phase.orders)
            case "logs" | "work":
                figures = self._files(phase.kind, phase.orders)
            case "raw events":
                figures = self._raw_events(phase)
            case kind if kind == UNNAMED:
                figures = self._unnamed(phase)
            case _:
                figures = self._services(phase)
        return replace(phase, figures=figures)

    def _services(self, phase: RemovalPhase) -> RemovalFigures:
        """The orders with all that belongs to them; the large parts first, in transactions of their own."""
        found = RemovalFigures(0, (self._steps(phase.orders) + self._files(phase.kind, phase.orders)).bytes)
        for some in chunks(phase.orders, _ORDERS_AT_ONCE):
            with self.core.database.write() as db:
                found += RemovalFigures(_remove_orders(db, self._still(db, some)))
        return found

    def _steps(self, order_ids: Sequence[str]) -> RemovalFigures:
        found = RemovalFigures()
        for some in _newest_first(order_ids):
            while (removed := self._some_steps(some)).rows:
                found += removed
        return found

    def _some_steps(self, order_ids: Sequence[str]) -> RemovalFigures:
        with self.core.database.write() as db:
            wanted = (
                select(Step.id, size_of(Step.body))
                .join(Order, Order.id == Step.order_id)
                .where(Step.order_id.in_(self._still(db, order_ids)))
                .order_by(Order.number.desc(), Step.seq.desc())
            )
            rows = db.execute(wanted.limit(AT_ONCE)).all()
            db.execute(delete(Step).where(Step.id.in_([number for number, _ in rows])))
        return RemovalFigures(len(rows), sum(size for _, size in rows))

    def _files(self, kind: str, order_ids: Sequence[str]) -> RemovalFigures:
        found = RemovalFigures()
        for some in chunks(order_ids, _ORDERS_AT_ONCE):
            while (removed := self._some_files(kind, some)).rows:
                found += removed
        return found

    def _some_files(self, kind: str, order_ids: Sequence[str]) -> RemovalFigures:
        with self.core.database.write() as db:
            rows = db.execute(blobs_of(kind, self._still(db, order_ids)).limit(AT_ONCE)).all()
            keys = [(row.run_id, row.sha256) for row in rows]
            db.execute(delete(Blob).where(tuple_(Blob.run_id, Blob.sha256).in_(keys)))
            sizes: dict[File, int] = {(row.sha256, row.sealed): row.size for row in rows}
            named = named_by_rows(db, list(sizes))
        # After the commit, as a row promises its file.
        freed = [file for file in sizes if not named[file]]
        for name, sealed in freed:
            self.core.blobs.remove(name, sealed=sealed, stored_before=self.core.clock.now() - JUST_STORED)
        return RemovalFigures(len(rows), sum(sizes[file] for file in freed))

    def _raw_events(self, phase: RemovalPhase) -> RemovalFigures:
        found = RemovalFigures()
        while phase.before is not None:
            with self.core.database.write() as db:
                old = select(RawEvent.id, size_of(RawEvent.fields)).where(RawEvent.at < phase.before)
                rows = db.execute(old.order_by(RawEvent.id).limit(AT_ONCE)).all()
                db.execute(delete(RawEvent).where(RawEvent.id.in_([number for number, _ in rows])))
            found += RemovalFigures(len(rows), sum(size for _, size in rows))
            if len(rows) < AT_ONCE:
                break
        return found

    def _unnamed(self, phase: RemovalPhase) -> RemovalFigures:
        removed = 0
        assert phase.before is not None
        for start in range(0, len(phase.files), AT_ONCE):
            some = phase.files[start : start + AT_ONCE]
            with self.core.database.read() as db:
                named = named_by_rows(db, some)
            for name, sealed in some:
                if not named[name, sealed]:
                    removed += self.core.blobs.remove(name, sealed=sealed, stored_before=phase.before)
        return replace(phase.figures, rows=removed)

    def _still(self, db: Session, order_ids: Sequence[str]) -> list[str]:
        """Those of the orders, locked, that may still be removed: what was found may be some minutes old."""
        now = self.core.clock.monotonic()
        if self._checked_at is None or now - self._checked_at > _CHECKED_FOR_S:
            self._needed = needed_sessions(db, self.core.clock.now()) | fresh_forks(db, self._began)
            self._checked_at = now
        other = aliased(Order)
        at_work = select(other.id).where(other.session_id == Order.session_id, other.ended_at.is_(None)).exists()
        ended = select(Order).where(Order.id.in_(order_ids), Order.ended_at.is_not(None), ~at_work)
        orders = db.scalars(ended.with_for_update(of=Order).execution_options(populate_existing=True))
        return [order.id for order in orders if order.session_id not in self._needed]


def _newest_first(order_ids: Sequence[str]) -> list[Sequence[str]]:
    """The ids, which come oldest first, in lists from the newest on."""
    newest = order_ids[::-1]
    return [newest[start : start + _ORDERS_AT_ONCE] for start in range(0, len(newest), _ORDERS_AT_ONCE)]


def _remove_orders(db: Session, order_ids: Sequence[str]) -> int:
    """Remove the rows of service orders, each with its session, which has no other order."""
    sessions = list(db.scalars(select(Order.session_id).where(Order.id.in_(order_ids))))
    for table in _OF_ORDER:
        db.execute(delete(table).where(table.__table__.c.order_id.in_(order_ids)))
    db.execute(delete(SessionEntry).where(SessionEntry.session_id.in_(sessions)))
    db.execute(delete(Order).where(Order.id.in_(order_ids)))
    db.execute(delete(ChatSession).where(ChatSession.id.in_(sessions)))
    return len(order_ids)
