"""The worker process: `python -m drone.worker --home PATH`, started and restarted by `drone start`.

stdin is the lifeline to the parent: when it ends, the parent is gone, and so is this process. SIGTERM lets it finish
the runs in hand, a second one or SIGQUIT has them give their orders back.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from celery import signals
from celery.exceptions import CPendingDeprecationWarning
from celery.platforms import SecurityWarning

from drone.installation import settings
from drone.installation.home import DroneHome
from drone.metrics.server import serving
from drone.metrics.worker_state import StateCollector
from drone.processes.reaping import become_reaper
from drone.worker.app import build, cut_down_remote_control
from drone.worker.identity import DroneIdentity, begin_boot
from drone.worker.leave_rule import LEFT, LeaveRule
from drone.worker.node import Node
from drone.worker.shutdown import FINISH, GIVE_BACK, WorkerShutdown
from drone.worker.watchdog import rebuild_consumer
from shared import names
from shared.clock import SystemClock
from shared.errors import FleetError
from shared.terminal import logs
from shared.terminal.boundary import report

log = logging.getLogger("drone.worker")

PARENT_GONE = 1


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
