"""Starting run processes: a fork server that has the model library loaded and warm, so a run starts in milliseconds.

The server is the standard library's. It imports the modules below once, which takes seconds; meanwhile the worker
consumes, and a run that was claimed early waits in `start`.
"""

from __future__ import annotations

import logging
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess

import psutil

from drone.runs import entry
from drone.runs.job import Job
from drone.runs.pipe import FromRun, Probed, ToRun, WorkerLink
from shared.clock import Clock
from shared.errors import FleetFault

log = logging.getLogger(__name__)

PRELOAD = [
    "drone.runs.process",
    # Half a second for the runs that have servers of MCP.
    "drone.mcp_servers.connection", "drone.mcp_servers.http", "drone.mcp_servers.stdio",
    "drone.model.preload",
    "git",
]  # fmt: skip
_HELPER = "from multiprocessing."
_CONTEXT = multiprocessing.get_context("forkserver")


@dataclass
class RunProcess:
    """The process of a run, and the link to it."""

    process: ForkServerProcess
    link: WorkerLink

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
        self.process.close()


class ForkServer:
    """Starts run processes from the warm fork server, one at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self.warm_after_s: float | None = None
        """Seconds from start to warm; None while the model library is loading, or if it cannot be loaded."""
        self.fault = ""

    @property
    def warm(self) -> bool:
        return self.warm_after_s is not None

    def warm_up(self, when_warm: Callable[[], None]) -> None:
        """Start the server in the background; `when_warm` is called once runs start without delay."""
        _CONTEXT.set_forkserver_preload(PRELOAD)
        threading.Thread(target=self._warm_up, args=(when_warm,), name="warm-up", daemon=True).start()

    def start(self, job: Job) -> RunProcess:
        """Start a run. Waits until the server is warm.

        Raises FleetFault if no process could be started.
        """
        return self._fork(entry.main, job, f"run-{job.run_id}")

    def own_processes(self) -> list[int]:
        """The fork server and the standard library's tracker beside it: children of ours that are not orphans."""
        return [child.pid for child in psutil.Process().children() if _HELPER in " ".join(_command(child))]

    def _warm_up(self, when_warm: Callable[[], None]) -> None:
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
            self.fault = answer
            log.error("the model library could not be loaded, so no run can start: %s", answer)
            return
        self.warm_after_s = self._clock.monotonic() - began
        log.info("warmed up after %.1f s", self.warm_after_s)
        when_warm()

    def _fork(self, target: Callable[..., None], job: Job | None, name: str) -> RunProcess:
        ours, theirs = _CONTEXT.Pipe(duplex=True)
        process = _CONTEXT.Process(target=target, args=(theirs, job), name=name)
        try:
            # One at a time: the standard library's bookkeeping of children is not thread-safe.
            with self._lock:
                process.start()
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
        return RunProcess(process, WorkerLink(ours))


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []
