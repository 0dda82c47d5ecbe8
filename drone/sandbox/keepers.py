"""The drone's side of the keepers: their start, the commands that they are asked for, and their end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Protocol

import psutil

from drone.processes.reaping import reap_adopted
from drone.processes.receipt import Ended
from drone.processes.tree import MARK, alive, below
from drone.sandbox import keeper
from drone.sandbox.command import Spawn, Watch, follow, start
from drone.sandbox.opened import opened
from drone.sandbox.protocol import Asked, CommandResult, Tally

LOST = "its sandbox was ended from outside, or ran out of memory"
START_SECONDS = 60.0
END_SECONDS = 10.0
OWN_PROCESSES = 2
"""A keeper and the holder of a command, which the command's limit on processes does not count."""
_ITS_END_SECONDS = 0.5
_KILLED_BY_SIGNAL = 128 + signal.SIGKILL
_KILLED = -int(signal.SIGKILL)
_CREDENTIALS = struct.Struct("iII")


class Unstartable(Exception):
    """A sandbox that could not be started: its exit code, and what it said."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.words = words


@dataclass(frozen=True)
class Kind:
    """A sandbox for commands that share their keeper: those with the same `key`."""

    key: Hashable
    around: Callable[[Sequence[str]], Asked]
    """Given the options of a Python and its program's: what starts that Python in the sandbox."""
    spawn: Spawn


class Held:
    """A command below a holder, with the part of `subprocess.Popen` that following it needs."""

    def __init__(self, holder: socket.socket, asked: Asked) -> None:
        """`holder`: connected to one by `knows_sender`. Raises OSError if that ends before it has started anything."""
        self._holder = holder
        self._code: int | None = None
        reading, writing = os.pipe()
        self.stdout: IO[bytes] = os.fdopen(reading, "rb", buffering=0)
        try:
            with Path(os.devnull).open("rb") as nothing:
                _ask(holder, asked, [nothing.fileno(), writing, writing])
            self.pid = _sender(holder)
        except BaseException:
            self.stdout.close()
            holder.close()
            raise
        finally:
            os.close(writing)

    def has_ended(self, seconds: float) -> bool:
        """Wait at most this time for the end; return whether it has come."""
        return _is_readable(self._holder, seconds)

    def wait(self) -> int:
        """The exit code; that of a process killed by SIGKILL if the holder was killed."""
        if self._code is None:
            self._code = _KILLED
            self._holder.settimeout(None)
            with self._holder, contextlib.suppress(OSError):
                if status := self._holder.recv(1):
                    self._code = status[0]
        return self._code


class Starts(Protocol):
    """What starts commands in a sandbox: a keeper, or a container with one in it."""

    def run(self, asked: Asked) -> Held:
        """Start a command. Raises OSError if that which starts it, or its holder, ends meanwhile."""
        ...

    def is_running(self, seconds: float = 0) -> bool:
        """Whether it still runs after this time."""
        ...


def run_below(keeper: Starts, asked: Asked, watch: Watch, tally: Tally) -> CommandResult:
    """Start a command, and follow it to its end."""
    try:
        held = keeper.run(asked)
    except OSError:
        return CommandResult(return_code=None, output="", output_bytes=0, lost=LOST)
    result = follow(held, asked.environment[MARK], watch, tally)
    if result.return_code == _KILLED_BY_SIGNAL and not keeper.is_running(_ITS_END_SECONDS):
        return replace(result, return_code=None, lost=LOST)
    return result


def run_held(keepers: Keepers, kind: Kind, asked: Asked, watch: Watch, tally: Tally) -> CommandResult:
    """Run a command below the keeper of this kind."""
    try:
        keeper = keepers.at(kind)
    except Unstartable as error:
        return CommandResult(return_code=error.code, output=error.words, output_bytes=len(error.words.encode()))
    result = run_below(keeper, asked, watch, tally)
    if result.lost:
        keepers.leave(kind)
    return result


