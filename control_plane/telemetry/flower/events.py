"""Events for Flower about runs whose drone cannot report their end; Flower would show them as STARTED forever."""

from __future__ import annotations

from collections.abc import Sequence

import redis

from control_plane.core import Core, EndedRun
from shared.terminal import logs

log = logs.get(__name__)

ON_BEHALF = "on_behalf"
"""Field of an event that the control plane sends for a worker: it is no sign that the worker lives."""
MARK = {ON_BEHALF: True}


def announce_ended_runs(core: Core, runs: Sequence[EndedRun]) -> None:
    """Send Celery's own event for each run, under its drone's worker name.

    Flower is a display, never the source of truth: a failure to send is logged and not retried.
    """
    if not runs:
        return
    from kombu.exceptions import OperationalError

    try:
        with core.broker.celery.connection_for_write() as connection:
            for run in runs:
                _send(core, connection, run)
    except (OperationalError, redis.RedisError, OSError) as error:
        log.warning("Flower was not notified of ended runs", runs=[run.run_id for run in runs], error=str(error))


def _send(core: Core, connection: object, run: EndedRun) -> None:
    with core.broker.celery.events.Dispatcher(connection, hostname=run.worker, enabled=True) as dispatcher:
        if run.how == "revoked":
            dispatcher.send("task-revoked", uuid=run.run_id, terminated=False, signum=None, expired=False, **MARK)
        else:
            dispatcher.send(f"task-{run.how}", uuid=run.run_id, exception=run.why, traceback="", **MARK)
