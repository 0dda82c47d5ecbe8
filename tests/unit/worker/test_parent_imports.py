"""The parent of a drone runs as long as the drone, so it loads only what it needs."""

from __future__ import annotations

import subprocess
import sys

NOT_NEEDED = {"celery", "kombu", "redis", "litellm"}


def test_the_parent_of_a_drone_loads_neither_the_queue_nor_the_model_library() -> None:
    code = f"import drone.cli.main, drone.worker.parent, sys; print(sorted({NOT_NEEDED!r} & set(sys.modules)))"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout == "[]\n"
