"""Leases: who holds one, and for how long."""

from __future__ import annotations

from control_plane.background.leases import Owners
from control_plane.core import Core
from tests.support.clocks import HandClock


def test_a_lease_has_one_holder_until_it_expires(core: Core) -> None:
    clock, database = HandClock(core.clock.now()), core.database
    first, second = (Owners(holder, clock, 30) for holder in ("first", "second"))

    assert database.transact(lambda db: first.hold(db, "stream"))
    assert not database.transact(lambda db: second.hold(db, "stream"))
    clock.passed += 31
    assert database.transact(lambda db: second.hold(db, "stream"))
    assert not database.transact(lambda db: first.hold(db, "stream"))
