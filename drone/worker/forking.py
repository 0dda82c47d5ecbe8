"""Starting run processes: a fork server that has the model library loaded and warm, so a run starts in milliseconds.

The server is the standard library's. It imports the modules below once, which takes seconds; meanwhile the worker
consumes, and a run that was claimed early waits in `start`. As it has most of an idle drone's memory, it is ended when
no run was active for long. The next run then starts without it, and loads the library while it prepares its workspace.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess

import psutil

from drone.processes.tree import session_of
from drone.runs import entry
from drone.runs.job import Job
from drone.runs.pipe import FromRun, Probed, ToRun, WorkerLink
from shared.clock import Clock
from shared.errors import FleetFault
from shared.own_programs import module_command

log = logging.getLogger(__name__)

PRELOAD = [
    "drone.runs.process",
    # Half a second for the runs that have servers of MCP.
    "drone.mcp_servers.connection", "drone.mcp_servers.http", "drone.mcp_servers.stdio",
    "drone.model.preload",
    "git",
]  # fmt: skip
_SERVER = "from multiprocessing.forkserver"
_LOOK_SECONDS = 0.01
_CONTEXT = multiprocessing.get_context("forkserver")


@dataclass
class RunProcess:
    """The process of a run, and the link to it."""

    process: ForkServerProcess | subprocess.Popen[bytes]
    link: WorkerLink
    on_close: Callable[[RunProcess], None]

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def send(self, message: ToRun) -> None:
        """Send a message to the run. Never waits."""
        self.link.send(message)

    def receive(self, seconds: float) -> Iterator[FromRun]:
        """Yield the messages of the run, waiting at most `seconds` for the first. Raises EOFError when it is gone."""
        return self.link.receive(seconds)

    def wait(self, seconds: float) -> int | None:
        """Return the exit code, or None if the process is still running after `seconds`."""
        if isinstance(self.process, subprocess.Popen):
            with suppress(subprocess.TimeoutExpired):
                return self.process.wait(seconds)
            return None
        self.process.join(seconds)
        return self.process.exitcode

    def memory(self) -> int:
        """The bytes of memory that the process occupies; those that it shares with the fork server count."""
        try:
            return int(psutil.Process(self.pid).memory_info().rss)
        except psutil.Error:  # it has just ended
            return 0

    def kill(self) -> None:
        self.process.kill()

    def close(self) -> None:
        """Release the resources of a process that has ended."""
        self.link.close()
        self.on_close(self)
        if isinstance(self.process, ForkServerProcess):
            self.process.close()


class ForkServer:
    """Starts run processes: from the warm fork server; the first after a rest has an interpreter of its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._forking = threading.Lock()
        """The standard library's bookkeeping of children is not thread-safe, and waits until the server is warm."""
        self._lock = threading.Lock()
        self._starting = 0
        self._active: dict[int, RunProcess] = {}
        self._used_at = clock.monotonic()
        self._rests = False
        self._when_warm: Callable[[], None] = lambda: None
        self.warm_after_s: float | None = None
        """Seconds from start to warm; None while the model library is loading, if it cannot be loaded, or at rest."""

    @property
    def warm(self) -> bool:
        return self.warm_after_s is not None

    def warm_up(self, when_warm: Callable[[], None]) -> None:
        """Start the server in the background; `when_warm` is called whenever runs start without delay."""
        self._when_warm = when_warm
        _CONTEXT.set_forkserver_preload(PRELOAD)
        threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()

    def start(self, job: Job) -> RunProcess:
        """Start a run. Waits until the server is warm; if it rests, it is started as well, for the next run.

        Raises FleetFault if no process could be started.
        """
        with self._lock:
            rested, self._rests = self._rests, False
            self._starting += 1
        try:
            return self._cold(job) if rested else self._fork(entry.main, job, f"run-{job.run_id}")
        finally:
            with self._lock:
                self._starting -= 1
            if rested:
                self.warm_up(self._when_warm)

    def rest_if_idle(self, minutes: int | None) -> bool:
        """End the server if no run is active, and none was for this long; None: never. Return whether it was ended."""
        with self._lock:
            idle_minutes = (self._clock.monotonic() - self._used_at) / 60
            active = self._starting or self._active
            if minutes is None or not self.warm or active or idle_minutes < minutes:
                return False
            self._rests, self.warm_after_s = True, None
            # The standard library cannot be asked to end it, but starts another one in the place of one that is gone.
            for server in (each for each in _started() if _SERVER in " ".join(_command(each))):
                server.kill()
                # Not by waiting for it: the standard library does that, and takes it for a running one until then.
                while server.status() != psutil.STATUS_ZOMBIE:
                    self._clock.sleep(_LOOK_SECONDS)
        log.info("no run for %.0f minutes: the model library is unloaded until the next one", idle_minutes)
        return True

    def own_processes(self) -> list[int]:
        """The fork server, also a dead one, the standard library's tracker beside it, and runs: what is no orphan.

        The standard library must be the one to reap its dead server, or it cannot start another.
        """
        with self._lock:
            return [child.pid for child in _started()] + list(self._active)

    def _warm_up(self) -> None:
        began = self._clock.monotonic()
        try:
            probe = self._fork(entry.probe, None, "warm-probe")
            said = next(probe.receive(60.0), None)
            answer = said.problem if isinstance(said, Probed) else "no answer within a minute"
            probe.wait(5.0)
            probe.close()
        except (FleetFault, EOFError) as error:
            answer = str(error) or "its process ended without an answer"
        if answer:
            log.error("the model library could not be loaded, so no run can start: %s", answer)
            return
        self.warm_after_s = self._clock.monotonic() - began
        log.info("warmed up after %.1f s", self.warm_after_s)
        self._when_warm()

    def _fork(self, target: Callable[..., None], job: Job | None, name: str) -> RunProcess:
        def start(_: Connection, theirs: Connection) -> ForkServerProcess:
            process = _CONTEXT.Process(target=target, args=(theirs, job), name=name)
            with self._forking:
                process.start()
            return process

        return self._linked(start)

    def _cold(self, job: Job) -> RunProcess:
        def start(ours: Connection, theirs: Connection) -> subprocess.Popen[bytes]:
            number = theirs.fileno()
            command = module_command(entry.__name__, str(number))
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[number], start_new_session=True)
            # Closed here, so that sending fails if the process ends before it has read.
            theirs.close()
            try:
                ours.send(job)
            except OSError:
                process.kill()
                process.wait()
                raise
            return process

        return self._linked(start)

    def _linked(
        self, start: Callable[[Connection, Connection], ForkServerProcess | subprocess.Popen[bytes]]
    ) -> RunProcess:
        ours, theirs = _CONTEXT.Pipe(duplex=True)
        try:
            process = start(ours, theirs)
        except (OSError, EOFError) as error:
            ours.close()
            raise FleetFault(
                "no run process could be started on this drone",
                code="E-DRONE-FORK",
                why=str(error),
                next="drone doctor",
            ) from error
        finally:
            theirs.close()
        started = RunProcess(process, WorkerLink(ours), self._ended)
        with self._lock:
            self._active[started.pid] = started
        return started

    def _ended(self, process: RunProcess) -> None:
        with self._lock:
            self._active.pop(process.pid, None)
            self._used_at = self._clock.monotonic()


def _started() -> list[psutil.Process]:
    """The children that this process started in its own session, zombies included; orphans are in a run's session."""
    session = os.getsid(0)
    return [child for child in psutil.Process().children() if session_of(child.pid) == session]


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []
