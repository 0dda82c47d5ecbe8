"""What the broker refused to drones, in the audit log: at most one record for each drone and round."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlalchemy import select

from control_plane.broker.broker import BrokerRefusal
from control_plane.core import AuthenticatedDrone, Core
from control_plane.core.audit_entries import drone_entry
from control_plane.db.audit_chain import AuditEntry, append
from control_plane.db.drones import Drone
from control_plane.db.installation import Organization

ACTION = "use_broker"
_NAMED = 8
"""Commands, keys and channels that one record names."""


class BrokerRefusals:
    """Reads the broker's ACL LOG, round after round. It is not emptied: it belongs to whoever runs the broker.

    The log holds 128 entries, so the counts of a flood are lower bounds.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: Counter[BrokerRefusal] | None = None

    def record(self) -> None:
        """Record what was refused since the last round; the first one only notes what there is. Raises Unreachable."""
        found = self._core.broker.refusals()
        known, self._known = self._known, found
        if known is None or not (new := found - known):
            return
        log_ins = {refusal: count for refusal, count in new.items() if refusal.is_login}
        of_user: dict[str, dict[BrokerRefusal, int]] = defaultdict(dict)
        for refusal in new.keys() - log_ins.keys():
            of_user[refusal.user][refusal] = new[refusal]
        with self._core.database.write() as db:
            drones = db.execute(
                select(Drone, Organization.name)
                .join(Organization, Organization.id == Drone.organization_id)
                .where(Drone.id.in_(of_user))
            )
            entries = [self._entry(drone, name, of_user[drone.id]) for drone, name in drones]
            if log_ins:
                entries.append(self._log_ins(log_ins))
            for entry in entries:
                append(db, entry)

    def _entry(self, drone: Drone, organization: str, refused: Mapping[BrokerRefusal, int]) -> AuditEntry:
        identity = AuthenticatedDrone(drone.id, drone.organization_id, drone.name)
        entry = drone_entry(self._core, identity, ACTION, _named(refused))
        counted = replace(entry, door="drone", organization=organization, count=sum(refused.values()))
        counted = replace(counted, address=_address(refused))
        return replace(counted, outcome="refused", code="NOPERM")

    def _log_ins(self, refused: Mapping[BrokerRefusal, int]) -> AuditEntry:
        """One record for all refused log-ins: their sender is unknown, whatever name it gave."""
        entry = AuditEntry(self._core.clock.now(), "unknown", "", ACTION, door="drone", target=_named(refused))
        entry = replace(entry, count=sum(refused.values()), address=_address(refused))
        return replace(entry, outcome="refused", code="WRONGPASS")


def _address(refused: Mapping[BrokerRefusal, int]) -> str:
    """The address that was refused most often: of all, one is enough to find the machine."""
    of_address: Counter[str] = Counter()
    for refusal, count in refused.items():
        of_address[refusal.address] += count
    return of_address.most_common(1)[0][0]


def _named(refused: Iterable[BrokerRefusal]) -> str:
    """What was refused: a drone may write anything into the names of keys and channels."""
    names = sorted({_printable(each.user if each.is_login else each.what)[:40] for each in refused})
    more = ["…"] if len(names) > _NAMED else []
    return ", ".join(names[:_NAMED] + more)[:255]


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
