"""Runs git: bounded in time, ended on cancel with all its children, never prompting, never waiting for a terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TypeVar

from drone.processes.waiting import exit_of
from shared.errors import FleetError, FleetFault
from shared.redaction import shortened

A = TypeVar("A")
B = TypeVar("B")
LOCAL_SECONDS = 600.0
_TICK = 0.05
_GRACE = 2.0
_MESSAGE = 64 * 1024


def git_is_missing(kind: type[FleetError]) -> FleetError:
    return kind("git is not installed on the drone's machine", code="E-GIT-MISSING", next="sudo apt install git")


class GitFailed(Exception):
    """git ended with an error, or did not end in time. `message` is its output."""

    def __init__(self, command: str, code: int | None, message: str) -> None:
        super().__init__(f"git {command}: {shortened(message.strip(), 500)}")
        self.command = command
        self.code = code
        """None: it was ended because the time was up."""
        self.message = message


def _go_on() -> None:
    """The check of work that must not be interrupted."""


@dataclass(frozen=True)
class Git:
    """git with a repository, an environment and a check to call while it runs."""

    environment: Mapping[str, str]
    directory: Path | None = None
    """GIT_DIR. Never discovered: git must not find a surrounding repository."""
    work_tree: Path | None = None
    check: Callable[[], None] = field(default=_go_on)
    """Called many times a second; an exception from it ends git and propagates unchanged."""
    longest: float = LOCAL_SECONDS * 10
    """No command may take more seconds than this."""

    def at(self, directory: Path, work_tree: Path | None = None) -> Git:
        return replace(self, directory=directory, work_tree=work_tree)

    def checking(self, check: Callable[[], None]) -> Git:
        return replace(self, check=check)

    def uninterrupted(self) -> Git:
        return replace(self, check=_go_on)

    def bounded(self, seconds: float) -> Git:
        return replace(self, longest=seconds)

    def adding(self, environment: Mapping[str, str]) -> Git:
        return replace(self, environment={**self.environment, **environment})

    def text(self, *arguments: str, stdin: bytes | IO[bytes] = b"", seconds: float = LOCAL_SECONDS) -> str:
        """Run and return stdout as text, without surrounding whitespace."""
        return self.raw(*arguments, stdin=stdin, seconds=seconds).decode(errors="replace").strip()

    def raw(
        self,
        *arguments: str,
        stdin: bytes | IO[bytes] = b"",
        seconds: float = LOCAL_SECONDS,
        codes: Collection[int] = (0,),
    ) -> bytes:
        """Run and return stdout. A file for `stdin` is read from its current position, and must have no buffer.

        Raises GitFailed for an exit code that is not in `codes`, and when the time is up.
        """
        return self.with_warnings(*arguments, stdin=stdin, seconds=seconds, codes=codes)[0]

    def with_warnings(
        self,
        *arguments: str,
        stdin: bytes | IO[bytes] = b"",
        seconds: float = LOCAL_SECONDS,
        codes: Collection[int] = (0,),
    ) -> tuple[bytes, bytes]:
        """Like `raw`, and return also what git wrote to stderr."""
        # Files and not pipes: a master connection that ssh leaves behind would keep a pipe open for minutes.
        with tempfile.TemporaryFile() as into, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            if isinstance(stdin, bytes):
                into.write(stdin)
                into.seek(0)
            code = self._run(arguments, (into if isinstance(stdin, bytes) else stdin, out, err), seconds)
            err.seek(0)
            out.seek(0)
            if code not in codes:
                # `push --porcelain` gives its reasons on stdout.
                message = (err.read(_MESSAGE) + b"\n" + out.read(_MESSAGE)).decode(errors="replace").strip()
                raise GitFailed(arguments[0], code, message or ("took too long" if code is None else f"exit {code}"))
            return out.read(), err.read()

    def succeeds(self, *arguments: str) -> bool:
        """Whether git ends with exit code 0. Raises GitFailed when the time is up."""
        try:
            self.raw(*arguments)
        except GitFailed as failure:
            if failure.code is None:
                raise
            return False
        return True

    def has(self, commit: str) -> bool:
        """Whether this commit is here, with its tree."""
        return self.succeeds("cat-file", "-e", f"{commit}^{{commit}}^{{tree}}")

    def is_ancestor(self, older: str, newer: str) -> bool:
        return self.succeeds("merge-base", "--is-ancestor", older, newer)

    def conversation(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a git process that answers requests until it is ended; its stderr is discarded."""
        return self._start(arguments, (subprocess.PIPE, subprocess.PIPE, subprocess.DEVNULL))

    def _run(self, arguments: tuple[str, ...], streams: tuple[IO[bytes], ...], seconds: float) -> int | None:
        process = self._start(arguments, streams)
        deadline = time.monotonic() + min(seconds, self.longest)
        try:
            with exit_of(process) as wait:
                while time.monotonic() < deadline:
                    self.check()
                    if (code := wait(_TICK)) is not None:
                        return code
            return None
        finally:
            # Also if `check` raised or the time is up. A git process that has ended has no group left to signal.
            if process.returncode is None:
                _end(process)

    def _start(self, arguments: tuple[str, ...], streams: tuple[IO[bytes] | int, ...]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                ["git", *arguments],
                cwd=self.work_tree or "/",
                env=self._whole_environment(),
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                start_new_session=True,
            )
        except FileNotFoundError as error:
            if error.filename != "git":
                raise
            raise git_is_missing(FleetFault) from error

    def _whole_environment(self) -> dict[str, str]:
        whole = dict(self.environment)
        if self.directory:
            whole["GIT_DIR"] = str(self.directory)
        if self.work_tree:
            whole["GIT_WORK_TREE"] = str(self.work_tree)
        return whole


def at_once(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Do both at the same time and return their results: most of a git command's milliseconds are its start.

    Raises the error of either, after both have ended.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="git") as pool:
        other = pool.submit(second)
        result = first()
    return result, other.result()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End git and its helpers (ssh, remote-https), which share its session: TERM lets it remove its lock files."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.wait(_GRACE)
            break
        except subprocess.TimeoutExpired:
            continue
