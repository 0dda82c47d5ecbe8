"""Starts the commands of a run inside its sandbox, and keeps hold of every process that they start.

There is one for each sandbox of a run (`keeper.py serve DESCRIPTOR`): in bubblewrap and in a container it is the first
process of the namespace, without a sandbox a child of the drone. Each command gets a holder, a fork of the keeper that
as a child subreaper stays the ancestor of `setsid`, `nohup` and double forks. When the command ends, its holder kills
all processes that the command left behind; a holder that was itself killed loses them to the keeper, which does so.

A command that communicates with the drone while it runs has a holder of its own (`keeper.py hold PARENT COMMAND…`).

It runs with the Python of a container, and its start is part of the first command, so it imports only modules of the
standard library that load fast.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import struct
import sys
import time
from types import FrameType

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_CANNOT_START = 127
_OUTPUT = 2
"""The last of the descriptors that each program has."""
_UNMOVED_BY = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
"""What a command may send to its holder without effect, as long as it is not SIGKILL."""
_RESET = (*_UNMOVED_BY, signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that a command does not ignore although its holder does, Python's own two among them: `yes | head`."""
_prctl = ctypes.CDLL(None).prctl


def serve(drone: socket.socket, requests: socket.socket | None = None) -> None:
    """Start a command for each socket that the drone hands over, and for each connection to `requests`.

    Returns when the drone closes its connection, with all processes of commands ended.
    """
    _protect()
    holders: set[int] = set()
    ended = _child_signals()
    waiting = select.poll()
    for each in (drone, requests, ended):
        if each is not None:
            waiting.register(each, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in waiting.poll()}
        if drone.fileno() in ready:
            client = _handed_over(drone)
            if client is None:
                break
            _fork_holder(client, holders, drone, requests)
        if requests is not None and requests.fileno() in ready:
            _fork_holder(requests.accept()[0], holders, drone, requests)
        if ended in ready:
            os.read(ended, 4096)
            _reap(holders)
    kill_descendants()


def hold(parent: int, command: list[str]) -> int:
    """Run one command for the process `parent`; return its exit code, 128 + signal if a signal killed it.

    It ends with its parent, and with all its processes.
    """
    signal.signal(signal.SIGTERM, _end_all)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    # The parent may have died before the line above took effect; then no signal will ever come.
    if os.getppid() != parent:
        return 128 + signal.SIGTERM
    try:
        pid = os.posix_spawnp(command[0], command, os.environ, setsigdef=_RESET)
    except OSError as error:
        os.write(2, f"{command[0]}: {os.strerror(error.errno or 0)}\n".encode())
        return _CANNOT_START
    status = 0
    ended = 0
    while ended != pid:
        ended, status = os.wait()
    kill_descendants()
    return _exit_code(status)


def kill_descendants() -> None:
    """Kill and reap until none is left: processes forked meanwhile become our children and are seen in a later round.

    The drone would adopt a remaining zombie. Without a sandbox, what runs as another user, such as by sudo, survives.
    """
    # Most commands leave nothing behind, and listing all processes of the machine takes longer than many commands do.
    while not _reaped_all():
        permitted = [_kill(pid) for pid in _descendants(os.getpid())]
        if permitted and not any(permitted):
            return
        time.sleep(0.002)


def _protect() -> None:
    # A command has the same account: it must not read this process, its holders or their sockets.
    _prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # `pkill python` is about the programs of a command.
    _prctl(_PR_SET_NAME, b"drone", 0, 0, 0)
    for number in _UNMOVED_BY:
        signal.signal(number, signal.SIG_IGN)
    # Commands inherit neither this process's sockets nor the file with this program.
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - see the module's imports
        if int(name) > _OUTPUT:
            _set_closed_on_exec(int(name))


def _set_closed_on_exec(descriptor: int) -> None:
    try:  # noqa: SIM105 - see the module's imports
        os.set_inheritable(descriptor, False)
    except OSError:
        pass  # that by which the directory was read


def _handed_over(drone: socket.socket) -> socket.socket | None:
    """The connection of a new command; None when the drone has closed its own, or died."""
    try:
        _, descriptors = _received(drone, 1, 1)
    except OSError:
        return None
    return socket.socket(fileno=descriptors[0]) if descriptors else None


def _received(connection: socket.socket, size: int, most: int) -> tuple[bytes, list[int]]:
    """Bytes and descriptors. These are open in no command: with one of a holder, it could tell the drone its end."""
    data, descriptors, _, _ = socket.recv_fds(connection, size, most)
    for each in descriptors:
        os.set_inheritable(each, False)
    return data, descriptors


