"""Runs one prepared command line: reads its output, watches for timeout and cancel, and leaves nothing running."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from drone.processes.ending import end_command, end_marked
from drone.processes.reaping import reap_adopted
from drone.processes.receipt import Ended
from drone.processes.waiting import exit_of
from drone.sandbox.output import Output
from drone.sandbox.protocol import CommandLine, CommandResult, CommandSpec, Tally
from shared.errors import Interrupted

Process = subprocess.Popen[bytes]
CANCEL_GRACE = 10.0
TIMEOUT_GRACE = 2.0
_TICK = 0.05
_DRAIN = 0.5
_READ = 64 * 1024


@dataclass(frozen=True)
class Watch:
    """What to watch while a command runs."""

    spec: CommandSpec
    usage: Callable[[int], Callable[[], str]] | None = None
    """Given the command's process, a function that says why it uses too much of the machine, or nothing."""
    spawn: Callable[[Callable[[], Process]], Process] = field(default=lambda start: start())
    """Calls the function that starts the process."""


def run_line(line: CommandLine, watch: Watch, tally: Tally) -> CommandResult:
    """Run to the end, to the time limit, or until a callback raises."""
    output = Output(watch.spec.log)
    process = watch.spawn(partial(_start, line))
    reader = _Reader(process.stdout, output)
    try:
        end = _follow(process, reader, watch)
    except BaseException as error:
        # A cancel, Ctrl-C or a bug in a callback: in any case, nothing that was started may keep running.
        if not isinstance(error, Interrupted):
            # The whole run ends, and not only this command: the time for its other processes counts from now.
            tally.asked_at = time.monotonic()
        ended = end_command(process.pid, line.mark, grace=CANCEL_GRACE)
        tally.add(ended)
        tally.broken_off = _finish(process, reader, ended)
        raise
    if end != _ITS_OWN:
        ended = end_command(process.pid, line.mark, grace=TIMEOUT_GRACE)
    else:
        # Looking at every process of the machine takes as long as starting a sandbox.
        ended = Ended() if line.held and _holder_ended_by_itself(process.wait()) else end_marked(line.mark)
    result = _finish(process, reader, ended, end)
    _show(reader, watch)
    return result


def _start(line: CommandLine) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(line.arguments),
        cwd=line.directory,
        env=dict(line.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _holder_ended_by_itself(code: int) -> bool:
    """Whether no KILL hit the holder, or perhaps hit it: then it has ended all processes of the command."""
    return 0 <= code != 128 + signal.SIGKILL


@dataclass(frozen=True)
class _End:
    """Why a command was ended, if it was."""

    timed_out: bool = False
    over: str = ""


_ITS_OWN = _End()


def _follow(process: subprocess.Popen[bytes], reader: _Reader, watch: Watch) -> _End:
    """Wait for the end, or until there is a reason to end the command."""
    usage, check, timeout = watch.usage(process.pid) if watch.usage else None, watch.spec.check, watch.spec.timeout
    deadline = time.monotonic() + timeout if timeout > 0 else float("inf")
    with exit_of(process) as wait:
        while True:
            # Wait for the process and not for the end of its output: a child that keeps that open does not block us.
            ended = wait(_TICK) is not None
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


def _finish(process: subprocess.Popen[bytes], reader: _Reader, ended: Ended, end: _End = _ITS_OWN) -> CommandResult:
    reader.stop(_DRAIN)
    code = process.wait()
    reap_adopted()
    by_force = end != _ITS_OWN or (ended.found > 0 and code < 0)
    return CommandResult(
        return_code=None if by_force else (128 - code if code < 0 else code),
        output=reader.output.text(),
        output_bytes=reader.output.total_bytes,
        timed_out=end.timed_out,
        over=end.over,
        found=ended.found,
        ended=ended.ended,
        survivors=ended.survivors,
        log=reader.log,
    )


class _Reader:
    """Empties the pipe in a thread, even while processes are being ended: a full pipe would block them."""

    def __init__(self, stream: IO[bytes] | None, output: Output) -> None:
        if stream is None:
            raise ValueError("the command was started without a pipe")
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
