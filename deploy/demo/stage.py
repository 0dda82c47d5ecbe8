"""The demo's stage: a throw-away directory, the processes started in it, and proof that none of them is left."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

# -P: nothing is imported from the directory in which the demo is started.
FLEET = (sys.executable, "-P", "-m", "control_plane.cli.main")
DRONE = (sys.executable, "-P", "-m", "drone.cli.main")
STOP_S = 20.0
TITLE = 66
SETTINGS = ("FLEET_", "DRONE_", "MAKE", "MFLAGS", "API_KEY", "API_BASE", "MODEL")
SECRET = re.compile(r"(f[ajd]_|token=)[A-Za-z0-9_-]+")


class DemoFailed(Exception):
    """A step failed; the end of the file `log` has the details."""

    def __init__(self, what: str, log: Path | None = None) -> None:
        super().__init__(what)
        self.log = log


def say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print one line with the duration of the block; on a terminal the line appears at the start."""
    began = time.monotonic()
    if sys.stdout.isatty():
        sys.stdout.write(f"  ..  {title:<{TITLE}}\r")
        sys.stdout.flush()
    yield
    say(f"  ok  {title:<{TITLE}} {time.monotonic() - began:5.1f} s")


@dataclass
class Started:
    """A started process and the file its output goes to."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM

    def alive(self) -> None:
        """Raise DemoFailed if the process has ended."""
        code = self.process.poll()
        if code is not None:
            raise DemoFailed(f"{self.name} ended with exit code {code}", self.log)


@dataclass
class Stage:
    """One directory for everything, and the processes started in it, in order."""

    directory: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="dronefleet-demo-")))
    started: list[Started] = field(default_factory=list)

    def environment(self, **more: str) -> dict[str, str]:
        """The caller's environment without its secrets and settings, with homes inside the directory.

        Commands must neither find nor touch another fleet of the caller, and only the one command that stores the key
        of a real model may see it.
        """
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
        homes = {"FLEET_HOME": str(self.directory / "fleet"), "DRONE_HOME": str(self.directory / "drone")}
        # Files that a command writes outside its home (an unexpected error's full text) must go with the directory.
        state = {"XDG_CONFIG_HOME": str(self.directory / "config"), "XDG_STATE_HOME": str(self.directory / "state")}
        # The demo shows one order; a title would be another one.
        return {**inherited, **homes, **state, "FLEET_SESSION_TITLES": "false", **more}

    def start(
        self, name: str, command: Sequence[object], *, stop_signal: signal.Signals = signal.SIGTERM, **more: str
    ) -> Started:
        """Start a process that runs until the end of the demo, in its own session: Ctrl-C reaches only the demo."""
        log = self.directory / f"{name.replace(' ', '-')}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment(**more),
                start_new_session=True,
            )
        self.started.append(Started(name, process, log, stop_signal))
        return self.started[-1]

    def run(self, *command: object, timeout: float = 30.0, **more: str) -> str:
        """Run a command to its end and return its stdout. Raises DemoFailed with the command's output if it fails."""
        try:
            done = subprocess.run(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env=self.environment(**more),
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise DemoFailed(f"{_shown(command)} did not end within {timeout:.0f} s") from error
        except OSError as error:
            raise DemoFailed(f"{command[0]} cannot be run: {error.strerror}") from error
        if done.returncode:
            raise DemoFailed(f"{_shown(command)} ended with exit code {done.returncode}:\n{done.stderr or done.stdout}")
        return done.stdout

    def watch(self, *command: object, timeout: float) -> int:
        """Run a command that writes to the terminal directly, and return its exit code."""
        process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, env=self.environment(), start_new_session=True
        )
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise DemoFailed(f"{_shown(command)} did not end within {timeout:.0f} s") from error
        finally:
            _end(process)

    def close(self, *, keep: bool) -> list[str]:
        """End all processes, last first; remove the directory unless `keep`; return the processes that were killed."""
        for one in reversed(self.started):
            _end(one.process, one.stop_signal)
        left = self._left_behind()
        if not keep:
            shutil.rmtree(self.directory)
        return left

    def _left_behind(self) -> list[str]:
        """Wait up to 5 s for processes that still use the directory, kill the rest by id, and return ids and names."""
        deadline = time.monotonic() + 5
        while found := list(_with_a_hand_in(self.directory)):
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        names = [f"{process.pid} {process.name()}" for process in found if process.is_running()]
        for process in found:
            process.kill()
        return names


def wait_for(what: str, condition: Callable[[], object], *, seconds: float, part: Started) -> None:
    """Poll until `condition` is true. Raises DemoFailed if `part` dies or the time is up."""
    deadline = time.monotonic() + seconds
    while not condition():
        part.alive()
        if time.monotonic() > deadline:
            raise DemoFailed(f"{what}: not within {seconds:.0f} s", part.log)
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tail(log: Path, lines: int = 25) -> str:
    """The end of a log, with tokens masked."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return SECRET.sub(r"\1…", "\n".join(text.splitlines()[-lines:]))


def settings(names: Sequence[str]) -> Mapping[str, str]:
    """The named environment variables that are set and not empty."""
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def _shown(command: Sequence[object]) -> str:
    words = [str(part) for part in command]
    names = {FLEET: "fleet", DRONE: "drone"}
    program = names.get(tuple(words[:3]))
    return " ".join([program, *words[3:5]] if program else [Path(words[0]).name, *words[1:3]])


def _end(process: subprocess.Popen[bytes], number: signal.Signals = signal.SIGTERM) -> None:
    """Send a signal, wait, then send SIGKILL to the whole process group; do nothing if the process has ended."""
    if process.poll() is not None:
        return
    process.send_signal(number)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _with_a_hand_in(directory: Path) -> Iterator[psutil.Process]:
    """Other processes with our directory in their command line, environment or working directory."""
    mark = str(directory)
    for process in psutil.process_iter():
        try:
            traces = [*process.cmdline(), *process.environ().values(), process.cwd()]
            gone = process.status() == psutil.STATUS_ZOMBIE
        except (psutil.Error, OSError):  # ended meanwhile, or owned by another user, so not one of ours
            continue
        if process.pid != os.getpid() and not gone and any(mark in trace for trace in traces):
            yield process