def _fork_holder(client: socket.socket, holders: set[int], *others: socket.socket | None) -> None:
    """Without a holder, when no more processes are allowed, the client finds its connection closed."""
    with client:
        try:
            pid = os.fork()
        except OSError:
            return
        if pid == 0:
            for each in filter(None, others):
                each.close()
            _hold_and_exit(client)
        holders.add(pid)


def _reap(holders: set[int]) -> None:
    """Reap children, and kill those that lost their holder; what these had started comes to us at their end."""
    try:
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            holders.discard(pid)
    except ChildProcessError:
        return
    for pid in _children_by_parent().get(os.getpid(), []):
        if pid not in holders:
            _kill(pid)


def _hold_and_exit(client: socket.socket) -> None:
    """In a process of its own: run one command, with all its processes below this one."""
    status = _CANNOT_START
    try:
        os.setsid()
        _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        ended = _child_signals()
        client.sendall(b".")  # the kernel adds our process id, as the drone's machine knows it
        pid = _start(client)
        status = _CANNOT_START if pid is None else _wait_for(pid, client, ended)
        kill_descendants()
        client.sendall(bytes([status]))
    except (OSError, EOFError, ValueError):
        kill_descendants()  # the client ended, with its command
    finally:
        # Without a status the client reports a killed command. No frame above may run in this process.
        os._exit(0)


def _start(client: socket.socket) -> int | None:
    """Start the command that the client asks for. None if that is impossible; its output then says why."""
    head, streams = _received(client, 4, 3)
    (size,) = struct.unpack("!I", head)
    request = b""
    while len(request) < size:
        chunk = client.recv(size - len(request))
        if not chunk:
            raise EOFError("the client ended")
        request += chunk
    directory, count, *rest = request.split(b"\0")
    command, pairs = rest[: int(count)], rest[int(count) :]
    wanted = dict(pair.partition(b"=")[::2] for pair in pairs)
    # An image's own variables, such as PATH, without those that the engine took from its own settings.
    environment = {name: value for name, value in os.environb.items() if value} | wanted
    try:
        os.chdir(directory)
        return os.posix_spawnp(
            command[0],
            command,
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, stream, number) for number, stream in enumerate(streams)],
            setpgroup=0,  # `kill 0` is about the command's processes
            setsigdef=_RESET,
        )
    except OSError as error:
        os.write(streams[2], command[0] + f": {os.strerror(error.errno or 0)}\n".encode())
        return None
    finally:
        for stream in streams:
            os.close(stream)


def _wait_for(command: int, client: socket.socket, ended: int) -> int:
    """Until the command ends, or its client does."""
    waiting = select.poll()
    waiting.register(client, select.POLLIN)
    waiting.register(ended, select.POLLIN)
    while True:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == command:
                return _exit_code(status)
            if pid == 0:
                break
        ready = {descriptor for descriptor, _ in waiting.poll()}
        if client.fileno() in ready:
            return 128 + signal.SIGTERM
        os.read(ended, 4096)


def _child_signals() -> int:
    """A descriptor that is readable when a child has ended."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, _ignored)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _ignored(signum: int, frame: FrameType | None) -> None:
    del signum, frame


def _descendants(root: int) -> list[int]:
    """Every live process below `root`, according to the parents in /proc."""
    children = _children_by_parent()
    found: list[int] = []
    waiting = [root]
    while waiting:
        born = children.get(waiting.pop(), [])
        found += born
        waiting += born
    return found


def _children_by_parent() -> dict[int, list[int]]:
    """All live processes, by the parents in /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - see the module's imports
        if name.isdigit():
            state, parent = _state_and_parent(name)
            if state not in {"", "Z", "X"}:
                children.setdefault(parent, []).append(int(name))
    return children


def _state_and_parent(pid: str) -> tuple[str, int]:
    """The state is empty for a process that has ended meanwhile."""
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:  # noqa: PTH123 - see the module's imports
            # From the last bracket on: the name before these two fields may contain spaces and brackets.
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[1])


def _kill(pid: int) -> bool:
    """Returns False for a process of another user, which may not be killed."""
    try:
        os.kill(pid, signal.SIGKILL)
    except PermissionError:
        return False
    except OSError:
        pass  # it has ended
    return True


def _reaped_all() -> bool:
    """Reap ended children; return whether no child is left, and so no descendant."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _exit_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _end_all(signum: int, frame: FrameType | None) -> None:
    del frame
    kill_descendants()
    os._exit(128 + signum)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        with socket.socket(fileno=int(sys.argv[2])) as connection:
            connection.sendall(b".")
            serve(connection)
        os._exit(0)
    os._exit(hold(int(sys.argv[2]), sys.argv[3:]))
