"""Decides which process does which part of the work: a row with an expiry, renewed before it expires.

Each process uses its own clock; the clocks of several control planes must agree to within a few seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from sqlalchemy import CursorResult, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from control_plane.db.installation import Lease
from shared.clock import Clock

LEADER = "leader"


class Owners:
    """One process's view of the leases; `holder` names the process."""

    def __init__(self, holder: str, clock: Clock, ttl_s: float) -> None:
        self.holder = holder
        self.ttl_s = ttl_s
        self._clock = clock
        self._ttl = timedelta(seconds=ttl_s)

    def hold(self, db: Session, name: str) -> bool:
        """Take or renew one lease, in a writing transaction. False while another process holds it."""
        now = self._clock.now()
        mine = or_(Lease.holder == self.holder, Lease.expires_at <= now)
        values = {"holder": self.holder, "expires_at": now + self._ttl}
        if _changed(db, update(Lease).where(Lease.name == name, mine).values(**values)):
            return True
        insert = sqlite.insert if db.get_bind().dialect.name == "sqlite" else postgresql.insert
        return _changed(db, insert(Lease).values(name=name, **values).on_conflict_do_nothing())

    def still_holds(self, db: Session, name: str) -> bool:
        """Whether the lease is ours, locked until the transaction ends: it stays ours until our writes are in."""
        held = select(Lease.name).where(Lease.name == name, Lease.holder == self.holder)
        return db.scalar(held.with_for_update()) is not None

    def renew_all(self, db: Session) -> None:
        """Renew all leases of this process."""
        db.execute(
            update(Lease).where(Lease.holder == self.holder).values(expires_at=self._clock.now() + self._ttl),
            execution_options={"synchronize_session": False},
        )

    def living(self, db: Session, prefix: str) -> dict[str, str]:
        """Holders by lease name, for unexpired leases whose names begin with `prefix`."""
        begun = select(Lease.name, Lease.holder).where(
            Lease.name.startswith(prefix, autoescape=True), Lease.expires_at > self._clock.now()
        )
        return {name: holder for name, holder in db.execute(begun)}

    def release(self, db: Session, names: Collection[str]) -> None:
        """Make these leases available to others immediately."""
        db.execute(
            delete(Lease).where(Lease.holder == self.holder, Lease.name.in_(names)),
            execution_options={"synchronize_session": False},
        )

    def release_all(self, db: Session) -> None:
        db.execute(delete(Lease).where(Lease.holder == self.holder), execution_options={"synchronize_session": False})


def _changed(db: Session, statement: Any) -> bool:
    # Without the option, psycopg's count of an insert is not kept.
    options = {"synchronize_session": False, "preserve_rowcount": True}
    result = db.execute(statement, execution_options=options)
    return isinstance(result, CursorResult) and result.rowcount == 1
