"""A drone whose credentials are in the hands of an attacker, in a fleet of real processes, and what it may try.

A try acts with these credentials alone, and raises `GotThrough` unless the right part refuses it. The fleet is then
asked whether an operator finds it where it belongs.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import redis
from sqlalchemy import func, select

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import audit, drones, orders
from control_plane.contract.declarations.audit import AuditFilter
from control_plane.db.drones import Drone, RawEvent
from control_plane.db.engine import Database
from drone.installation.home import DroneHome
from shared import names
from shared.envelope import Binding
from shared.work_order import WorkOrder
from tests.support import wait_until
from tests.support.stand_in import DroneStandIn
from tests.support.whole_fleet import WorkstationDrone

Doc = dict[str, Any]
ACL_LOG = 2000
"""Entries that the broker's ACL LOG holds here, so that each try can be found in it."""


class GotThrough(AssertionError):
    """A try had an effect, or an answer."""


@dataclass(frozen=True)
class Try:
    """One thing that a hostile drone does."""

    what: str
    act: Callable[[HostileDrone], object]
    recorded: str = ""
    """A key of `RECORDS`; empty: what has no effect and may also happen without bad intent."""


@dataclass
class Victims:
    """What belongs to others: their ids, for the tries to name."""

    oka: str
    """A drone of the same organization."""
    oka_order: str
    """Runs on it, and waits for approval."""
    oka_run: str
    oka_waiting: str
    """Waits in its queue."""
    mila: str
    """A drone of another organization."""
    mila_order: str
    """Has ended there."""
    mila_run: str
    mila_patch: str
    """The name of its patch."""
    join_token: str = ""
    """With which the hostile drone joined; used up."""


