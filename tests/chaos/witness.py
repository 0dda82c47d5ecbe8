"""A witness inside the database: a trigger that records every change of an order, from any process, with its time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from control_plane.db.engine import Database
from shared.states import ENDED, OrderStatus

_INSTALL = (
    """
    CREATE TABLE chaos_changes (
        id bigserial PRIMARY KEY, at timestamptz NOT NULL, order_id text NOT NULL, status_before text NOT NULL,
        status text NOT NULL, run_id text, drone_id text, generation int NOT NULL, grant_until timestamptz
    )
    """,
    """
    CREATE FUNCTION chaos_note() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO chaos_changes (at, order_id, status_before, status, run_id, drone_id, generation, grant_until)
        VALUES (clock_timestamp(), NEW.id, OLD.status, NEW.status, NEW.run_id, NEW.drone_id, NEW.generation,
                NEW.grant_until);
        RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER chaos_orders AFTER UPDATE ON orders FOR EACH ROW
    WHEN (OLD.status IS DISTINCT FROM NEW.status OR OLD.run_id IS DISTINCT FROM NEW.run_id
          OR OLD.grant_until IS DISTINCT FROM NEW.grant_until)
    EXECUTE FUNCTION chaos_note()
    """,
)
_READ = (
    "SELECT at, order_id, status_before, status, run_id, drone_id, generation, grant_until "
    "FROM chaos_changes ORDER BY id"
)


@dataclass(frozen=True)
class Change:
    """An order after one change."""

    at: datetime
    order_id: str
    status_before: str
    status: str
    run_id: str | None
    drone_id: str | None
    generation: int
    grant_until: datetime | None

    @property
    def ends(self) -> bool:
        """Whether this change ended the order."""
        return OrderStatus(self.status) in ENDED and OrderStatus(self.status_before) not in ENDED


class Witness:
    """Every change of every order, in chronological order."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def install(self) -> None:
        """Install the trigger. Call it once, on a migrated database, before the first order."""
        with self._database.write() as db:
            for statement in _INSTALL:
                db.execute(text(statement))

    def changes(self) -> dict[str, list[Change]]:
        """The recorded changes, by order."""
        found: dict[str, list[Change]] = defaultdict(list)
        with self._database.read() as db:
            for row in db.execute(text(_READ)):
                found[row.order_id].append(Change(*row))
        return found
