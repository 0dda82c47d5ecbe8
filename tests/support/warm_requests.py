"""Requests to a warm process: shared by the requesting process and the image that answers."""

from __future__ import annotations

import os
import pickle
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OF_TESTS = frozenset(
    {"tests.support.sealed", "tests.support.mcp_program", "tests.support.serving", "tests.support.demo_program"}
)
"""Programs that only tests start; they use the modules of a server."""
PROGRAMS = OF_TESTS | {"control_plane.cli.main", "drone.cli.main", "drone.worker"}
FORK_SERVER = "from multiprocessing.forkserver import main"
_OTHER_PYTHON = ("PYTHONPATH", "PYTHONSAFEPATH", "LD_PRELOAD")
"""Variables that have no effect on a Python that is already running."""


@dataclass(frozen=True)
class Request:
    """The process that a copy becomes. Its files are sent along with the request."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    descriptors: tuple[int, ...]
    """The numbers of the files in the copy."""
    new_session: bool
    before: Callable[[], None] | None
    """Popen's `preexec_fn`."""


class Image:
    """The requesting end of the warm process: returns the ids of new children of this process."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def copy(self, request: Request, files: Sequence[int]) -> int:
        """Start a process and return its id. Raises OSError if the image is gone."""
        with self._lock, closing(os.fdopen(os.memfd_create("request"), "wb")) as asked:
            asked.write(pickle.dumps(request))
            asked.flush()
            asked.seek(0)
            socket.send_fds(self._connection, [b"!"], [asked.fileno(), *files])
            answer = self._connection.recv(32)
        if not answer:
            raise ConnectionResetError("the warm process is gone")
        return int(answer)

    def fork_exec(self, cold: Callable[..., int], *call: Any) -> int:
        """Replaces the function with which `subprocess` starts every process."""
        arguments, _, _, kept, directory, environment, stdin, _, _, stdout, _, stderr, _, errors, _, session, *_ = call
        request = Request(
            arguments=tuple(map(os.fsdecode, arguments)),
            environment=dict(os.environ) if environment is None else _variables(environment),
            directory=str(Path.cwd()) if directory is None else os.fsdecode(directory),
            descriptors=(0, 1, 2, *(number for number in kept if number != errors)),
            new_session=bool(session),
            before=call[21],
        )
        if not _known(request):
            return cold(*call)
        streams = [own if given == -1 else given for own, given in enumerate((stdin, stdout, stderr))]
        try:
            return self.copy(request, [*streams, *request.descriptors[3:]])
        except OSError:
            return cold(*call)

    def spawn(self, cold: Callable[..., int], path: bytes, arguments: Sequence[Any], kept: Sequence[int]) -> int:
        """Replaces the function with which `multiprocessing` starts its servers."""
        words = tuple(map(os.fsdecode, arguments))
        request = Request(words, dict(os.environ), str(Path.cwd()), (0, 1, 2, *kept), new_session=False, before=None)
        if not _known(request):
            return cold(path, arguments, kept)
        try:
            return self.copy(request, request.descriptors)
        except OSError:
            return cold(path, arguments, kept)


def program(arguments: Sequence[str]) -> tuple[str, str, Sequence[str]]:
    """The option by which Python finds the program (`-m`, `-c`), the program, and its arguments."""
    words = list(arguments[1:])
    while words[:1] in (["-B"], ["-P"]):
        del words[0]
    return (words[0], words[1], words[2:]) if len(words) > 1 else ("", "", ())


def _known(request: Request) -> bool:
    how, what, _ = program(request.arguments)
    if request.arguments[0] != sys.executable:
        return False
    if any(request.environment.get(name) != os.environ.get(name) for name in _OTHER_PYTHON):
        return False
    return (how == "-m" and what in PROGRAMS) or (how == "-c" and what.startswith(FORK_SERVER))


def _variables(environment: Sequence[bytes]) -> dict[str, str]:
    pairs = (os.fsdecode(pair).partition("=") for pair in environment)
    return {name: value for name, _, value in pairs}