class Keepers:
    """The keepers of one run, shared by all copies of its sandbox; each is made for its first command."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[Hashable, Keeper] = {}

    def at(self, kind: Kind) -> Keeper:
        """The running keeper of this kind, started if there is none. Raises Unstartable."""
        with self._lock:
            found = self._running.get(kind.key)
            if found is None or not found.is_running():
                self._close(kind.key)
                found = self._running[kind.key] = Keeper(kind)
                opened[self] = None
            return found

    def leave(self, kind: Kind) -> None:
        """End the keeper of this kind, if there is one."""
        with self._lock:
            self._close(kind.key)

    def close(self) -> Ended:
        """End all; return how many processes of commands were still running."""
        with self._lock:
            opened.pop(self, None)
            return sum(map(self._close, list(self._running)), Ended())

    def _close(self, key: Hashable) -> Ended:
        running = self._running.pop(key, None)
        return Ended() if running is None else running.close()


class Keeper:
    """A running keeper, with the sandbox around it."""

    def __init__(self, kind: Kind) -> None:
        """Raises Unstartable."""
        self._drone, theirs = socket.socketpair()
        knows_sender(self._drone)
        try:
            with theirs, _program() as program:
                descriptors = (program.fileno(), theirs.fileno())
                asked = kind.around(["-I", "-S", f"/proc/self/fd/{descriptors[0]}", "serve", str(descriptors[1])])
                self._process = kind.spawn(lambda: start(asked, descriptors))
        except BaseException:
            self._drone.close()
            raise
        try:
            self._itself = psutil.Process(_sender(self._drone))
        except (OSError, psutil.Error) as error:
            raise Unstartable(*self._end()) from error

    def run(self, asked: Asked) -> Held:
        ours, theirs = socket.socketpair()
        knows_sender(ours)
        try:
            with theirs:
                socket.send_fds(self._drone, [b"."], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        return Held(ours, asked)

    def is_running(self, seconds: float = 0) -> bool:
        return not _is_readable(self._drone, seconds)

    def close(self) -> Ended:
        """End it with all that it holds; return how many processes of commands were still running."""
        left = {each for each in alive(below(self._itself)) if _parent(each) != self._itself.pid}
        self._end()
        survivors = len(alive(left))
        return Ended(found=len(left), ended=len(left) - survivors, survivors=survivors)

    def _end(self) -> tuple[int, str]:
        """The exit code of what was started, and what it said."""
        self._drone.close()
        # Without a sandbox, a command can stop it.
        self._process.send_signal(signal.SIGCONT)
        try:
            said, _ = self._process.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            said, _ = self._process.communicate()
        reap_adopted()
        return self._process.returncode, said.decode(errors="replace")


def knows_sender(connection: socket.socket) -> None:
    """Let the kernel say who sends on it. To be called before it is connected: what was sent earlier names no one."""
    connection.settimeout(START_SECONDS)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)


def _program() -> IO[bytes]:
    """The keeper's program in a file without a name: inside the sandbox there are no files of the drone."""
    file = os.fdopen(os.memfd_create("keeper"), "wb")
    file.write(Path(keeper.__file__).read_bytes())
    file.flush()
    return file


def _ask(holder: socket.socket, asked: Asked, streams: Sequence[int]) -> None:
    pairs = [f"{name}={value}" for name, value in asked.environment.items()]
    fields = [str(asked.directory), str(len(asked.arguments)), *asked.arguments, *pairs]
    request = b"\0".join(map(os.fsencode, fields))
    socket.send_fds(holder, [struct.pack("!I", len(request))], list(streams))
    holder.sendall(request)


def _is_readable(connection: socket.socket, seconds: float) -> bool:
    """Whether something has come, or the other end is closed, within this time."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _parent(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.ppid())
    return 0


def _sender(connection: socket.socket) -> int:
    """The process that sent the next byte, as the kernel says. Raises OSError if there is none."""
    data, ancillary, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
    if not data:
        raise ConnectionResetError("its process has ended")
    process = int(_CREDENTIALS.unpack(ancillary[0][2])[0])
    if process == 0:
        raise ConnectionError("the kernel does not name its process")
    return process
