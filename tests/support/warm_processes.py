"""Processes of the project that start as copies of a warm one: most of a short process's time is loading modules.

Each has its own process id, parent, arguments, environment, files, session and directory, as if `python -m` had started
it. Programs of the project that such a process starts, for example a drone its worker, also start as copies. Only the
start of Python is shared, so a test of that start uses `subprocess` instead.

An image (`tests.support.warm_image`), a child of the requesting process, makes the copies. They are siblings of the
image, so that the requesting process is their parent. Where the system cannot do that, processes start cold.
"""

from __future__ import annotations

import atexit
import os
import platform
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, cast

from tests.support.left_behind import lasts
from tests.support.warm_requests import Image

FLEET = (sys.executable, "-m", "control_plane.cli.main")
DRONE = (sys.executable, "-m", "drone.cli.main")
POSSIBLE = sys.platform == "linux" and platform.machine() in {"x86_64", "aarch64"}
ROOM = 16 * 1024
"""Bytes that the image reserves for a copy's arguments, and as many for its environment."""


def popen(command: Sequence[str | os.PathLike[str]], **options: Any) -> subprocess.Popen[bytes]:
    """`subprocess.Popen`, warm if `command` is a program of the project."""
    if not POSSIBLE:
        return subprocess.Popen(command, **options)
    with _taken_over(_image()):
        return subprocess.Popen(command, **options)


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    text: str | None = None,
    *,
    cwd: Path | None = None,
    seconds: float = 120.0,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with any exit code."""
    with tempfile.TemporaryFile("w+") as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        stdin.write(text or "")
        stdin.seek(0)
        with popen(command, env=dict(environment), stdin=stdin, stdout=out, stderr=errors, cwd=cwd) as process:
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(list(command), code, out.read().decode(), errors.read().decode())


@contextmanager
def _taken_over(image: Image) -> Iterator[None]:
    module = cast("Any", subprocess)
    with _patching:
        cold = module._fork_exec
        module._fork_exec = lambda *call: image.fork_exec(cold, *call)
        try:
            yield
        finally:
            module._fork_exec = cold


_patching = threading.Lock()


@cache
def _image() -> Image:
    """The image of this process, which ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm_image", str(theirs.fileno()), " " * ROOM],
            env={**os.environ, "ROOM_FOR_VARIABLES": " " * ROOM},
            stdin=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],
            pass_fds=[theirs.fileno()],
        )
    lasts(process.pid)

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return Image(ours)