@dataclass
class HostileDrone:
    """The credentials of a registered drone, used by hand; it beats until it is closed."""

    played: DroneStandIn
    api_token: str
    broker_url: str
    url: str
    victims: Victims
    control: redis.Redis
    """The control plane's own connection, to see what is recorded."""
    database: Database
    client: FleetClient
    log: Callable[[], str]
    """What the control plane has logged."""
    order: WorkOrder | None = None
    """An order that it was given, and has begun."""
    codes: set[str] = field(default_factory=set)
    """Those of refusals whose sender is unknown to the fleet: it writes them down once the minute is over."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _beats: threading.Thread = field(init=False)

    @classmethod
    def of(cls, drone: WorkstationDrone, **rest: Any) -> HostileDrone:
        """With what a registration left in the drone's home."""
        home = DroneHome(Path(drone.environment["DRONE_HOME"]))
        config, credentials = home.config(), home.credentials()
        connection = redis.Redis.from_url(credentials.broker_url, decode_responses=True, encoding_errors="replace")
        played = DroneStandIn(
            config.drone_id, drone.name, connection, home.private_key(), config.control_plane_key, concurrency=2
        )
        return cls(played, credentials.api_token, credentials.broker_url, config.server_url, **rest)

    @property
    def id(self) -> str:
        return self.played.id

    @property
    def held(self) -> WorkOrder:
        """The order that it was given."""
        assert self.order is not None
        return self.order

    @contextmanager
    def online(self) -> Iterator[None]:
        """Beat every second, as far as the broker lets it, until the end or until `leave`."""

        def beat() -> None:
            while not self._stop.wait(1.0):
                with suppress(redis.RedisError):
                    self.played.beat(*([self.played.run_beat(self.order)] if self.order else []))

        self.played.beat()
        self._beats = threading.Thread(target=beat, name="hostile beats", daemon=True)
        self._beats.start()
        try:
            yield
        finally:
            self.leave()
            for opened in (self.played, self.control, self.client):
                opened.close()
            self.database.dispose()

    def leave(self) -> None:
        """Stop beating, so that the honest program can start with the same credentials."""
        self._stop.set()
        self._beats.join(60)
        with suppress(redis.RedisError):
            self.played.redis.delete(names.lease_key(self.id))

    def begin(self, order_id: str) -> None:
        """Take this order from the queue, claim it and report its start."""
        self.order = wait_until(self.played.take)
        assert self.held.order_id == order_id
        assert self.played.claim(self.held)
        self.played.report(self.held, self.played.started())
        wait_until(lambda: self.shown()["status"] == "running", seconds=60)

    def finish(self) -> None:
        """Report that the order it was given succeeded, which no try may have prevented."""
        self.played.report(self.held, self.played.ended())
        wait_until(lambda: self.shown()["status"] == "succeeded", seconds=60)

    def shown(self, order_id: str = "") -> Doc:
        """An order's document, by default that of its own."""
        found: Doc = self.client.call(orders.SHOW, order_id=order_id or self.held.order_id)
        return found

    def attempt(self, tries: Iterable[Try]) -> list[str]:
        """Make each try; returns what got through, is not recorded, or changed something of the others."""
        tries, others = list(tries), self.others()
        counted = {place: count(self) for place, count in RECORDS.items()}
        problems = [f"{each.what}: {problem}" for each in tries if (problem := self._problem(each))]
        for place, count in RECORDS.items():
            made, recorded = sum(each.recorded == place for each in tries), count(self) - counted[place]
            if recorded < made:
                problems.append(f"{recorded} of {made} tries are recorded ({place})")
        if (after := self.others()) != others:
            problems.append(f"something of another drone changed: {others} is {after}")
        return problems

    def _problem(self, tried: Try) -> str:
        try:
            code = tried.act(self)
        except GotThrough as got_through:
            return str(got_through)
        if tried.recorded == "unknown":
            self.codes.add(str(code))
        return ""

    def others(self) -> list[Any]:
        """What the fleet knows of the drones, orders and runs of the others, but for what time alone changes."""
        known = self.victims
        shown = {each["name"]: each for each in self.client.call(drones.LIST)}
        facts = [shown["oka"][key] for key in ("status", "version", "concurrency", "labels")]
        for order in map(self.shown, (known.oka_order, known.oka_waiting)):
            facts.append([order["status"], order["attempt"], order["stats"]["cost_usd"], len(order["steps"])])
        run = self.control.get(names.run_key(known.oka, known.oka_run))
        return [*facts, self.control.llen(names.queue(known.oka)), run]

    # --- reports ---------------------------------------------------------------------------

    def seal(self, said: Any, **binding: Any) -> str:
        """Anything, sealed with the drone's key; bound to itself unless `binding` says otherwise."""
        text = said if isinstance(said, str) else json.dumps(said)
        return self.played.seal(text, Binding(**{"direction": "event", "drone": self.id, **binding}))

    def event(self, body: Doc, **fields: Any) -> Doc:
        """The next event of the run that it was given, with these fields in place of the right ones."""
        return {
            "run_id": self.held.run_id,
            "order_id": self.held.order_id,
            "generation": self.held.generation,
            "seq": len(self.played.journals[self.held.run_id]) + 1,
            "at": "2026-01-01T00:00:00Z",
            "body": body,
            **fields,
        }

    def refused_entry(self, fields: Any, why: str) -> None:
        """Put an entry into the stream; it is refused for this reason."""
        before = self.refused_reports()
        self.played.redis.xadd(names.events_stream(self.id), fields)
        self.played.redis.publish(names.live_channel(self.id), '{"t": "event"}')
        wait_until(lambda: self.refused_reports() > before)
        newest = select(RawEvent.error).where(RawEvent.drone_id == self.id).order_by(RawEvent.id.desc()).limit(1)
        with self.database.read() as db:
            error = str(db.scalar(newest))
        if why not in error:
            raise GotThrough(f"refused for another reason than {why!r}: {error}")

    def ignored_report(self, kind: str, sealed: str) -> None:
        """Put an entry into the stream that is processed without any effect."""
        stream = names.events_stream(self.id)
        before = self.control.xlen(stream)
        self.played.put(kind, sealed)
        wait_until(lambda: self.control.xlen(stream) <= before)

    def row(self, drone_id: str = "") -> Drone:
        """A drone as it is stored, by default this one."""
        with self.database.read() as db:
            return db.get_one(Drone, drone_id or self.id)

    def wait_for_beat_of_oka(self) -> None:
        """Wait until a heartbeat of the other drone is stored that came after this call."""
        before = self.row(self.victims.oka).last_seen_at
        wait_until(lambda: self.row(self.victims.oka).last_seen_at != before)

    def http(self) -> httpx.Client:
        bearer = {"Authorization": f"Bearer {self.api_token}"}
        return httpx.Client(base_url=self.url, headers=bearer, trust_env=False, timeout=60)

    # --- where it is recorded ----------------------------------------------------------------

    def acl_log(self) -> int:
        """How often the broker has refused something to this drone, or a log-in under any name."""
        log: list[dict[str, Any]] = self.control.acl_log(ACL_LOG)
        return sum(int(each["count"]) for each in log if each["username"] == self.id or each["reason"] == "auth")

    def audited(self) -> int:
        """How many refusals of this drone the audit log names singly."""
        return len(self.client.call(audit.LIST, AuditFilter(actor=self.id, outcome="refused", limit=1000)))

    def refused_reports(self) -> int:
        of_drone = select(func.count()).select_from(RawEvent).where(RawEvent.drone_id == self.id)
        with self.database.read() as db:
            return db.scalar(of_drone) or 0

    def beats_refused(self) -> bool:
        """Whether the control plane has logged that it refused a heartbeat of this drone: once in ten minutes."""
        return any(self.id in line for line in self.log().splitlines() if "heartbeat" in line)


RECORDS: dict[str, Callable[[HostileDrone], int]] = {
    "acl": HostileDrone.acl_log,
    "audit": HostileDrone.audited,
    "raw": HostileDrone.refused_reports,
}
"""Places in which each try is recorded by itself; `unknown` is looked at in the end."""
