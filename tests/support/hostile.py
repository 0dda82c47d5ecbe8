"""Runs one command as a drone's tool does, in a separate process, and measures its cost.

    python -m tests.support.hostile KIND WORKSPACE SECONDS COMMAND

Prints one JSON object (`Measured`). Memory is the kernel's high-water mark of this process, reset after a warm-up.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support.sandboxes import sandbox_of
from tests.support.toolboxes import called, toolbox


@dataclass(frozen=True)
class Measured:
    """The result for the model, and its cost."""

    output: str
    return_code: int | None
    is_error: bool
    output_bytes: int
    log_bytes: int
    live_characters: int
    seconds: float
    idle_mb: float
    peak_mb: float

    @property
    def over_idle_mb(self) -> float:
        return self.peak_mb - self.idle_mb


def run_hostile(kind: str, workspace: Path, command: str, seconds: float = 60) -> Measured:
    """Run the command in a new process with this time limit."""
    words = [sys.executable, "-m", "tests.support.hostile", kind, str(workspace), str(seconds), command]
    done = subprocess.run(words, capture_output=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return Measured(**json.loads(done.stdout))


def _measure(kind: str, workspace: Path, seconds: float, command: str) -> Measured:
    live: list[int] = []
    tools = toolbox(
        workspace,
        sandbox=sandbox_of(kind),
        command_timeout=seconds,
        on_output=lambda text: live.append(len(text)),
    )
    called(tools, "shell", command="seq 1 10000")
    live.clear()
    Path("/proc/self/clear_refs").write_text("5")
    idle, began = _megabytes("VmRSS"), time.monotonic()
    result = called(tools, "shell", command=command)
    return Measured(
        output=result.output,
        return_code=result.return_code,
        is_error=result.is_error,
        output_bytes=result.output_bytes,
        log_bytes=result.log.stat().st_size if result.log else 0,
        live_characters=sum(live),
        seconds=time.monotonic() - began,
        idle_mb=idle,
        peak_mb=_megabytes("VmHWM"),
    )


def _megabytes(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(_measure(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4]))))
