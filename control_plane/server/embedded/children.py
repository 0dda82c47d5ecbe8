"""Child processes of `fleet up`: started with separate logs, restarted when they die, ended in order.

Each runs in a separate session, so that Ctrl-C in the terminal reaches only `fleet up`, which then ends them one after
the other. Each also gets its signal from the kernel if `fleet up` itself is killed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
RESTART_DELAYS = (0.5, 1.0, 2.0, 5.0, 15.0)


@dataclass
class Child:
    """One part of the fleet, as a process."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] | None = None
    """The complete environment; None: ours."""
    stop_seconds: float = 10.0
    """How long it may take to end after the request to stop."""
    stop_signal: signal.Signals = signal.SIGTERM
    """Asks it to end cleanly, and soon."""
    ready_seconds: float = 60.0
    """How long it may take to become ready."""
    may_be_late: bool = False
    """The fleet starts without it, too, if it is not ready in time."""
    stops_first: bool = False
    """Is asked to stop before all other parts, because they process what it hands back."""
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    _next_try: float = 0.0
    _asked: bool = False

    def start(self) -> None:
        """Start the process; its output is appended to its log."""
        self._asked = False
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            # preexec_fn is safe here: `fleet up` has no other thread when it starts a child.
            self.process = subprocess.Popen(
                list(self.command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=None if self.environment is None else dict(self.environment),
                start_new_session=True,
                preexec_fn=partial(_end_with_parent, self.stop_signal),  # noqa: PLW1509
            )

    def died(self) -> int | None:
        """The exit code, if the process has ended."""
        return self.process.poll() if self.process else None

    def restart_when_due(self) -> bool:
        """Restart a dead child, after a longer wait each time; True when it was started."""
        now = time.monotonic()
        if self._next_try == 0.0:
            self._next_try = now + RESTART_DELAYS[min(self.restarts, len(RESTART_DELAYS) - 1)]
        if now < self._next_try:
            return False
        self.restarts += 1
        self._next_try = 0.0
        self.start()
        return True

    def ask_to_stop(self) -> None:
        """Ask the process to end, only once: to a drone a second signal means more than the first."""
        if self.process is not None and self.process.poll() is None and not self._asked:
            self._asked = True
            self.process.send_signal(self.stop_signal)

    def hurry(self) -> None:
        """Ask a process that may have been asked already to end immediately."""
        if self.process is not None and self.process.poll() is None:
            self._asked = True
            self.process.send_signal(signal.SIGTERM)

    def stop(self, *, at_once: bool = False) -> None:
        """End the process: its signal, its time limit, then SIGKILL to its whole group."""
        if self.process is None or self.process.poll() is not None:
            return
        self.ask_to_stop()
        try:
            self.process.wait(1.0 if at_once else self.stop_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def last_words(self, lines: int = 12) -> str:
        """The end of its log, for an error message."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 8192))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])


def without_fleet_secrets() -> dict[str, str]:
    """Our environment without the tokens and addresses that are for the control plane only.

    Nor is there a port for metrics in it, which only one of several drones could have.
    """
    ours = {name: value for name, value in os.environ.items() if not name.startswith("FLEET_")}
    return {name: value for name, value in ours.items() if name != "DRONE_METRICS_PORT"}


def _end_with_parent(number: signal.Signals) -> None:
    # This call exists only on Linux: elsewhere the user must end what a killed `fleet up` leaves behind.
    if sys.platform != "linux":
        return
    _libc.prctl(PR_SET_PDEATHSIG, number)
