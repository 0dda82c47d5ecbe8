"""Watches over all orders: places, publishes and takes them back. One of several processes leads at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Event

from sqlalchemy import SelectBase, bindparam, exists, select, union_all

from control_plane.attention import outbox as attention
from control_plane.attention.collecting import collect, notice_drones, waiting_users
from control_plane.attention.outbox import Outbox
from control_plane.automation import schedules, webhook_outbox
from control_plane.automation.budget_notices import untold, warn
from control_plane.automation.schedules import make_due
from control_plane.automation.webhook_outbox import Sender
from control_plane.core import Core
from control_plane.core.background.leases import LEADER, Owners
from control_plane.core.background.loops import Loop, Loops
from control_plane.core.background.timings import Timings
from control_plane.db.orders import Dispatch, Order
from control_plane.drones import inbox
from control_plane.money.spending.setting import recount_young
from control_plane.money.spending.settlement import settle_all_forgotten
from control_plane.operations.audit.sealing import prune_expired, seal_head
from control_plane.operations.code_hosts.syncing import enabled_links, keep_up
from control_plane.supervisor.broker_access import BrokerQuota, BrokerRefusals, ensure_users
from control_plane.supervisor.cleaning import ClockWatch, clean, remove_gone
from control_plane.supervisor.groups import batches_due, decide_races, losers, submit_due, unjudged
from control_plane.supervisor.lost_runs import HeartbeatMonitor, take_back_lost_runs
from control_plane.supervisor.outbox_relay import Relay, unpublished
from control_plane.supervisor.placing import place_queued, refresh_reasons
from control_plane.supervisor.restacking import restack, stacks_due
from control_plane.supervisor.stale_messages import StaleMessages
from control_plane.supervisor.suspending import continue_answered, suspend_long_waits
from control_plane.supervisor.unclaimed import Unclaimed
from control_plane.teams.claiming import claim_everywhere
from control_plane.telemetry.tracing import exporter
from control_plane.telemetry.tracing.exporter import TraceExporter
from shared.terminal import logs

__all__ = ["Supervisor"]
log = logs.get(__name__)


class Supervisor:
    """The loops of one process. They run in every supervisor, but do their work only in the one that leads."""

    def __init__(self, core: Core, holder: str, timings: Timings | None = None) -> None:
        self._core = core
        self._timings = timings or Timings()
        self.loops = Loops()
        self._leader = _Leader(core, holder, self._timings)
        self._relay = Relay(core)
        self._heartbeats = HeartbeatMonitor(core, holder, self._timings, self._wake)
        self._unclaimed = Unclaimed(core, self._relay, self._timings)
        self._stale_messages = StaleMessages(core)
        self._sender = Sender(core)
        self._outbox = Outbox(core)
        self._traces = TraceExporter(core)
        self._refusals = BrokerRefusals(core)
        self._quota = BrokerQuota(core, self._timings)
        self._seldom: list[Loop] = []
        self._wakes: dict[str, Event] = {}
        self._quick = self._plan()

    def start(self) -> None:
        self.loops.start()

    def round(self) -> None:
        """One complete round in this thread, in the place of `start`: the loops that are due, and those they wake."""
        self.loops.round(self._core.clock.monotonic())

    def stop(self) -> list[str]:
        """End all loops and let another supervisor lead immediately; returns the loops that did not end in time."""
        self._heartbeats.close()
        self._sender.close()
        self._outbox.close()
        self._traces.close()
        hanging = self.loops.stop()
        self._leader.resign()
        return hanging

    def _plan(self) -> list[Loop]:
        often, seldom = self._timings.poll, self._timings.users_every
        self.loops.add("leader", self._lead, every=self._timings.owner_ttl / 4)
        self.loops.add("heartbeats", self._heartbeats.listen, every=0.0, at_once=self._heartbeats.catch_up)
        roused = [
            self._add("placing", self._place),
            self._add("relay", self._relay.publish_all),
            self._add("inbox", lambda: inbox.send_new(self._core)),
            self._add("races", lambda: decide_races(self._core)),
            self._add("batches", lambda: submit_due(self._core)),
        ]
        self._add("stacks", lambda: restack(self._core))
        self._add("code hosts", lambda: keep_up(self._core))
        self._add("schedules", lambda: make_due(self._core))
        self._add("webhooks", self._sender.send_due, at_once=self._sender.round)
        self._add("collecting", lambda: collect(self._core))
        self._add("messages", self._outbox.send_due, at_once=self._outbox.round)
        self._add("traces", self._traces.export_due, at_once=self._traces.round)
        self._add("silent drones", lambda: notice_drones(self._core), every=seldom)
        self._add("unclaimed", self._unclaimed.check)
        self._add("stale messages", self._stale_messages.drop, every=4 * often)
        self._add("reasons", lambda: refresh_reasons(self._core))
        self._add("suspending", lambda: suspend_long_waits(self._core, self._timings.suspend_after))
        self._add("continuing", lambda: continue_answered(self._core))
        self._add("lost", lambda: take_back_lost_runs(self._core, self._heartbeats, self._timings))
        self._seldom = [
            self._add("users", lambda: ensure_users(self._core), every=seldom),
            self._add("refusals", self._refusals.record, every=seldom),
            self._add("inbox-missing", lambda: inbox.send_missing(self._core), every=seldom),
            self._add("teams", lambda: claim_everywhere(self._core), every=seldom),
        ]
        self._add("gone members", lambda: remove_gone(self._core, self._heartbeats, self._timings), every=seldom)
        self._add("quota", self._quota.enforce, every=self._timings.quota_every)
        self._add("settling", lambda: settle_all_forgotten(self._core), every=self._timings.settle_every)
        self._add("budgets", lambda: warn(self._core))
        self._add("young budgets", lambda: recount_young(self._core), every=self._timings.recount_every)
        self._add("cleaning", ClockWatch(self._core, clean).run, every=self._timings.clean_every)
        self._add("audit seals", lambda: seal_head(self._core), every=self._timings.seal_every)
        self._add("audit pruning", ClockWatch(self._core, prune_expired).run, every=self._timings.clean_every)
        self._add("outboxes", _Wakes(self._core, _OUTBOXES, self._wakes).wake, every=often)
        self._add("open work", _Wakes(self._core, _OPEN_WORK, self._wakes).wake, every=4 * often)
        return roused

    def _add(
        self,
        name: str,
        body: Callable[[], object],
        *,
        every: float | None = None,
        at_once: Callable[[], object] | None = None,
    ) -> Loop:
        """Add a loop; without `every`, it runs when there is work for it (`_Wakes`)."""

        def when_leading(act: Callable[[], object]) -> None:
            if self._leader.leads:
                act()

        loop = self.loops.add(
            name, partial(when_leading, body), every=every, at_once=partial(when_leading, at_once or body)
        )
        self._wakes[name] = loop.wake
        return loop

    def _place(self) -> None:
        # Wake the relay directly, so that placed orders go out immediately without a message through the broker.
        if place_queued(self._core, self._timings.pauses):
            self._quick[1].wake.set()

    def _lead(self) -> None:
        if self._leader.renew():
            self._wake(everything=True)
            # Importing Celery takes about a second: do it now, not when the first order waits for it.
            self._core.broker.prepare()

    def _wake(self, *, everything: bool) -> None:
        """Wake the quick loops; with `everything`, after a time without messages, the slow ones too."""
        for loop in self._quick + (self._seldom if everything else []):
            loop.wake.set()


# --- what wakes the quick loops -------------------------------------------------------------------
#
# One statement asks for all loops that send, and one for those that have work only now and then: if each asked the
# database itself, an idle fleet would spend most of its processor time on questions without an answer.

_NOW = bindparam("now", type_=Order.ended_at.type)
_Due = Mapping[str, SelectBase]
"""By the name of a loop, the rows that are due at `_NOW`. Built once: to build a statement takes longer than to ask."""

_OUTBOXES: _Due = {
    "relay": unpublished(),
    "inbox": inbox.unsent(),
    "webhooks": webhook_outbox.due(_NOW),
    "messages": attention.due(_NOW),
    "traces": exporter.due(_NOW),
    "schedules": schedules.due(_NOW),
}
"""What each of these loops sends."""
_OPEN_WORK: _Due = {
    # What watches over orders that wait or run, and over runs whose order moved on.
    **dict.fromkeys(
        ("placing", "unclaimed", "reasons", "suspending", "continuing", "lost"),
        union_all(
            select(Order.id).where(Order.ended_at.is_(None)), select(Dispatch.id).where(Dispatch.closed_at.is_(None))
        ),
    ),
    "races": union_all(losers().with_only_columns(Order.id), unjudged()),
    "batches": batches_due(),
    "stacks": stacks_due(),
    "code hosts": enabled_links(),
    "collecting": waiting_users(),
    "budgets": untold(),
}
"""What each of these loops works on."""


class _Wakes:
    """Wakes the loops that have work, after one statement that asks for all of them."""

    def __init__(self, core: Core, due: _Due, loops: Mapping[str, Event]) -> None:
        self._core = core
        self._rows = list(dict.fromkeys(due.values()))
        self._statement = select(*map(exists, self._rows))
        self._woken = [(self._rows.index(rows), name) for name, rows in due.items()]
        self._loops = loops

    def wake(self) -> None:
        with self._core.database.read() as db:
            answers = db.execute(self._statement, {"now": self._core.clock.now()}).one()
        for number, name in self._woken:
            if answers[number]:
                self._loops[name].set()


class _Leader:
    """Leader election by a lease on one row. Two leaders for a moment do no harm, as every write checks its row.

    `leads` turns false automatically if the lease is not renewed in time.
    """

    def __init__(self, core: Core, holder: str, timings: Timings) -> None:
        self._core = core
        self._owners = Owners(holder, core.clock, timings.owner_ttl)
        self._ttl = timings.owner_ttl
        self._until = 0.0

    @property
    def leads(self) -> bool:
        return self._core.clock.monotonic() < self._until

    def renew(self) -> bool:
        """Take or renew the lease; true if this supervisor leads from now on and did not before."""
        # Counted from before the write: the lease in the row may outlast our belief in it, never the other way round.
        began, led = self._core.clock.monotonic(), self.leads
        with self._core.database.write() as db:
            held = self._owners.hold(db, LEADER)
        self._until = began + self._ttl if held else 0.0
        if held is not led:
            log.info(
                "this supervisor is the leader" if held else "another supervisor is the leader",
                holder=self._owners.holder,
            )
        return held and not led

    def resign(self) -> None:
        """Let another supervisor lead immediately."""
        if self.leads:
            self._until = 0.0
            with self._core.database.write() as db:
                self._owners.release(db, [LEADER])
