"""One running container: its start, the commands' way into it, and its end."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import select
import shutil
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from drone.processes.reaping import reap
from drone.processes.receipt import Ended
from drone.processes.tree import alive, below
from drone.sandbox import account, keeper
from drone.sandbox.container.engine import Engine, fault, last_words
from drone.sandbox.container.leftovers import LABEL, make_directory, this_maker
from drone.sandbox.container.options import HOME, OURS, Mounts, options
from drone.sandbox.keepers import Held, knows_sender
from drone.sandbox.network.gateway import Gateway
from drone.sandbox.network.namespace import PORT
from drone.sandbox.network.proxy import Proxy
from drone.sandbox.protocol import Asked
from drone.sandbox.resources import ResourceLimits
from drone.sandbox.resources.cgroups import counters_of
from shared.errors import FleetFault

START_SECONDS = 60.0
END_SECONDS = 10.0
_NOT_FOUND = 127
log = logging.getLogger(__name__)


class RunningContainer:
    """A container in which commands run until it is closed, or ended from outside."""

    def __init__(self, engine: Engine, mounts: Mounts, gateway: Gateway, limits: ResourceLimits) -> None:
        """Raises FleetFault if the engine cannot start it."""
        self._engine, self._name = engine, f"dronefleet-{secrets.token_hex(8)}"
        self._directory = make_directory()
        self.requests = self._directory / "requests"
        """The socket on which the first process accepts commands."""
        self.proxy: Proxy | None = None
        routed = gateway.access.kind in {"public", "hosts"}
        try:
            with _listening(self.requests) as requests, _listening(self._provide() / "hello") as greeting:
                self._start([*options(engine, mounts, self._ours, gateway.access, limits)], PORT if routed else 0)
                self._drone, listener = self._welcome(greeting, requests)
        except BaseException:
            self._remove()
            raise
        if listener is not None:
            self.proxy = Proxy(listener, gateway)
            self.proxy.start()
        self._counters = counters_of(self.process.pid, limits)

    def is_running(self, seconds: float = 0) -> bool:
        """Whether it still runs after this time."""
        return not select.select([self._drone], [], [], seconds)[0]

    def run(self, asked: Asked) -> Held:
        """Start a command. Raises OSError if the container, or the command's holder, ends meanwhile."""
        holder = socket.socket(socket.AF_UNIX)
        knows_sender(holder)
        try:
            holder.connect(str(self.requests))
        except OSError:
            holder.close()
            raise
        return Held(holder, asked)

    def take_reached(self) -> tuple[str, ...]:
        """The limits that the kernel enforced since the last time, each as a sentence."""
        before, self._counters = self._counters, {each: each.value() for each in self._counters}
        return tuple(each.sentence for each, value in self._counters.items() if value > before[each])

    def take_refused(self) -> tuple[str, ...]:
        return self.proxy.take_refused() if self.proxy else ()

    def close(self) -> Ended:
        """End the container with all in it; return how many processes of commands were still running."""
        monitor = self._monitor()
        left = {each for each in alive(below(self.process)) if _parent(each) != self.process.pid}
        if self.proxy is not None:
            self.proxy.close()
        with contextlib.suppress(OSError):
            self._drone.shutdown(socket.SHUT_WR)
        self.is_running(END_SECONDS)
        self._drone.close()
        self._remove()
        # podman's monitor removes the container; a run, which adopted it, would count it as left behind.
        _wait_for(monitor)
        survivors = len(alive(left))
        return Ended(found=len(left), ended=len(left) - survivors, survivors=survivors)

    @property
    def _ours(self) -> Path:
        return self._directory / "ours"

    def _provide(self) -> Path:
        """A directory for the container, which the commands' account can read: the program, and that account's name."""
        self._ours.mkdir()
        self._ours.chmod(0o755)
        user = account.UNPRIVILEGED if account.is_root() else os.getuid()
        texts = {
            "passwd": f"root:x:0:0::/root:/bin/sh\ndrone:x:{user}:{user}::{HOME}:/bin/sh\n",
            "group": f"root:x:0:\ndrone:x:{user}:\n",
            "__main__.py": Path(__file__).with_name("inside.py").read_text(),
            "keeper.py": Path(keeper.__file__).read_text(),
        }
        for name, text in texts.items():
            (self._ours / name).write_text(text)
            (self._ours / name).chmod(0o644)
        return self._ours

    def _start(self, words: list[str], port: int) -> None:
        run = ("run", "--detach", "--rm", "--pull", "never", "--name", self._name, "--label", f"{LABEL}={this_maker()}")
        program = ("--entrypoint", "python3", self._engine.image, "-I", "-S", OURS, f"{OURS}/hello", str(port))
        # podman's monitor writes a file `oom` into its current directory when the memory of the container is used up.
        started = self._engine.call(*run, *words, *program, directory=self._directory)
        if started.returncode == _NOT_FOUND:
            raise fault(f"the image {self._engine.image} has no python3: {last_words(started)}", "use another image")
        if started.returncode != 0:
            raise fault(last_words(started))

    def _welcome(self, greeting: socket.socket, requests: socket.socket) -> tuple[socket.socket, socket.socket | None]:
        """Hand the first process its socket for requests; return the connection, and the socket of the proxy."""
        try:
            greeting.settimeout(START_SECONDS)
            drone, _ = greeting.accept()
            drone.settimeout(START_SECONDS)
            shell, listeners, _, _ = socket.recv_fds(drone, 16, 1)
            socket.send_fds(drone, [b"."], [requests.fileno()])
        except OSError as error:
            raise fault(f"its first process did not answer: {error}; the image needs python3, 3.11 or newer") from error
        pid, _, _ = struct.unpack("iII", drone.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        self.process = psutil.Process(pid)
        self.shell = shell.decode()
        return drone, socket.socket(fileno=listeners[0]) if listeners else None

    def _monitor(self) -> psutil.Process | None:
        """podman's process beside the container, if this process adopted it."""
        with contextlib.suppress(psutil.Error):
            parent = self.process.parent()
            return parent if parent is not None and parent.ppid() == os.getpid() else None
        return None

    def _remove(self) -> None:
        # The engine removes it by itself, a moment later; under load, that was seen to fail.
        try:
            self._engine.call("rm", "--force", self._name)
        except FleetFault as error:
            log.warning("the container %s could not be removed: %s", self._name, error.why)
        shutil.rmtree(self._directory, ignore_errors=True)


@contextlib.contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    """A socket at this path, for every user who can reach it."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen(128)
        yield listener


def _parent(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.ppid())
    return 0


def _wait_for(monitor: psutil.Process | None) -> None:
    if monitor is None:
        return
    deadline = time.monotonic() + END_SECONDS
    while alive({monitor}) and time.monotonic() < deadline:
        time.sleep(0.01)
    reap({monitor})
