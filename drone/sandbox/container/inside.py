"""The first process of a container: starts its commands, and kills whatever one of them leaves behind.

Runs with the image's Python (`python3 -I -S DIRECTORY HELLO PORT`), so it uses only the standard library. It is handed
the socket on which the drone's clients ask for commands; that socket has no path in the container. When the drone ends,
however it ends, its connection closes and the container with it.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import socket
import struct
import sys
from types import FrameType

import keeper  # type: ignore[import-not-found, unused-ignore]  # beside this file in the container

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_CANNOT_START = 127


def main(hello: str, port: int) -> None:
    """Serve until the drone closes its connection. `port` of the network's proxy, 0 for none."""
    # A command has the same account: it must not read this process, its holders or their sockets.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    drone = socket.socket(socket.AF_UNIX)
    drone.connect(hello)
    listeners = [socket.create_server(("127.0.0.1", port), backlog=128)] if port else []
    shell = b"bash" if shutil.which("bash") else b"sh"
    socket.send_fds(drone, [shell], [each.fileno() for each in listeners])
    for each in listeners:
        each.close()
    _, descriptors, _, _ = socket.recv_fds(drone, 1, 1)
    _serve(drone, socket.socket(fileno=descriptors[0]))
    keeper.kill_descendants()


def _serve(drone: socket.socket, requests: socket.socket) -> None:
    holders: set[int] = set()
    ended = _child_signals()
    waiting = select.poll()
    for each in (drone.fileno(), requests.fileno(), ended):
        waiting.register(each, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in waiting.poll()}
        if drone.fileno() in ready:
            return
        if requests.fileno() in ready:
            client, _ = requests.accept()
            pid = os.fork()
            if pid == 0:
                drone.close()
                requests.close()
                _hold_and_exit(client)
            holders.add(pid)
            client.close()
        if ended in ready:
            os.read(ended, 4096)
            _reap(holders)


def _reap(holders: set[int]) -> None:
    """Reap children, and kill those that lost their holder; what these had started comes to us at their end."""
    try:
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            holders.discard(pid)
    except ChildProcessError:
        return
    for pid in keeper.children_by_parent().get(os.getpid(), []):
        if pid not in holders:
            keeper.kill(pid)


def _hold_and_exit(client: socket.socket) -> None:
    """In a process of its own: run one command, with all its processes below this one."""
    status = _CANNOT_START
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        ended = _child_signals()
        client.sendall(b".")  # the kernel adds our process id, as the drone's machine knows it
        pid = _start(client)
        status = _CANNOT_START if pid is None else _wait_for(pid, client, ended)
        keeper.kill_descendants()
        client.sendall(bytes([status]))
    except (OSError, EOFError, ValueError):
        pass  # the client ended, with its command
    finally:
        # Without a status the client reports a killed command. No frame above may run in this process.
        os._exit(0)


def _start(client: socket.socket) -> int | None:
    """Start the command that the client asks for. None if that is impossible; its output then says why."""
    head, streams, _, _ = socket.recv_fds(client, 4, 3)
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
    # The image's own variables, such as PATH, without those that the engine took from its own settings.
    environment = {name: value for name, value in os.environb.items() if value} | wanted
    try:
        os.chdir(directory)
        return os.posix_spawnp(
            command[0],
            command,
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, stream, number) for number, stream in enumerate(streams)],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
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
                return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
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


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
