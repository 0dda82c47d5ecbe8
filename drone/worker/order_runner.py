"""Carrying out one order: a message from the queue becomes a run, is watched to its end, and ends with a last event.

This is the worker's side of a run. It holds what must survive a crash of the run process: the claim, the directory, the
last event written on its behalf.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError
from redis.exceptions import RedisError

from drone.installation.disk import fault_of
from drone.installation.home import DroneHome
from drone.processes.ending import end_all
from drone.processes.reaping import reap_adopted
from drone.processes.tree import start_time, this_machine_boot
from drone.reporting import journal
from drone.reporting.journal import RunIdentity
from drone.reporting.reporter import Reporter
from drone.reporting.uplink import Sealer
from drone.runs.conclusion import of_error, of_wish
from drone.runs.directory import Meta, RunDirectory
from drone.runs.end_on_behalf import end_on_behalf
from drone.runs.job import Job
from drone.runs.pipe import Doing, FromRun, InFlight, Recorded
from drone.runs.stop_requests import Wish
from drone.worker.claim import Claim, Claims
from drone.worker.forking import ForkServer, RunProcess
from drone.worker.tracked_runs import TrackedRun, TrackedRuns
from shared.clock import Clock
from shared.control import Say
from shared.envelope import CannotOpen, check_ids
from shared.errors import FleetFault
from shared.events import Delta, ErrorStep, Event, Receipt, RunEnded, RunStarted
from shared.terminal import logs
from shared.titles import title
from shared.work_order import WorkOrder

log = logging.getLogger(__name__)

LISTEN_SECONDS = 0.5
CLAIM_RETRY_SECONDS = 0.5
WRITE_RETRY_SECONDS = 5.0
STOP_SECONDS = 30.0
"""Time for a run to give its order back when the drone stops; then it is killed."""
STALLED_SECONDS = 120.0
"""Time for a stalled run to store its work; then it is killed."""
LAST_SECONDS = 10.0
"""Time for a process to exit after it closed its pipe."""


@dataclass(frozen=True)
class RunResult:
    """The result of carrying out an order."""

    refused: bool = False
    """A copy that must not be run: nothing was done with it."""
    revoked: bool = False
    """Refused, because the control plane took the run back before it began."""
    end: RunEnded | None = None
    """The run's last event; None also for a run that ended silently because another generation holds the order."""


