"""Refusals of unknown senders: what is summed, and how much of it at most."""

from __future__ import annotations

from control_plane.core import Caller, Core
from control_plane.operations.audit.reading import list_records
from control_plane.operations.audit.refusal_tally import MOST_A_MINUTE, OTHERS, RefusalTally
from tests.support.made import later


def refuse(core: Core, tally: RefusalTally, address: str = "192.0.2.1", code: str = "E-TOKEN-MISSING") -> None:
    tally.count(core.clock.now(), "api", address, code)


def written(core: Core, admin: Caller) -> list[tuple[str, str, int]]:
    return [(each.address, each.code, each.count) for each in list_records(core, admin, everywhere=True, limit=1000)]


def test_a_minute_is_one_record_for_each_source_and_code(core: Core, admin: Caller) -> None:
    """A source is an address, or for IPv6 its network."""
    tally = RefusalTally()
    for _ in range(29):
        refuse(core, tally)
    for address in ("::ffff:192.0.2.1", "2001:db8::1", "2001:db8::2", "2001:db8:0:1:2:3:4:5", "a pipe"):
        refuse(core, tally, address)
    refuse(core, tally, code="E-TOKEN-UNKNOWN")
    tally.flush(core)
    assert written(core, admin) == []
    later(core, minutes=1)
    tally.flush(core)
    tally.flush(core)
    assert sorted(written(core, admin)) == [
        ("192.0.2.1", "E-TOKEN-MISSING", 30),
        ("192.0.2.1", "E-TOKEN-UNKNOWN", 1),
        ("2001:db8:0:1::/64", "E-TOKEN-MISSING", 1),
        ("2001:db8::/64", "E-TOKEN-MISSING", 2),
        ("a pipe", "E-TOKEN-MISSING", 1),
    ]


def test_ten_thousand_refusals_from_many_addresses_end_in_one_record_for_the_others(core: Core, admin: Caller) -> None:
    tally = RefusalTally()
    for n in range(10_000):
        refuse(core, tally, f"10.0.{n // 250}.{n % 250}")
    tally.flush(core, everything=True)
    found = written(core, admin)
    assert len(found) == MOST_A_MINUTE + 1
    assert (OTHERS, "E-TOKEN-MISSING", 10_000 - MOST_A_MINUTE) in found


def test_without_the_database_the_counts_are_kept_until_it_is_back(core: Core, admin: Caller) -> None:
    tally = RefusalTally()
    refuse(core, tally)
    later(core, minutes=1)
    with core.database.write() as db:
        db.connection().exec_driver_sql("ALTER TABLE audit_heads RENAME TO away")
    tally.flush(core)
    with core.database.write() as db:
        db.connection().exec_driver_sql("ALTER TABLE away RENAME TO audit_heads")
    tally.flush(core)
    assert written(core, admin) == [("192.0.2.1", "E-TOKEN-MISSING", 1)]
