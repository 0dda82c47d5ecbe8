"""Bare Celery end to end, for comparison: from sending tasks to their end, with a worker of two threads.

As a program, it is the worker: `python -m celery -A tests.scale.bare_celery worker`, with the broker in SCALE_BROKER.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from celery import Celery

from control_plane.broker.valkey_config import program
from tests.support import wait_until
from tests.support.broker import BrokerServer

TASK = "scale.empty"
DONE = "scale:done"
_QUEUE = "scale"

app = Celery("scale", broker=os.environ.get("SCALE_BROKER"), set_as_current=False)
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=1, task_default_queue=_QUEUE)


@app.task(name=TASK)
def count(payload: str) -> None:
    """Count itself as done; `payload` has the size of a sealed order."""
    del payload
    with app.connection_for_write() as connection:
        connection.default_channel.client.incr(DONE)


def tasks_per_s(root: Path, tasks: int) -> float:
    """How many tasks per second go from this process through a broker of its own and a worker with two threads."""
    broker = BrokerServer(root, program())
    broker.start()
    worker = _worker(broker.url, root / "worker.log")
    try:
        sender = Celery("sender", broker=broker.url, set_as_current=False)
        sender.conf.update(task_ignore_result=True)
        sender.send_task(TASK, args=[""], queue=_QUEUE)
        wait_until(lambda: int(broker.redis.get(DONE) or 0) == 1, seconds=60)  # type: ignore[arg-type]
        began = time.monotonic()
        for _ in range(tasks):
            sender.send_task(TASK, args=["x" * 2000], queue=_QUEUE)
        wait_until(lambda: int(broker.redis.get(DONE) or 0) == tasks + 1, seconds=300, every=0.02)  # type: ignore[arg-type]
        took = time.monotonic() - began
        sender.close()
        return tasks / took
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait(10)
        broker.close()


def _worker(url: str, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "celery", "-A", "tests.scale.bare_celery", "worker", "--pool=threads"]
    options = ["--concurrency=2", "--queues", _QUEUE, "--without-mingle", "--without-gossip", "--loglevel=ERROR"]
    with log.open("ab") as output:
        return subprocess.Popen(
            [*command, *options], env={**os.environ, "SCALE_BROKER": url}, stdout=output, stderr=output
        )