@dataclass(frozen=True)
class OrderRunner:
    """Carries out orders; threads may share an instance, each with its own message."""

    home: DroneHome
    boot_id: str
    clock: Clock
    sealer: Sealer
    claims: Claims
    fork_server: ForkServer
    runs: TrackedRuns
    reporter: Reporter
    sandbox: str
    make_job: Callable[[RunDirectory, WorkOrder], Job]
    """The run's job, from its directory and the opened order."""
    introduced: threading.Event
    """Set once the hello of this boot is in the stream: it makes unended runs lost, so none may start before."""
    stopping: threading.Event
    count_events: Callable[[], Callable[[Event], None]]
    """For each run, a function that counts its events."""

    def carry_out(self, identity: RunIdentity, envelope: str) -> RunResult:
        """Claim the run, watch it to its end, and ensure that a last event is written."""
        with logs.bound(order=identity.order_id, run=identity.run_id):
            return self._carried_out(identity, envelope)

    def _carried_out(self, identity: RunIdentity, envelope: str) -> RunResult:
        if not self.sealer.has_key_of(envelope):
            # Not claimed, so the control plane seals it again, to the key that replaced the one it was sealed to.
            log.info("run %s is not taken: it is sealed to a key that was replaced", identity.run_id)
            return RunResult(refused=True)
        directory = RunDirectory(self.home.run_dir(identity.run_id))
        now, drone_id = self.clock.now().isoformat(), self.sealer.drone_id
        meta = Meta(identity.order_id, identity.generation, self.boot_id, now, drone_id=drone_id)
        # The directory comes before the claim: it keeps a second copy out, on this disk and after a crash.
        if self.stopping.is_set() or not self._created(directory, meta):
            return RunResult(refused=True)
        claim = self._claim(identity)
        if not claim.granted:
            directory.discard()
            log.info("run %s is not started: its key is %r", identity.run_id, claim.found)
            return RunResult(refused=True, revoked=claim.revoked)
        run = TrackedRun(directory, identity, self.clock)
        self.runs.add(run)
        self.reporter.follow(directory, _both(run.note_event, self.count_events()))
        if self.stopping.is_set():
            # Claimed at the moment when the drone was asked to stop, so not among the runs that were asked to end.
            run.ask_to_end(Wish("stop", "the drone is stopping"), within=STOP_SECONDS)
        try:
            return RunResult(end=self._run(run, meta, envelope))
        except Exception as error:  # the boundary of a run on this side: in any case, it gets a last event
            log.exception("watching run %s failed", run.run_id)
            fault = FleetFault(
                "the drone lost track of the run", code="E-RUN-LOST", why=f"{type(error).__name__}: {error}"
            )
            return RunResult(end=self._end_on_behalf(run, fault, None))

    def _created(self, directory: RunDirectory, meta: Meta) -> bool:
        """False for a copy, or if the disk has no room: nothing is claimed then, and the order goes elsewhere."""
        try:
            return directory.create(meta)
        except OSError as error:
            log.error("run %s is left to another drone: its directory cannot be created: %s", directory.run_id, error)
            return False

    def _claim(self, identity: RunIdentity) -> Claim:
        """Retry until there is an answer: a claim whose answer was lost may have been granted."""
        while not self.stopping.is_set():
            if not self.introduced.wait(CLAIM_RETRY_SECONDS):
                continue
            try:
                return self.claims.claim(identity.run_id, identity.generation)
            except RedisError as error:
                log.warning("run %s cannot be claimed yet: %s", identity.run_id, error)
                self.clock.sleep(CLAIM_RETRY_SECONDS)
        return Claim(granted=False, found="")

    def _run(self, run: TrackedRun, meta: Meta, envelope: str) -> RunEnded | None:
        receipt: Receipt | None = None
        try:
            process = self._begin(run, meta, envelope)
        except FleetFault as fault:
            return self._end_on_behalf(run, fault, None)
        try:
            code = self._watch(run, process)
        finally:
            run.gone()
        reap_adopted()
        if code != 0:
            # Killed, or it crashed: we adopted the processes that it started, as the nearest subreaper.
            receipt = end_all(spare=self.fork_server.own_processes(), at_once=True).receipt(self.clock.now())
        return self._last_event(run, code, receipt)

    def _begin(self, run: TrackedRun, meta: Meta, envelope: str) -> RunProcess:
        """Open the order and start the run's process.

        Raises FleetFault if the envelope cannot be opened or no process can be started.
        """
        order = self._opened(run.identity, envelope)
        run.progress_timeout = order.limits.progress_timeout
        run.title = title(order.prompt)
        for word in order.said:
            # Sent before the dispatch: it waits for the process, and arrives before the first model request.
            run.send(Say(run_id=run.run_id, text=word.text, after=word.after, message=word.message, alone=word.alone))
        process = self.fork_server.start(self.make_job(run.directory, order))
        began, machine_boot = start_time(process.pid), this_machine_boot()
        try:
            run.directory.save(replace(meta, pid=process.pid, started_at=began, machine_boot=machine_boot))
        except OSError as error:
            # A process that a later boot could not find must not exist.
            process.kill()
            process.wait(LAST_SECONDS)
            process.close()
            raise fault_of(error) from error
        run.attach(process.send)
        return process

    def _opened(self, identity: RunIdentity, envelope: str) -> WorkOrder:
        """The order in the envelope. Raises FleetFault if it cannot be opened or read."""
        try:
            opened = self.sealer.open(
                envelope, "order", order=identity.order_id, run=identity.run_id, generation=identity.generation
            )
            order = WorkOrder.model_validate_json(opened.body)
            check_ids(order, opened.binding)
            return order
        except CannotOpen as error:
            raise FleetFault(
                "this drone cannot open the order", code="E-ENVELOPE", why=str(error), next="fleet doctor"
            ) from error
        except ValidationError as error:
            # Not the error's own text, which quotes the order.
            why = f"{error.error_count()} of its fields are invalid in this version"
            raise FleetFault("this drone cannot read the order", code="E-ENVELOPE", why=why) from None

    def _watch(self, run: TrackedRun, process: RunProcess) -> int:
        """Pass on the run's messages until it is gone, ask it to end if it stalls, and return its exit code."""
        try:
            while True:
                for message in process.receive(LISTEN_SECONDS):
                    self._handle(run, message)
                run.looked_at()
                run.uses(process.memory())
                if why := run.stalled():
                    log.warning("run %s: %s; stopping it", run.run_id, why)
                    run.ask_to_end(Wish("stalled", why), within=STALLED_SECONDS)
                if run.overdue():
                    log.warning("run %s did not stop in time; killing it", run.run_id)
                    process.kill()
        except EOFError:
            pass
        code = process.wait(LAST_SECONDS)
        if code is None:
            process.kill()
            code = process.wait(LAST_SECONDS)
        process.close()
        return -9 if code is None else code

    def _handle(self, run: TrackedRun, message: FromRun) -> None:
        if isinstance(message, Doing):
            run.does(message.text, message.waits_for)
            return
        run.progressed()
        match message:
            case Recorded():
                self.reporter.wake()
            case InFlight():
                self.reporter.delta(
                    Delta(
                        run_id=run.run_id,
                        order_id=run.identity.order_id,
                        kind=message.of,
                        text=message.text,
                        after_seq=message.after_seq,
                        offset=message.offset,
                    )
                )

    def _last_event(self, run: TrackedRun, code: int, receipt: Receipt | None) -> RunEnded | None:
        """The last event as the run wrote it, or as we write it for a run that could not."""
        line = journal.tail(run.directory.journal)
        if line is not None and isinstance(line.event.body, RunEnded):
            run.note_event(line.event)
            self.reporter.wake()
            return line.event.body
        ended = run.end
        if ended is not None:
            return ended
        if run.was_asked_to("stale"):
            # Another generation holds the order: send nothing more. The directory stays, as the marker of this run.
            self.runs.drop(run.run_id)
            return None
        return self._end_on_behalf(run, _died(run, code), receipt)

    def _end_on_behalf(self, run: TrackedRun, fault: FleetFault, receipt: Receipt | None) -> RunEnded:
        log.error("run %s: %s (%s)", run.run_id, fault.what, fault.why)
        judged = of_error(fault) if run.wish is None else of_wish(run.wish)
        end = RunEnded(
            status=judged.status,
            exit_status=judged.exit_status,
            reason=f"{fault.what}: {fault.why}" if fault.why else fault.what,
            receipt=receipt or Receipt(at=self.clock.now()),
            give_back=judged.give_back,
            order_at_fault=judged.order_at_fault,
        )
        while not self._written(run, [ErrorStep(what=fault.what, detail=fault.why, code=fault.code), end]):
            self.clock.sleep(WRITE_RETRY_SECONDS)
        run.gone()
        self.reporter.wake()
        return end

    def _written(self, run: TrackedRun, last: Sequence[ErrorStep | RunEnded]) -> bool:
        """Append to the journal of a run whose process is gone; False if that is not possible yet."""
        started = RunStarted(boot_id=self.boot_id, sandbox=self.sandbox)
        try:
            for event in end_on_behalf(run.directory, run.identity, self.clock, started, last):
                run.note_event(event)
        except OSError as error:
            # A full disk, most likely. The run stays in the heartbeats until its end is written: it never vanishes.
            log.error("the end of run %s cannot be written: %s", run.run_id, error)
            return False
        return True


def _both(first: Callable[[Event], None], second: Callable[[Event], None]) -> Callable[[Event], None]:
    def both(event: Event) -> None:
        first(event)
        second(event)

    return both


def _died(run: TrackedRun, code: int) -> FleetFault:
    """The error of a run that did not record its end itself."""
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    why = f"it did not stop when asked; it ended with {how}"
    if run.wish is not None and run.wish.kind == "stalled":
        return FleetFault(run.wish.reason, code="E-NO-PROGRESS", why=why, next="fleet resume ORDER")
    if run.wish is not None and run.wish.kind == "overgrown":
        return FleetFault(run.wish.reason, code="E-RUN-MEMORY", why=why, next="fleet resume ORDER")
    return FleetFault("the run's process ended unexpectedly", code="E-RUN-DIED", why=how)
