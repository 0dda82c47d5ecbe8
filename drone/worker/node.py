"""One running drone: assembles everything in the worker process."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from celery.exceptions import Ignore
from prometheus_client import CollectorRegistry

from drone.installation.disk import DiskSpace
from drone.installation.spending import DaySpending
from drone.metrics.event_counts import EventCounts
from drone.metrics.worker_state import WorkerState
from drone.reporting.journal import RunIdentity
from drone.reporting.reporter import Reporter
from drone.reporting.stream import Stream
from drone.reporting.uplink import Sealer, connect
from drone.runs.cleaning import clean
from drone.runs.directory import RunDirectory, all_runs
from drone.runs.job import Job
from drone.runs.stop_requests import Wish
from drone.worker.app import RunFailed, RunReturned, RunWithdrawn, Slots
from drone.worker.boot import Introduction, UnconfirmedRuns, end_previous_boots
from drone.worker.claim import Claims
from drone.worker.forking import ForkServer
from drone.worker.heartbeat import Heartbeat, MachineMeter, Standing
from drone.worker.identity import DroneIdentity, KeyRotation
from drone.worker.inbox import ControlActions, Inbox, InboxListener
from drone.worker.leave_rule import LeaveRule
from drone.worker.leaving import Leaving
from drone.worker.live_policy import LivePolicy
from drone.worker.membership import Membership
from drone.worker.order_runner import STOP_SECONDS, OrderRunner, RunResult
from drone.worker.revocation import STALE_KILL_SECONDS
from drone.worker.status_line import report
from drone.worker.tracked_runs import TrackedRuns
from drone.worker.watchdog import Watchdog
from shared import names
from shared.clock import Clock
from shared.errors import Conflict, FleetError, Unreachable
from shared.events import ABILITIES, Hello
from shared.outcome import ExitStatus
from shared.terminal.boundary import version
from shared.work_order import WorkOrder

log = logging.getLogger(__name__)

FLUSH_SECONDS = 10.0
CLEAN_SECONDS = 3600.0
IDLE_LOOK_SECONDS = 5.0
BY_FLOWER = "stopped by an operator in Flower"


class Node:
    """The threads and the state of one boot. Celery calls `execute`; the process calls `start` and `stop`."""

    def __init__(self, identity: DroneIdentity, clock: Clock, rule: LeaveRule | None = None) -> None:
        self._me = identity
        self._clock = clock
        self._version = version()
        self._redis = connect(identity.credentials.broker_url, identity.config.ca_file)
        sealer = Sealer(identity.config.drone_id, identity.private_key, identity.config.control_plane_key, clock)
        stream = Stream(self._redis, sealer)
        self._drained = identity.home.drained_file
        disks = identity.home.path, Path(identity.config.workspace)
        spending = DaySpending(identity.home.spending_file, clock)
        self._policy = LivePolicy(identity.policy, identity.check, clock, disks, spending)
        self.slots = Slots(
            self._terminate,
            self._revoke,
            paused=self._drained.exists(),
            lacking=DiskSpace(*disks).lacking,
            withheld=self._policy.withheld,
        )
        self.runs = TrackedRuns()
        self.leaving = Leaving(rule, self.slots, self.runs, clock) if rule is not None else None
        """Of an ephemeral drone."""
        if rule is not None and rule.orders is not None:
            # Those of earlier boots count: their directories stay, and the home was empty at first.
            self.slots.most, self.slots.taken = rule.orders, len(list(all_runs(identity.home.runs_dir)))
        self.fork_server = ForkServer(clock)
        self.reporter = Reporter(stream, clock)
        self.stopping = threading.Event()
        self._rotation = KeyRotation(identity, sealer, self.stopping)
        self._control = ControlActions(self.runs, self.reporter, self._drain, self._rotation.ask, self._rename)
        last = {"drain": identity.home.last_drain_file, "rename": identity.home.last_rename_file}
        inbox = Inbox(sealer, self._control.act, last)
        self._listener = InboxListener(self._redis, identity.config.drone_id, inbox)
        self._membership = Membership(identity, clock, self._leave)
        self._on_refusal: Callable[[FleetError], None] = log.error
        self._finish_boot: Callable[[], None] = lambda: None
        self._meter = MachineMeter(Path(identity.config.workspace))
        self._beats = Heartbeat(self._redis, sealer, self._standing, self.runs, inbox, self._membership)
        self._introduction = Introduction(self._redis, stream, clock, identity.previous_boot, self._membership.refused)
        self._introduced = threading.Event()
        self.watchdog = Watchdog(identity.config.concurrency, self._takeable, clock)
        self.figures = CollectorRegistry(auto_describe=False)
        """What `/metrics` shows of this boot."""
        self._counts = EventCounts(self.figures)
        self._runner = OrderRunner(
            home=identity.home,
            boot_id=identity.boot_id,
            clock=clock,
            sealer=sealer,
            claims=Claims(self._redis, identity.config.drone_id, identity.boot_id),
            fork_server=self.fork_server,
            runs=self.runs,
            reporter=self.reporter,
            sandbox=identity.sandbox,
            make_job=self._job,
            introduced=self._introduced,
            stopping=self.stopping,
            count_events=self._counts.of_run,
        )

    def start(self, on_refusal: Callable[[FleetError], None], finish_boot: Callable[[], None]) -> None:
        """Clean up after older boots, then begin; returns at once.

        `on_refusal` ends the process: another drone has this one's id, or this one was removed. `finish_boot` ends it
        when its runs have ended.
        """
        self._on_refusal = on_refusal
        self._rotation.on_saved = self._finish_boot = finish_boot
        self.fork_server.warm_up(self._beats.soon)
        me = self._me
        unconfirmed = end_previous_boots(me.home.runs_dir, me.config.drone_id, me.sandbox, self._clock)
        for run in unconfirmed.runs:
            self.reporter.follow(run.directory, run.note_event)
        for run in unconfirmed.ended:
            self.runs.add(run)
        threading.Thread(target=self._introduce, args=(unconfirmed,), name="introduction", daemon=True).start()
        threading.Thread(target=self._clean, name="cleaning", daemon=True).start()
        threading.Thread(target=self._rest, name="resting", daemon=True).start()
        if self.leaving is not None:
            threading.Thread(target=self._watch_leaving, args=(self.leaving,), name="leaving", daemon=True).start()

    def _watch_leaving(self, leaving: Leaving) -> None:
        try:
            if leaving.wait_for(self._introduced, self.stopping):
                leaving.watch(self.stopping, self._finish_boot)
        except Unreachable as error:
            self._on_refusal(error)

    def _rest(self) -> None:
        while not self.stopping.wait(IDLE_LOOK_SECONDS):
            self.fork_server.rest_if_idle(self._policy.current.keep.model_library_minutes)

    def _clean(self) -> None:
        """Remove what was not used for long, now and every hour, until the drone stops."""
        while not self.stopping.is_set():
            try:
                clean(self._me.home.runs_dir, self._me.config, self._policy.current.keep, self._clock)
            except Exception:  # the body of a background loop: the next hour may succeed
                log.exception("the disk could not be cleaned up")
            self.stopping.wait(CLEAN_SECONDS)

    def report_on(self, stdout: int) -> None:
        """Write a report for the status line of `drone start` to this file descriptor after each heartbeat."""
        # A parent that is stopped by Ctrl-Z does not read, and a heartbeat must not wait for it.
        os.set_blocking(stdout, False)
        self._beats.on_sent = partial(self._report, stdout)

    def state(self) -> WorkerState:
        """What this worker is doing now, for `/metrics`."""
        return WorkerState(
            runs=len(self.runs.working()),
            slots=self._me.config.concurrency,
            beat_age_s=self._beats.age_s,
            unsent_bytes=self.reporter.unsent_bytes(),
        )

    def _report(self, stdout: int, trouble: str) -> None:
        runs = [{"title": run.title, **run.beat().model_dump(mode="json")} for run in self.runs.working()]
        line = report(runs, trouble=trouble, concurrency=self._me.config.concurrency, paused=self.slots.paused)
        # The parent is stopped or ending; the next report makes up for a lost one.
        with suppress(OSError):
            os.write(stdout, line.encode())

    def execute(self, order_id: str, run_id: str, generation: int, envelope: str) -> str:
        """Carry out one message of the queue; return the result that Flower shows."""
        with self.watchdog.message_taken():
            ended = self._runner.carry_out(RunIdentity(run_id, order_id, generation), envelope)
        self._control.settle()
        if ended.refused:
            self.slots.take_back()
        if ended.refused and not ended.revoked:
            raise Ignore(f"this copy of run {run_id} was skipped")
        return result_of(run_id, order_id, ended)

    def finish(self) -> None:
        """Take no more orders, and let the active runs finish. Returns at once; not saved on disk."""
        self.stopping.set()
        self.slots.paused = True
        self._beats.soon()

    def give_back(self) -> None:
        """Take no more orders, and have the active runs give theirs back. Returns at once; safe to call twice."""
        self.finish()
        if self.leaving is not None:
            self.leaving.hurry()
        for run in self.runs.working():
            run.ask_to_end(Wish("stop", "the drone is stopping"), within=STOP_SECONDS)

    def must_wait(self) -> bool:
        """Whether the drone cannot end yet: it has active runs or, if it will not start again, unconfirmed ones."""
        return bool(self.runs.working()) or (self.leaving is not None and self.leaving.must_wait())

    def stop(self) -> None:
        """Send the recorded events and the last heartbeat; all runs have ended before."""
        self.stopping.set()
        if self._introduced.is_set():
            if not self.reporter.flush(FLUSH_SECONDS):
                log.warning("some events could not be sent; they will be sent when the drone starts again")
            self._beats.stop()
        self._listener.stop()
        self.reporter.stop()

    def _leave(self, error: FleetError) -> None:
        """End this boot, which no longer belongs to the fleet: other runs hold its orders by now."""
        self.stopping.set()
        if self.leaving is not None:
            # The control plane confirms nothing to this boot.
            self.leaving.hurry(within=0)
        for run in self.runs.working():
            run.ask_to_end(Wish("stale", error.what), within=STALE_KILL_SECONDS)
        self._on_refusal(error)

    def _introduce(self, unconfirmed: UnconfirmedRuns) -> None:
        try:
            if not self._introduction.make(self.reporter.send_unsent, lambda: self._hello(unconfirmed), self.stopping):
                return
        except Conflict as conflict:
            self._leave(conflict)
            return
        self.reporter.start()
        self._beats.start()
        self._listener.start()
        self._introduced.set()
        self._rotation.resume()
        log.info("drone %s is running as boot %s", self._me.config.name, self._me.boot_id)

    def _hello(self, unconfirmed: UnconfirmedRuns) -> Hello:
        config = self._me.config
        return Hello(
            drone_id=config.drone_id,
            machine_id=self._me.machine_id,
            boot_id=self._me.boot_id,
            at=self._clock.now(),
            version=self._version,
            sandbox=self._me.sandbox,
            concurrency=config.concurrency,
            labels=config.labels,
            runs=tuple(run.beat() for run in unconfirmed.runs),
            abilities=ABILITIES,
        )

    def _standing(self) -> Standing:
        return Standing(
            machine_id=self._me.machine_id,
            boot_id=self._me.boot_id,
            version=self._version,
            sandbox=self._me.sandbox,
            concurrency=self._me.config.concurrency,
            name=self._me.config.name,
            warm=self.fork_server.warm,
            draining=self.slots.draining,
            leaving=self.stopping.is_set() or self.slots.leaving or self.slots.spent,
            full=self.slots.lacking(),
            withheld=self.slots.withheld(),
            policy_broken=self._policy.is_broken,
            network=self._policy.current.network.reach(self._me.sandbox, self._me.no_network),
            open_network=self._me.no_network if self._policy.current.network.is_replaceable else "",
            hours_left_s=self._policy.current.when.hours_left(),
            policy_age_s=self._policy.age_s,
            stream_full=self.reporter.stream_full,
            machine=self._meter.read(),
        )

    def _job(self, directory: RunDirectory, order: WorkOrder) -> Job:
        return Job(
            home=self._me.home.path,
            run_id=directory.run_id,
            order=order,
            boot_id=self._me.boot_id,
            sandbox=self._me.sandbox,
            server_url=self._me.config.server_url,
            workspace=Path(self._me.config.workspace),
            policy=self._policy.current,
            credentials=self._me.credentials,
            network_works=self._me.network_works,
            valid_until=self._beats.lease.valid_until,
            ca_file=self._me.config.ca_file,
        )

    def _drain(self, on: bool) -> None:
        """Take no more orders, or take them again; saved on disk, because the message does not stay in the inbox."""
        if on:
            self._drained.touch()
        else:
            self._drained.unlink(missing_ok=True)
        self.slots.paused = on or self.stopping.is_set()
        self._beats.soon()

    def _rename(self, name: str) -> None:
        """Save the drone's name. A worker cannot change its own: the next boot has it, when the runs have ended."""
        self._me.home.rename(name)
        if name != self._me.config.name:
            log.info("this drone is now named %s; its worker is restarted when the current runs have ended", name)
            self._finish_boot()

    def _takeable(self) -> int:
        """Messages in the queue that should be taken as soon as there is a free slot."""
        if self.slots.closed or not self._introduced.is_set():
            return 0
        return int(self._redis.llen(names.queue(self._me.config.drone_id)))

    def _terminate(self, run_id: str) -> None:
        """Flower's terminate."""
        self.runs.terminate(run_id, BY_FLOWER)

    def _revoke(self, run_id: str) -> None:
        """Flower's revoke of a queued order."""
        self.runs.refuse(run_id, BY_FLOWER)


def result_of(run_id: str, order_id: str, ended: RunResult) -> str:
    """The result that Flower shows. Raises RunWithdrawn, RunReturned or RunFailed, which it shows as well."""
    end, run = ended.end, f"run {run_id} of order {order_id}"
    if end is None and not ended.revoked:
        raise RunReturned(f"{run} ended: another run holds the order")
    if end is None or end.exit_status == ExitStatus.CANCELED:
        raise RunWithdrawn(f"{run} was withdrawn")
    if end.status == "preempted" or end.give_back:
        raise RunReturned(f"{run} was given back")
    if end.status == "failed":
        kind = RunReturned if end.unsuitable or not end.order_at_fault else RunFailed
        raise kind(f"{run} failed: {end.exit_status}")
    return end.exit_status
