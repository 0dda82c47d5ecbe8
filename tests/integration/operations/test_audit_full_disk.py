"""A disk full of audit log: no change without its record, and a way out."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, func, select

from control_plane.core import Core
from control_plane.db.access import ApiToken
from control_plane.db.audit import AuditRecord
from control_plane.db.audit_chain import AuditEntry, append
from control_plane.declarations.audit import PruneRequest
from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.access import tokens
from control_plane.operations.audit.keeping import prune
from control_plane.operations.audit.verifying import verify
from shared.errors import FleetFault
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.made import later


def limit_pages(core: Core, pages: int) -> None:
    """Let the file grow to this many pages and no further, as a full disk does."""

    def limit(connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}")

    event.listen(core.database.engine, "connect", limit)
    core.database.engine.dispose()


def fill(core: Core) -> None:
    """Append records until there is no room."""
    entry = AuditEntry(core.clock.now(), "token", "kim", "submit", target="x" * 200)
    with suppress(FleetFault):
        while True:
            with core.database.write() as db:
                append(db, entry)


def add_tokens(core: Core, times: int) -> None:
    """Some of them may still find room in a page."""
    for _ in range(times):
        tokens.create_api_token(core, system_caller(core), ApiTokenRequest(role="viewer", name="n" * 100))


def count(core: Core, table: Any) -> int:
    with core.database.read() as db:
        return db.scalar(select(func.count()).select_from(table)) or 0


def test_on_a_full_disk_no_change_happens_and_pruning_makes_room(
    sqlite_url: str, core_factory: CoreFactory, clock: HandClock
) -> None:
    core = core_factory(sqlite_url, clock=clock)
    admin = system_caller(core)
    with core.database.read() as db:
        pages = db.connection().exec_driver_sql("PRAGMA page_count").scalar()
    limit_pages(core, pages + 40)
    fill(core)
    later(core, days=2)
    records = count(core, AuditRecord)

    with pytest.raises(FleetFault) as refused:
        add_tokens(core, 50)
    assert (refused.value.code, "fleet audit prune" in refused.value.next) == ("E-DB-FULL", True)
    assert count(core, ApiToken) == count(core, AuditRecord) - records
    assert verify(core, admin).problem == ""

    assert prune(core, admin, PruneRequest(before=core.clock.now() - timedelta(days=1))).records == records
    add_tokens(core, 1)
    assert verify(core, admin).problem == ""
