"""The worker process: `python -m drone.worker --home PATH`, started and restarted by `drone start`.

stdin is the lifeline to the parent: when it ends, the parent is gone, and so is this process. SIGTERM lets it finish
the runs in hand, a second one or SIGQUIT has them give their orders back.
"""

from __future__ import annotations

import argparse
import logging
import os
import queue
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from celery import Celery, signals
from celery.exceptions import CPendingDeprecationWarning
from celery.platforms import SecurityWarning
from celery.worker import state

from drone.installation import settings
from drone.installation.home import DroneHome
from drone.metrics.server import serving
from drone.metrics.worker_state import StateCollector
from drone.processes.reaping import become_reaper
from drone.worker.app import build, cut_down_remote_control
from drone.worker.identity import DroneIdentity, begin_boot
from drone.worker.leave_rule import LEFT, LeaveRule
from drone.worker.node import Node
from drone.worker.watchdog import rebuild_consumer
from shared import names
from shared.clock import SystemClock
from shared.errors import FleetError
from shared.terminal import logs
from shared.terminal.boundary import report

log = logging.getLogger("drone.worker")

PARENT_GONE = 1
FINISH = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Once: take no more orders, and stop when the active runs have ended. Twice: like GIVE_BACK."""
GIVE_BACK = signal.SIGQUIT
"""Have the active runs give their orders back, and stop when they have."""
_NO_SIGNAL = 0
LOOK_SECONDS = 0.1
END_SECONDS = 30.0
"""Time for Celery to disconnect from the broker and for the last reports, once no run is left; then it exits."""


def main() -> int:
    """Work until asked to stop; the exit code is a FleetError's own if the drone cannot work at all."""
    arguments = argparse.ArgumentParser(prog="drone.worker", description=__doc__)
    arguments.add_argument("--home", type=Path, required=True)
    arguments.add_argument("--report", action="store_true", help="Write reports for the status line to stdout.")
    arguments.add_argument("--metrics-port", type=int, help="Serve metrics on this loopback port.")
    arguments.add_argument("--restarts", type=int, default=0, help="How many workers ended before this one.")
    arguments.add_argument("--idle", type=int, help="Leave for good after this many seconds without work.")
    arguments.add_argument("--orders", type=int, help="With --idle: leave after this many orders.")
    given = arguments.parse_args()
    home = DroneHome(given.home)
    try:
        chosen = replace(settings.load(), home=home)
        logs.configure(level=chosen.log_level, file=home.log_file)
        return _work(begin_boot(chosen), given)
    except FleetError as error:
        return report(error)


def _work(me: DroneIdentity, given: argparse.Namespace) -> int:
    logs.bind(drone=me.config.drone_id)
    become_reaper()
    _end_with_parent()
    refusals: list[FleetError] = []
    # Until Celery runs: there is no active run yet that would need to end gracefully.
    for number in (*FINISH, GIVE_BACK):
        signal.signal(number, lambda *_: sys.exit(0))
    # Celery must leave the logs alone: they are set up already.
    signals.setup_logging.connect(lambda **_: None, weak=False)
    rule = LeaveRule(given.idle, given.orders) if given.idle is not None else None
    node = Node(me, SystemClock(), rule)
    if given.report:
        node.report_on(sys.stdout.fileno())
    shutdown = WorkerShutdown(node)

    def refuse(error: FleetError) -> None:
        refusals.append(error)
        os.kill(os.getpid(), signal.SIGTERM)

    with _metrics(node, me, given):
        try:
            node.start(refuse, shutdown.finish_boot)
            _consume(node, me, shutdown)
        except SystemExit:
            log.info("stopped while starting")
        node.stop()
    shutdown.over()
    if refusals:
        raise refusals[0]
    return LEFT if node.leaving is not None and node.leaving.decided else 0


@contextmanager
def _metrics(node: Node, me: DroneIdentity, given: argparse.Namespace) -> Iterator[None]:
    """Serve metrics within the block, if a port is given. Raises Conflict, Precondition."""
    if given.metrics_port is None:
        yield
        return
    node.figures.register(StateCollector(node.state, Path(me.config.workspace), given.restarts))
    with serving(node.figures, given.metrics_port):
        yield


def _consume(node: Node, me: DroneIdentity, shutdown: WorkerShutdown) -> None:
    """Take messages from the queue until a signal; returns when the active runs have ended."""
    cut_down_remote_control()
    # Celery warns about root because of pickle, which is not accepted here.
    warnings.simplefilter("ignore", SecurityWarning)
    # Issued at each reconnection, about a setting that has no effect on messages acknowledged early.
    warnings.simplefilter("ignore", CPendingDeprecationWarning)
    config = me.config
    app = build(
        config.drone_id, me.credentials.broker_url, config.concurrency, node.execute, node.slots, config.ca_file
    )
    worker = shutdown.worker_of(app)(
        hostname=names.worker(config.drone_id, config.host, config.name),
        queues=[names.queue(config.drone_id)],
        loglevel="INFO",
        task_events=True,
        without_mingle=True,
        without_gossip=True,
        heartbeat_interval=5,
        quiet=True,
    )
    node.watchdog.guard(partial(rebuild_consumer, worker), node.stopping)
    worker.start()


class WorkerShutdown:
    """Handles the signals of the worker process and ends it in stages.

    This needs no broker, and does not wait for a connection to it that hangs.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._worker: Any = None
        self._asked = 0
        # The only queue of the standard library whose `put` is safe inside a signal handler.
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stop", daemon=True)

    def worker_of(self, app: Celery) -> Any:
        """Celery's worker class, with our signal handlers in place of its own."""
        base: Any = app.Worker
        take_over = self._take_over

        class Worker(base):  # type: ignore[misc]  # Celery has no types
            """Celery's own, except for the signals."""

            def install_platform_tweaks(self, worker: Any) -> None:
                super().install_platform_tweaks(worker)
                take_over(worker)

        return Worker

    def _take_over(self, worker: Any) -> None:
        self._worker = worker
        for number in (*FINISH, GIVE_BACK):
            signal.signal(number, self._on_signal)
        self._thread.start()

    def over(self) -> None:
        """Note that the main thread has ended, so that the process need not be forced to exit."""
        self._over.set()

    def finish_boot(self) -> None:
        """As the first signal, but not counted: the first one that comes after it does not hurry the runs."""
        self._signals.put(_NO_SIGNAL)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._signals.put(number)

    def _run(self) -> None:
        self._act(self._signals.get())
        while self._node.must_wait():
            try:
                self._act(self._signals.get(timeout=LOOK_SECONDS))
            except queue.Empty:
                continue
        state.should_stop = os.EX_OK
        self._worker.pool.wake()
        if not self._over.wait(END_SECONDS):
            log.warning("the broker delays the shutdown; unsent events will be sent at the next start")
            logging.shutdown()
            os._exit(os.EX_OK)

    def _act(self, number: int) -> None:
        self._asked += number != _NO_SIGNAL
        if self._asked > 1 or number == GIVE_BACK:
            self._node.give_back()
        else:
            self._node.finish()


def _end_with_parent() -> None:
    def watch() -> None:
        # Not through sys.stdin: a thread that waits inside its buffer would break the interpreter's shutdown.
        while os.read(0, 4096):
            pass
        # Not gracefully: there is no parent to wait for it. The runs see their pipes end, and end too.
        os._exit(PARENT_GONE)

    threading.Thread(target=watch, name="parent", daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
