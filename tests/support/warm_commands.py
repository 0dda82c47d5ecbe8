"""`fleet` and `drone` commands in processes that are forked from a warm one: most of a command's time is its imports.

Each command has a process of its own, with its own arguments, environment, directory and files, as if it was started
by a shell; only Python's start and the loading of modules are shared.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

from tests.support import wait_until
from tests.support.left_behind import lasts

_PROGRAMS = {"control_plane.cli.main": "control_plane.cli", "drone.cli.main": "drone.cli"}
_MORE = ("control_plane.client", "rich.console", "rich.table", "httpx")


def run(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python -m module arguments` to its end."""
    request = {"module": module, "arguments": arguments, "environment": dict(environment), "cwd": str(Path.cwd())}
    with (
        tempfile.TemporaryFile() as asked,
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
        socket.socket(socket.AF_UNIX) as connection,
    ):
        _fill(asked, json.dumps(request))
        _fill(stdin, text or "")
        connection.connect(_server())
        connection.settimeout(120)
        socket.send_fds(connection, [b"!"], [file.fileno() for file in (asked, stdin, stdout, stderr)])
        code = int(connection.recv(16))
        return subprocess.CompletedProcess([module, *arguments], code, _read(stdout), _read(stderr))


def _fill(file: IO[bytes], text: str) -> None:
    file.write(text.encode())
    file.flush()
    file.seek(0)


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@cache
def _server() -> str:
    """The address of the warm process, which ends with this one."""
    address = Path(tempfile.mkdtemp(prefix="warm-")) / "socket"
    command = [sys.executable, "-m", "tests.support.warm_commands", str(address)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=Path(__file__).parents[2])
    lasts(process.pid)

    def end() -> None:
        process.communicate()
        address.unlink()
        address.parent.rmdir()

    atexit.register(end)
    wait_until(address.exists, seconds=60)
    return str(address)


def _serve(address: str) -> None:
    """Fork a process for each request, until stdin ends."""
    for package in _PROGRAMS.values():
        for found in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(found.name)
    for name in _MORE:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as server:
        draft = f"{address}.new"
        server.bind(draft)
        server.listen(64)
        Path(draft).rename(address)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while 0 not in select.select([0, server], [], [])[0]:
            connection, _ = server.accept()
            if os.fork() == 0:
                server.close()
                _answer(connection)
                os._exit(0)
            connection.close()


def _answer(connection: socket.socket) -> None:
    """Run what is asked for in one more process, and say how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, files, _, _ = socket.recv_fds(connection, 1, 4)
    process = os.fork()
    if process == 0:
        os._exit(_run(*files))
    _, status = os.waitpid(process, 0)
    connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _run(asked: int, *streams: int) -> int:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    with os.fdopen(asked) as file:
        request = json.load(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    sys.argv = [sys.modules[request["module"]].__file__ or "", *request["arguments"]]
    try:
        code = sys.modules[request["module"]].main()
    except SystemExit as end:
        code = end.code
    except Exception:  # noqa: BLE001 - what a program does not catch ends it with a traceback
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    _serve(sys.argv[1])
