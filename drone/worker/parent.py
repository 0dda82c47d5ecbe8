"""`drone start`: a small parent that keeps the worker running, passes on stop signals, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from types import FrameType

from drone.installation.home import DroneHome
from drone.processes.ending import end_all
from drone.processes.reaping import become_reaper
from drone.worker.leave_rule import LEFT, LeaveRule
from drone.worker.status_line import CLEAR, StatusLine, can_show, tell
from shared.clock import Clock, SystemClock
from shared.errors import Conflict, Forbidden, NotFound, Precondition, Unreachable
from shared.own_programs import module_command

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""A worker that ran this long resets the pauses."""
HOPELESS = frozenset({kind.exit_code for kind in (Precondition, NotFound, Conflict, Forbidden)})
"""Exit codes that a restart would only repeat: the owner has to fix something."""


def start(
    home: DroneHome, clock: Clock | None = None, *, metrics_port: int | None = None, rule: LeaveRule | None = None
) -> int:
    """Run the drone until a signal stops it; returns the exit code.

    The first SIGTERM, SIGINT or SIGHUP lets its runs finish, the second has them give their orders back, the third
    kills them. SIGQUIT acts like the second at once: for a caller that cannot wait, like a machine that shuts down.
    With `metrics_port`, the worker serves `/metrics` there. With `rule`, the drone also stops when that says so.

    Raises Conflict if a drone already runs in this home, Precondition if it is not registered.
    """
    config = home.config()
    with home.lock():
        become_reaper()
        supervisor = _Supervisor(home, clock or SystemClock(), metrics_port, rule)
        tell(f"starting drone {config.name}; log: {home.log_file}; Ctrl-C stops it when its runs have ended")
        supervisor.status = StatusLine(sys.stderr, config.name) if can_show(sys.stderr) else None
        try:
            code = supervisor.run()
        finally:
            if supervisor.status is not None:
                supervisor.status.stop()
        tell(f"drone {config.name} stopped" if code == 0 else f"drone {config.name} failed (exit code {code})")
        return code


class _Supervisor:
    """One worker at a time, restarted whenever it ends without having been asked to."""

    def __init__(self, home: DroneHome, clock: Clock, metrics_port: int | None, rule: LeaveRule | None) -> None:
        self._home = home
        self._clock = clock
        self._metrics_port = metrics_port
        self._rule = rule
        self._ended_workers = 0
        self._worker: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._stage = 0
        self.status: StatusLine | None = None
        """Shown while the drone runs; None if stderr is no terminal."""

    def run(self) -> int:
        """Keep a worker running; return once it was asked to stop, with every process of the drone gone."""
        previous = {number: signal.signal(number, self._on_signal) for number in _STOP_SIGNALS}
        pause = FIRST_PAUSE_SECONDS
        try:
            while True:
                began = self._clock.monotonic()
                code = self._one_worker()
                if self._stopping.is_set() or (self._rule is not None and code == LEFT):
                    return 0
                if is_final(code, self._rule):
                    return code
                pause = FIRST_PAUSE_SECONDS if self._clock.monotonic() - began > STEADY_SECONDS else pause
                self._say(f"the drone's worker ended ({_how(code)}); restarting in {pause:.0f} s")
                if self._stopping.wait(pause):
                    return 0
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _one_worker(self) -> int:
        """Start a worker, wait for its end, and end all processes that it left behind."""
        command = list(module_command("drone.worker", "--home", str(self._home.path)))
        # A separate session: Ctrl-C in the terminal goes only to this process, which decides what it means.
        # stdin is never written to: the worker ends when it closes, so it cannot outlive this process.
        status = self.status
        if status is not None:
            command.append("--report")
        if self._metrics_port is not None:
            command += ["--metrics-port", str(self._metrics_port), "--restarts", str(self._ended_workers)]
        if self._rule is not None:
            command += ["--idle", str(self._rule.idle_s)]
            command += ["--orders", str(self._rule.orders)] if self._rule.orders is not None else []
        stdout = subprocess.DEVNULL if status is None else subprocess.PIPE
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stdout, start_new_session=True) as worker:
            if status is not None and worker.stdout is not None:
                status.read(worker.stdout)
            self._worker = worker
            # The stop signal may have come before there was a worker to pass it on to.
            self._pass_on()
            code = worker.wait()
        self._worker = None
        self._ended_workers += 1
        end_all(at_once=True)
        return code

    def _say(self, text: str) -> None:
        (tell if self.status is None else self.status.say)(text)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._stage = min(max(self._stage + 1, _GIVE_BACK if number == signal.SIGQUIT else _FINISH), _KILL)
        self._stopping.set()
        # First: the terminal may be gone, and the runs must learn of the signal all the same.
        self._pass_on()
        if self._worker is not None:
            # Without a lock: a handler interrupts whoever holds it.
            begin = "\n" if self.status is None else CLEAR
            with suppress(OSError):
                os.write(2, f"{begin}{_SAID[self._stage]}\n".encode())

    def _pass_on(self) -> None:
        """Signal the worker how to stop, if it should. Each stage has its own signal: two of a kind may become one."""
        if self._worker is not None and self._stage:
            self._worker.send_signal(_TOLD[self._stage])


_FINISH, _GIVE_BACK, _KILL = 1, 2, 3
_SAID = {
    _FINISH: "stopping: no new orders; ends after the current runs; "
    "press Ctrl-C again (or send SIGTERM) to return their orders, a third time to kill them",
    _GIVE_BACK: "stopping: current runs return their orders; press again to kill them",
    _KILL: "stopping: killing the remaining processes",
}
_TOLD = {_FINISH: signal.SIGTERM, _GIVE_BACK: signal.SIGQUIT, _KILL: signal.SIGKILL}
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def is_final(code: int, rule: LeaveRule | None) -> bool:
    """Whether a worker with this exit code is not replaced; an ephemeral drone that reaches no broker leaves."""
    return code in HOPELESS or (rule is not None and code == Unreachable.exit_code)


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
