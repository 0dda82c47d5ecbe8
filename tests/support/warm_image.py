"""The warm process: it has loaded the modules of the project's programs, and starts copies that become one of them.

It has one thread. Each copy is a clone whose parent is the warm process's own parent (CLONE_PARENT). See
`tests.support.warm_processes`.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import multiprocessing.util
import os
import pickle
import pkgutil
import platform
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from tests.support.warm_requests import FORK_SERVER, OF_TESTS, Image, Request, program

_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE_PARENT = 0x8000
_ABOVE = 400
"""File descriptors are moved above this number before they get their final numbers."""
_MOST_FILES = 60
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_COMMANDS = ("control_plane.cli", "drone.cli")
_FOR_COMMANDS = ("control_plane.contract.client", "rich.console", "rich.table", "httpx")
_SERVER = (
    "control_plane.server.serve",
    "control_plane.web.app",
    "control_plane.server.embedded.up",
    "uvicorn.protocols.http.auto",
)
_DRONE = ("drone.worker.__main__", "drone.runs.process", "drone.model.preload", "git", "celery.bin.worker")
_SERVERS = OF_TESTS | {"up", "serve", "mcp"}
_RUNS = frozenset({"start", "run", "replay"})
_MAY_START_MORE = frozenset({"up", "start", "--home", "tests.support.demo_program"})


def serve(connection: socket.socket) -> None:
    """Start a copy for each request, until the other end is closed."""
    # Modules are no garbage, and searching them for garbage takes a third of their loading time.
    gc.disable()
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)
    while True:
        message, files, _, _ = socket.recv_fds(connection, 16, _MOST_FILES)
        if not message:
            os._exit(0)
        with os.fdopen(files[0], "rb") as asked:
            request: Request = pickle.loads(asked.read())
        _load_for(request.arguments)
        pid = _clone()
        if pid == 0:
            # Another file may get this descriptor number, so the socket object must not own it.
            connection.detach()
            os._exit(_become(request, files[1:]))
        for each in files[1:]:
            os.close(each)
        connection.sendall(str(pid).encode())


def _clone() -> int:
    """Like `os.fork`, but the new process is a sibling of this one."""
    system = ctypes.PyDLL(None)
    system.syscall.restype = ctypes.c_long
    zero = ctypes.c_long(0)
    flags = ctypes.c_long(_CLONE_PARENT | signal.SIGCHLD)
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(system.syscall(ctypes.c_long(_CLONE[platform.machine()]), flags, zero, zero, zero, zero))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError("the system made no copy")
    return pid


def _become(request: Request, files: Sequence[int]) -> int:
    """Run the program as the requested process; return its exit code."""
    _take_files(request.descriptors, files)
    if request.new_session:
        os.setsid()
    gc.enable()
    os.chdir(request.directory)
    _take_environment(request)
    _set_signals()
    if request.before is not None:
        request.before()
    if _MAY_START_MORE & set(request.arguments):
        _keep_image()
    return _run(request.arguments)


def _take_files(numbers: Sequence[int], files: Sequence[int]) -> None:
    aside = [fcntl.fcntl(each, fcntl.F_DUPFD, _ABOVE) for each in files]
    os.closerange(0, _ABOVE)
    for number, each in zip(numbers, aside, strict=True):
        os.dup2(each, number)
        os.close(each)
    for stream in (sys.stdout, sys.stderr):
        cast("Any", stream).reconfigure(line_buffering=stream.isatty())


def _take_environment(request: Request) -> None:
    os.environ.clear()
    os.environ.update(request.environment)
    # Reset values that were derived from the image's environment while loading.
    time.tzset()
    tempfile.tempdir = None
    # The blocks of arguments and variables that other processes read under /proc.
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    arguments, arguments_end, variables, variables_end = map(int, stat[45:49])
    _write(arguments, arguments_end - arguments, request.arguments)
    _write(variables, variables_end - variables, [f"{name}={value}" for name, value in request.environment.items()])


def _write(address: int, size: int, words: Sequence[str]) -> None:
    text = b"".join(os.fsencode(word) + b"\0" for word in words)[: size - 1]
    ctypes.memmove(address, text.ljust(size, b"\0"), size)


def _set_signals() -> None:
    for number in _STOPS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _keep_image() -> None:
    """Let this process also start its own children that are programs of the project as copies."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        _let_go_of_files(theirs.fileno())
        _name_as_helper()
        serve(theirs)
    theirs.close()
    image = Image(ours)
    module = cast("Any", subprocess)
    module._fork_exec = partial(image.fork_exec, module._fork_exec)
    multiprocessing.util.spawnv_passfds = partial(image.spawn, multiprocessing.util.spawnv_passfds)


def _let_go_of_files(spared: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.closerange(3, spared)
    os.closerange(spared + 1, _ABOVE)


def _name_as_helper() -> None:
    # Named like the standard library's helpers, which a drone spares when it looks for processes left by its runs.
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    _write(int(stat[45]), int(stat[46]) - int(stat[45]), [sys.executable, "-c", "from multiprocessing. # warm image"])


def _run(arguments: Sequence[str]) -> int:
    how, what, rest = program(arguments)
    try:
        if how == "-c":
            sys.argv = ["-c", *rest]
            main = sys.modules["__main__"] = ModuleType("__main__")
            exec(what, main.__dict__)
        else:
            sys.argv = ["", *rest]
            with warnings.catch_warnings():
                # The warning is that the module was imported before.
                warnings.filterwarnings("ignore", category=RuntimeWarning, module="runpy")
                runpy.run_module(what, run_name="__main__", alter_sys=True)
        code: object = 0
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - what a program does not catch ends it with a traceback
        traceback.print_exc()
        code = 1
    return _end(code)


def _end(code: object) -> int:
    """End as the interpreter does, except that memory is not freed."""
    with contextlib.suppress(BaseException):
        cast("Any", threading)._shutdown()
        cast("Any", atexit)._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if isinstance(code, str):
        os.write(2, f"{code}\n".encode())
    return code if isinstance(code, int) else int(code is not None)


def _load_for(arguments: Sequence[str]) -> None:
    _load_commands()
    words = set(arguments)
    if words & _SERVERS:
        _load(_SERVER)
    if words & _RUNS or "up" in words or "drone.worker" in words or any(FORK_SERVER in word for word in words):
        _load(_DRONE)


@cache
def _load_commands() -> None:
    for package in _COMMANDS:
        for found in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(found.name)
    _load(_FOR_COMMANDS)


@cache
def _load(names: tuple[str, ...]) -> None:
    for name in names:
        importlib.import_module(name)
    # Memory that a copy's garbage collection does not visit is not duplicated.
    gc.freeze()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
