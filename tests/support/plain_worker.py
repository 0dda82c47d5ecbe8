"""A Celery worker with a drone's rights and options, and an empty task: what the broker must allow a drone to do.

Run as a program: `plain_worker.py BROKER_URL DRONE_ID WORKER`, the last being its name in Celery. It writes `done
<task id>` to stdout for each task.
"""

from __future__ import annotations

import sys

from drone.worker.app import Slots, build
from shared import names


def execute(order_id: str, run_id: str, generation: int, envelope: str) -> str:
    """The empty task."""
    del order_id, generation, envelope
    print(f"done {run_id}", flush=True)  # noqa: T201 - its only output
    return "done"


if __name__ == "__main__":
    broker_url, drone, worker = sys.argv[1:]
    build(drone, broker_url, 1, execute, Slots(lambda _: None, lambda _: None)).worker_main(
        [
            "worker",
            f"--hostname={worker}",
            f"--queues={names.queue(drone)}",
            "--without-mingle",
            "--without-gossip",
            "--loglevel=WARNING",
        ]
    )
