"""A plain Celery application for the comparison: the same job of ten steps as a task with stock settings.

Started as `celery -A tests.chaos.stock_worker worker`; the environment has the broker and one of the two settings.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from celery import Celery

STEPS = 10
STEP_SECONDS = 0.4
COUNT = "count"

app = Celery("stock", broker=os.environ.get("STOCK_BROKER"), set_as_current=False)
_VISIBILITY = os.environ.get("STOCK_VISIBILITY")
app.conf.update(
    task_ignore_result=True,
    task_acks_late=os.environ.get("STOCK_LATE") == "1",
    broker_connection_retry_on_startup=True,
    # Kombu checks for expired messages every 100 s; here every 10 s, so that it happens within the trial.
    broker_transport_options={"visibility_timeout": int(_VISIBILITY), "unacked_restore_throttle": 1}
    if _VISIBILITY
    else {},
)


@app.task(name=COUNT)
def count(directory: str, number: int) -> None:
    """Append 1 to 10 to the task's own file, and record when it began and ended."""
    root = Path(directory)
    _append(root / f"{number}.began", f"{time.time()}")
    for step in range(1, STEPS + 1):
        time.sleep(STEP_SECONDS)
        _append(root / f"{number}.numbers", str(step))
    _append(root / f"{number}.ended", f"{time.time()}")


def _append(file: Path, line: str) -> None:
    with file.open("a") as handle:
        handle.write(f"{line}\n")
