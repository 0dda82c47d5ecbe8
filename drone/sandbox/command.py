"""Follows one command: reads its output, watches for timeout and cancel, and leaves nothing running."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, Self

from drone.processes.ending import end_command, end_marked
from drone.processes.reaping import reap_adopted
from drone.processes.receipt import Ended
from drone.processes.waiting import exit_of
from drone.sandbox.output import Output
from drone.sandbox.protocol import Asked, CommandLine, CommandResult, CommandSpec, Tally
from shared.errors import Interrupted

Process = subprocess.Popen[bytes]
Spawn = Callable[[Callable[[], Process]], Process]
"""Calls the function that starts a process, in a thread that lives as long as that."""
CANCEL_GRACE = 10.0
TIMEOUT_GRACE = 2.0
_TICK = 0.05
_DRAIN = 0.5
_READ = 64 * 1024


def at_once(starts: Callable[[], Process]) -> Process:
    """A Spawn for a process that ends before this thread does."""
    return starts()


def start(asked: Asked, descriptors: Sequence[int] = ()) -> Process:
    """Start it in a session of its own, with no input, its output in one pipe, and these descriptors of ours."""
    return subprocess.Popen(
        list(asked.arguments),
        cwd=asked.directory,
        env=dict(asked.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=descriptors,
    )


@dataclass(frozen=True)
class Watch:
    """What to watch while a command runs."""

    spec: CommandSpec
    usage: Callable[[int], Callable[[], str]] | None = None
    """Given the command's process, a function that says why it uses too much of the machine, or nothing."""
    spawn: Spawn = at_once


class Started(Protocol):
    """A command that runs. `pid` is its holder, below which all its processes are."""

    pid: int
    stdout: IO[bytes]

    def has_ended(self, seconds: float) -> bool:
        """Wait at most this time for the end; return whether it has come."""
        ...

    def wait(self) -> int:
        """Wait for the end; return the exit code, or the negative number of the signal that killed the holder."""
        ...


def run_line(line: CommandLine, watch: Watch, tally: Tally) -> CommandResult:
    """Start a command and follow it."""
    with _Child(line, watch.spawn) as child:
        return follow(child, line.mark, watch, tally, held=line.held)


def follow(process: Started, mark: str, watch: Watch, tally: Tally, *, held: bool = True) -> CommandResult:
    """Follow a command to its end, to the time limit, or until a callback raises.

    `held`: whether its holder ends all that the command leaves behind; if not, the mark finds it.
    """
    reader = _Reader(process.stdout, Output(watch.spec.log))
    try:
        end = _followed(process, reader, watch)
    except BaseException as error:
        # A cancel, Ctrl-C or a bug in a callback: in any case, nothing that was started may keep running.
        if not isinstance(error, Interrupted):
            # The whole run ends, and not only this command: the time for its other processes counts from now.
            tally.asked_at = time.monotonic()
        ended = end_command(process.pid, mark, grace=CANCEL_GRACE)
        tally.add(ended)
        tally.broken_off = _finish(process, reader, ended)
        raise
    if end != _ITS_OWN:
        ended = end_command(process.pid, mark, grace=TIMEOUT_GRACE)
    else:
        # Looking at every process of the machine takes as long as starting a sandbox.
        ended = Ended() if held and _holder_ended_by_itself(process.wait()) else end_marked(mark)
    result = _finish(process, reader, ended, end)
    _show(reader, watch)
    return result


class _Child:
    """A command that this process starts itself."""

    def __init__(self, line: CommandLine, spawn: Spawn) -> None:
        self._process = spawn(lambda: start(line))
        if self._process.stdout is None:
            raise ValueError("the command was started without a pipe")
        self.pid, self.stdout = self._process.pid, self._process.stdout
        self._stack = ExitStack()
        self._exit = self._stack.enter_context(exit_of(self._process))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        reap_adopted()

    def has_ended(self, seconds: float) -> bool:
        return self._exit(seconds) is not None

    def wait(self) -> int:
        return self._process.wait()


def _holder_ended_by_itself(code: int) -> bool:
    """Whether no KILL hit the holder, or perhaps hit it: then it has ended all processes of the command."""
    return 0 <= code != 128 + signal.SIGKILL


@dataclass(frozen=True)
class _End:
    """Why a command was ended, if it was."""

    timed_out: bool = False
    over: str = ""


_ITS_OWN = _End()


def _followed(process: Started, reader: _Reader, watch: Watch) -> _End:
    """Wait for the end, or until there is a reason to end the command."""
    usage, check, timeout = watch.usage(process.pid) if watch.usage else None, watch.spec.check, watch.spec.timeout
    deadline = time.monotonic() + timeout if timeout > 0 else float("inf")
    while True:
        # Wait for the process and not for the end of its output: a child that keeps that open does not block us.
        ended = process.has_ended(_TICK)
        if check:
            check()
        _show(reader, watch)
        if ended:
            return _ITS_OWN
        if time.monotonic() > deadline:
            return _End(timed_out=True)
        if usage and (over := usage()):
            return _End(over=over)


def _show(reader: _Reader, watch: Watch) -> None:
    on_output = watch.spec.on_output
    if on_output and (text := reader.output.news()) is not None:
        on_output(text)


def _finish(process: Started, reader: _Reader, ended: Ended, end: _End = _ITS_OWN) -> CommandResult:
    reader.stop(_DRAIN)
    code = process.wait()
    return CommandResult(
        return_code=None if end != _ITS_OWN else (128 - code if code < 0 else code),
        output=reader.output.text(),
        output_bytes=reader.output.total_bytes,
        timed_out=end.timed_out,
        over=end.over,
        found=ended.found,
        ended=ended.ended,
        survivors=ended.survivors,
        log=reader.log,
        no_log=reader.output.no_log,
    )


class _Reader:
    """Empties the pipe in a thread, even while processes are being ended: a full pipe would block them."""

    def __init__(self, stream: IO[bytes], output: Output) -> None:
        self.output = output
        self.log: Path | None = None
        self.at_end = threading.Event()
        self._stream = stream
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read, name="command output", daemon=True)
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Read the rest of the pipe, for at most `seconds`, and close."""
        self.at_end.wait(seconds)
        self._stopping.set()
        self._thread.join()
        self._stream.close()
        self.log = self.output.close()

    def _read(self) -> None:
        waiting = select.poll()
        waiting.register(self._stream, select.POLLIN | select.POLLHUP)
        while not self._stopping.is_set():
            if waiting.poll(100):
                chunk = os.read(self._stream.fileno(), _READ)
                if not chunk:
                    break
                self.output.feed(chunk)
        self.at_end.set()
