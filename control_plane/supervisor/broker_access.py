"""The access of drones to the broker: each has its own user, which may not write while the drone exceeds its quota."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

from sqlalchemy import or_, select

from control_plane.broker.bindings import ensure_bindings
from control_plane.broker.broker import BrokerRefusal
from control_plane.broker.drone_memory import ANSWERS, Holding, drop, left_behind, measure, unneeded
from control_plane.core import AuthenticatedDrone, Core
from control_plane.core.audit_entries import drone_entry, note_drone
from control_plane.core.background.timings import Timings
from control_plane.core.origin import RequestOrigin, coming_from
from control_plane.core.rows import each_alone
from control_plane.db.audit_chain import AuditEntry, append
from control_plane.db.drones import Drone
from control_plane.db.installation import Organization
from control_plane.db.orders import Dispatch
from control_plane.drones.condition import worker_of
from control_plane.drones.key_rotation import user_of
from control_plane.drones.quota import CODE, quota_bytes
from shared import names
from shared.terminal import logs

_REST = 10
"""The next measurement begins after this many times what the last one took."""
_LIVING = Drone.removed_at.is_(None)
"""No other drone may have a user."""
log = logs.get(__name__)


class BrokerQuota:
    """Measures the drones' memory, round after round, and stops one beyond its quota until its reports were read.

    An honest drone pauses at half of it. It loses nothing even if it is stopped: it keeps its reports in its journals.
    """

    def __init__(self, core: Core, timings: Timings) -> None:
        self._core = core
        self._pause = timedelta(seconds=timings.quota_pause)
        self._rests_until = 0.0

    def enforce(self) -> None:
        """Stop who exceeds the quota, let who is below half of it write again, and delete what removed drones left.

        Raises Unreachable.
        """
        core, clock = self._core, self._core.clock
        used, limit = core.broker.memory()
        quota = quota_bytes(core, limit)
        with core.database.read() as db:
            stopped = set(db.scalars(select(Drone.id).where(Drone.over_quota_at.is_not(None), _LIVING)))
        # While all keys together are below one quota, nobody exceeds it, and nothing has to be measured.
        nobody = core.settings.drones_login is not None or (used <= quota and not stopped)
        if nobody or clock.monotonic() < self._rests_until:
            return
        began = clock.monotonic()
        held = measure(core.broker)
        self._rests_until = clock.monotonic() + _REST * (clock.monotonic() - began)
        self._keep_within(held, quota, stopped)

    def _keep_within(self, held: Mapping[str, Holding], quota: int, stopped: set[str]) -> None:
        beyond = {owner for owner, holding in held.items() if holding.size > quota}
        with self._core.database.read() as db:
            drones = db.scalars(select(Drone).where(or_(Drone.id.in_(beyond), Drone.id.in_(stopped)), _LIVING)).all()
            living = set(db.scalars(select(Drone.id).where(_LIVING)))

        def keep(drone: Drone) -> None:
            size = held[drone.id].size if drone.id in held else 0
            if size > quota:
                self._stop(drone, held[drone.id], quota)
            elif size <= quota // 2 and drone.over_quota_at is not None:
                self._let_write(drone)

        each_alone("quota", drones, keep)
        if ANSWERS in beyond:
            log.warning("answers to Celery's remote control were deleted: as many are never read")
            drop(self._core.broker, held[ANSWERS].keys)
        # Left by a removal that deleted the user and then found the broker unavailable.
        for removed in held.keys() - living - {ANSWERS}:
            drop(self._core.broker, left_behind(removed, held[removed]))

    def _stop(self, drone: Drone, holding: Holding, quota: int) -> None:
        core = self._core
        if drone.over_quota_at is None:
            self._set(drone, stopped=True)
            log.warning("a drone exceeds its quota in the broker and may not write there", drone=drone.id, code=CODE)
        # Each round anew: another process may have read the drone before it was stopped, and written its user after.
        self._write_user(drone, may_write=False)
        # Read after the keys were: a run's row is older than its key.
        with core.database.read() as db:
            runs = set(db.scalars(select(Dispatch.id).where(Dispatch.drone_id == drone.id)))
        keys = unneeded(drone.id, holding, runs)
        if holding.keys.get(names.events_stream(drone.id), 0) > 2 * quota:
            # The collector would take minutes to read it, and others may have no memory. An honest drone, which never
            # gets here, is asked to send from its journals what was not stored.
            keys.append(names.events_stream(drone.id))
        drop(core.broker, keys)

    def _let_write(self, drone: Drone) -> None:
        assert drone.over_quota_at is not None
        if self._core.clock.now() - drone.over_quota_at < self._pause:
            return
        self._set(drone, stopped=False)
        self._write_user(drone, may_write=True)
        log.info("a drone may write to the broker again", drone=drone.id)

    def _set(self, drone: Drone, *, stopped: bool) -> None:
        core = self._core
        identity = AuthenticatedDrone(drone.id, drone.organization_id, drone.name)
        with coming_from(RequestOrigin(door="drone", reporting=identity)), core.database.write() as db:
            row = db.get_one(Drone, drone.id, with_for_update=True)
            row.over_quota_at = core.clock.now() if stopped else None
            note_drone(db, core, identity, "exceed_quota" if stopped else "return_below_quota")
        core.broker.wake()

    def _write_user(self, drone: Drone, *, may_write: bool) -> None:
        user = user_of(drone)
        self._core.broker.ensure_user(drone.id, *user.password_hashes, may_write=may_write)


def ensure_users(core: Core) -> None:
    """Recreate users and bindings that the server lost, and delete users and keys of removed drones."""
    there = core.broker.users_by_server()
    with core.database.read() as db:
        drones = db.scalars(select(Drone).where(_LIVING)).all()
    wanted = {drone.id: user_of(drone) for drone in drones}
    if changed := core.broker.ensure_users(wanted, there):
        log.info("broker users of drones were corrected", drones=changed)
    if corrected := ensure_bindings(core.broker, {drone.id: worker_of(drone) for drone in drones}):
        log.info("shared bindings in the broker were corrected", keys=corrected)


# --- what the broker refused, in the audit log: at most one record for each drone and round -------

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
        if self._known is not None and (new := found - self._known):
            self._write(new)
        # Only now: the next round records what this one could not write.
        self._known = found

    def _write(self, new: Counter[BrokerRefusal]) -> None:
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
    found = sorted({_printable(each.user if each.is_login else each.what)[:40] for each in refused})
    more = ["…"] if len(found) > _NAMED else []
    return ", ".join(found[:_NAMED] + more)[:255]


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
