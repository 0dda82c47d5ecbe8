"""The same kinds of fault against plain Celery workers on Redis, to show what its settings do and do not guarantee.

Two settings: early acknowledgement, which is the default, and `task_acks_late` with a visibility timeout of 20 s
instead of an hour, to keep the comparison short.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from celery import Celery

from control_plane.broker.valkey_config import program
from tests.chaos.stock_worker import COUNT, STEPS
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.freezing import frozen

VISIBILITY_SECONDS = 20
FROZEN_SECONDS = 40.0
RESTARTED_AFTER = 2.0
TASKS = 24
"""More than the workers prefetch, which is four tasks per slot."""
WORKERS = 2
SLOTS = 2
BOUND_SECONDS = 75.0
"""Twice the timeout, plus the ten seconds between two checks of it, plus the work."""
HEAD = (
    "| Celery with | fault | tasks | not done | begun more than once | files with doubled numbers "
    "| begun again after, s |"
)


@dataclass
class Trial:
    """One setting, one fault, and the outcome of the tasks."""

    late: bool
    fault: str
    root: Path
    lost: int = 0
    begun_twice: int = 0
    doubled: int = 0
    again_after: float = 0.0
    error: str = ""
    _workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _server: BrokerServer = field(init=False)

    def run(self) -> None:
        """Run the trial in its directory, with its own Redis and workers; an error is kept in `error`."""
        self.root.mkdir(parents=True)
        try:
            with self._broker(), ExitStack() as workers:
                for number in range(WORKERS):
                    workers.callback(self._end, number)
                    self._workers.append(self._start(number))
                self._submit()
                wait_until(lambda: len(self._files("began")) >= WORKERS * SLOTS, seconds=60, every=0.1)
                # Hit the first tasks in the middle.
                time.sleep(1.5)
                at = time.time()
                FAULTS[self.fault](self)
                self._wait(at)
                self._count(at)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - reported by the thread's starter
            self.error = f"{type(error).__name__}: {error}"

    @property
    def row(self) -> str:
        setting = f"late acknowledgement, {VISIBILITY_SECONDS} s" if self.late else "early acknowledgement (default)"
        again = f"{self.again_after:.0f}" if self.again_after else "never" if self.lost else "not needed"
        return f"| {setting} | {self.fault} | {TASKS} | {self.lost} | {self.begun_twice} | {self.doubled} | {again} |"

    # --- the faults -----------------------------------------------------------------------------

    def kill_worker(self) -> None:
        self._end(0)
        time.sleep(RESTARTED_AFTER)
        self._workers[0] = self._start(0)

    def restart_broker(self) -> None:
        self._server.restart(kill=True)

    def empty_broker(self) -> None:
        self._server.redis.flushall()

    def freeze_worker(self) -> None:
        with frozen(self._workers[0].pid):
            time.sleep(FROZEN_SECONDS)

    # --- set-up and counting ----------------------------------------------------------------------

    @contextmanager
    def _broker(self) -> Iterator[None]:
        self._server = BrokerServer(self.root / "valkey", program())
        self._server.start()
        try:
            yield
        finally:
            self._server.close()

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "STOCK_BROKER": self._server.url,
            "STOCK_LATE": "1" if self.late else "0",
            "STOCK_VISIBILITY": str(VISIBILITY_SECONDS) if self.late else "",
        }
        command = [sys.executable, "-m", "celery", "-A", "tests.chaos.stock_worker", "worker"]
        options = [f"--concurrency={SLOTS}", f"--hostname=stock-{number}@%h", "--loglevel=WARNING"]
        with (self.root / f"worker-{number}.log").open("ab") as log:
            return subprocess.Popen(
                [*command, *options], stdout=log, stderr=log, env=environment, cwd=Path(__file__).parents[2]
            )

    def _end(self, number: int) -> None:
        """SIGKILL the worker and its children; no effect if it was never started."""
        if number >= len(self._workers):
            return
        with suppress(psutil.Error):
            doomed = [psutil.Process(self._workers[number].pid)]
            doomed += doomed[0].children(recursive=True)
            for each in doomed:
                with suppress(psutil.Error):
                    each.kill()
        self._workers[number].wait(10)

    def _submit(self) -> None:
        app = Celery("client", broker=self._server.url, set_as_current=False)
        for number in range(TASKS):
            app.send_task(COUNT, args=(str(self.root), number))
        app.close()

    def _wait(self, at: float) -> None:
        """Wait until all tasks are done and none starts again within the time of a redelivery; at most the bound."""
        deadline = at + BOUND_SECONDS + (FROZEN_SECONDS if self.fault in _FREEZES else 0)
        quiet = VISIBILITY_SECONDS + 12 if self.late else 6
        while time.time() < deadline:
            files = [*self.root.glob("*.numbers"), *self.root.glob("*.began")]
            newest = max((file.stat().st_mtime for file in files), default=at)
            if time.time() - newest > quiet and len(self._files("ended")) == TASKS:
                return
            time.sleep(0.5)

    def _count(self, at: float) -> None:
        for number in range(TASKS):
            began, numbers = self._lines(number, "began"), self._lines(number, "numbers")
            self.lost += not self._lines(number, "ended")
            self.begun_twice += len(began) > 1
            self.doubled += len(numbers) > STEPS
            again = [float(line) - at for line in began[1:]]
            self.again_after = max([self.again_after, *again])

    def _files(self, kind: str) -> list[Path]:
        return list(self.root.glob(f"*.{kind}"))

    def _lines(self, number: int, kind: str) -> list[str]:
        file = self.root / f"{number}.{kind}"
        return file.read_text().split() if file.exists() else []


_FREEZES = frozenset({f"SIGSTOP of a worker for {FROZEN_SECONDS:.0f} s"})
FAULTS: dict[str, Callable[[Trial], None]] = {
    "SIGKILL of a worker, started again after 2 s": Trial.kill_worker,
    "Redis killed and restarted": Trial.restart_broker,
    "Redis emptied (FLUSHALL)": Trial.empty_broker,
    next(iter(_FREEZES)): Trial.freeze_worker,
}


def compare(root: Path) -> list[Trial]:
    """Try all faults with both settings; the four trials of one setting run concurrently."""
    done: list[Trial] = []
    for late in (False, True):
        trials = [Trial(late, fault, root / f"{'late' if late else 'early'}-{n}") for n, fault in enumerate(FAULTS)]
        threads = [threading.Thread(target=trial.run, daemon=True) for trial in trials]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(BOUND_SECONDS + FROZEN_SECONDS + 120)
        done += trials
    return done


def table(trials: list[Trial]) -> str:
    """One row per trial, in Markdown."""
    return "\n".join([HEAD, "|---|---|---|---|---|---|---|", *(trial.row for trial in trials)])
