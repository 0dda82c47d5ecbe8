"""A Celery worker with a drone's rights and options, and an empty task: what the broker must allow a drone to do.

Run as a program: `plain_worker.py BROKER_URL DRONE_ID`. It writes `done <task id>` to stdout for each task.
"""

from __future__ import annotations

import sys
from typing import Any

from celery import Celery

from shared import names


def worker(url: str, drone_id: str) -> Celery:
    """An application whose worker consumes only the drone's queue, and keeps its state under its own keys."""
    app = Celery("drone", broker=url, set_as_current=False)
    app.conf.update(
        task_ignore_result=True,
        task_acks_late=False,
        worker_disable_prefetch=True,
        worker_send_task_events=True,
        broker_connection_retry_on_startup=True,
        broker_transport_options={
            "unacked_key": f"unacked.{drone_id}",
            "unacked_index_key": f"unacked_index.{drone_id}",
            "unacked_mutex_key": f"unacked_mutex.{drone_id}",
        },
    )

    @app.task(name=names.RUN_TASK, bind=True)
    def run(task: Any, *_: Any) -> None:
        print(f"done {task.request.id}", flush=True)  # noqa: T201 - its only output

    return app


if __name__ == "__main__":
    broker_url, drone = sys.argv[1:]
    worker(broker_url, drone).worker_main(
        [
            "worker",
            f"--hostname={drone}@host",
            f"--queues={names.queue(drone)}",
            "--pool=threads",
            "--concurrency=1",
            "--without-mingle",
            "--without-gossip",
            "--events",
            "--loglevel=WARNING",
        ]
    )
