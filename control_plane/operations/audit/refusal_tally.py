"""Refusals that are summed, so that a flood fills a few records: of unknown senders, and most of a known one."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from ipaddress import IPv6Address, ip_address, ip_network

from control_plane.core import Core
from control_plane.db.audit_chain import AuditEntry, append
from shared.errors import FleetError
from shared.terminal import logs

log = logs.get(__name__)
MOST_A_MINUTE = 200
"""Records of one minute; what comes from further sources is summed under `OTHERS`."""
SINGLY = 100
"""Refusals of one drone or token in a minute that get a record each; further ones are summed by what was refused (the
operation, but not its target), code and network address."""
OTHERS = "others"
ACTION = "request"


class RefusalTally:
    """Counts in this process's memory, until `flush` writes the counts of the minutes that are over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[AuditEntry] = Counter()
        self._of_sender: Counter[tuple[datetime, str, str]] = Counter()
        """Refusals by minute and known sender."""

    def count(self, at: datetime, door: str, address: str, code: str) -> None:
        """Count one refusal. What the request asked for is not kept: it would make each one different."""
        minute = at.replace(second=0, microsecond=0)
        entry = AuditEntry(minute, "unknown", "", ACTION, door=door, address=source_of(address), code=code)
        entry = replace(entry, outcome="refused")
        with self._lock:
            if entry not in self._counts and sum(each.at == minute for each in self._counts) >= MOST_A_MINUTE:
                entry = replace(entry, address=OTHERS)
            self._counts[entry] += 1

    def has_many(self, entry: AuditEntry) -> bool:
        """Whether this sender was refused so often in this minute that this refusal is only counted."""
        minute = entry.at.replace(second=0, microsecond=0)
        counted = replace(entry, at=minute, target="", address=source_of(entry.address))
        with self._lock:
            sender = (minute, entry.actor_kind, entry.actor_id)
            self._of_sender[sender] += 1
            if self._of_sender[sender] <= SINGLY:
                return False
            self._counts[counted] += 1
            return True

    def flush(self, core: Core, *, everything: bool = False) -> None:
        """Record the counts of the minutes that are over, or of all, and then each sender begins again.

        Without the database, they are kept.
        """
        minute = core.clock.now().replace(second=0, microsecond=0)
        with self._lock:
            current = {} if everything else {key: n for key, n in self._of_sender.items() if key[0] >= minute}
            self._of_sender = Counter(current)
            over = {entry: count for entry, count in self._counts.items() if everything or entry.at < minute}
        if not over:
            return
        try:
            with core.database.write() as db:
                for entry in _records(over):
                    append(db, entry)
        except FleetError as fault:
            log.warning("refusals are not yet in the audit log", records=len(over), why=fault.what)
            return
        with self._lock:
            self._counts -= Counter(over)


def source_of(address: str) -> str:
    """An IPv4 address; the /64 network of an IPv6 address, of which one sender may have every address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or ip_network((parsed, 64), strict=False))


def _records(counts: dict[AuditEntry, int]) -> Iterator[AuditEntry]:
    for entry in sorted(counts, key=lambda each: each.at):
        yield replace(entry, count=counts[entry])
