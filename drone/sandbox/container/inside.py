"""The first process of a container: a keeper of commands, which first agrees with the drone on two sockets.

Runs with the image's Python (`python3 -I -S DIRECTORY HELLO PORT`), so it uses only the standard library. It is handed
the socket on which the drone's clients ask for commands; that socket has no path in the container. When the drone ends,
however it ends, its connection closes and the container with it.
"""

from __future__ import annotations

import shutil
import socket
import sys

import keeper  # type: ignore[import-not-found, unused-ignore]  # beside this file in the container


def main(hello: str, port: int) -> None:
    """Serve until the drone closes its connection. `port` of the network's proxy, 0 for none."""
    drone = socket.socket(socket.AF_UNIX)
    drone.connect(hello)
    listeners = [socket.create_server(("127.0.0.1", port), backlog=128)] if port else []
    shell = b"bash" if shutil.which("bash") else b"sh"
    socket.send_fds(drone, [shell], [each.fileno() for each in listeners])
    for each in listeners:
        each.close()
    _, descriptors, _, _ = socket.recv_fds(drone, 1, 1)
    keeper.serve(drone, socket.socket(fileno=descriptors[0]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
