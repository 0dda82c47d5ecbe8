"""Stands for a container's MCP server on the drone's side: the same input, output, environment and exit code.

Started as a script (`python -I -S client.py SOCKET DIRECTORY COMMAND…`) for each server, so it imports only modules
that load fast. Its name says which process holds the command (`drone.processes.tree.holder_inside`).
"""

from __future__ import annotations

import _socket  # noqa: PLC2701 - `socket` takes as long to load as everything else together
import os
import sys

KILLED = 128 + 9
_INT = 4
"""Bytes of a C int."""


def main(path: str, directory: str, command: list[str]) -> int:
    """Run the command in the container and return its exit code; that of a killed one if its holder was killed."""
    holder = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    holder.setsockopt(_socket.SOL_SOCKET, _socket.SO_PASSCRED, 1)
    try:
        holder.connect(path)
        _, ancillary, _, _ = holder.recvmsg(1, _socket.CMSG_SPACE(12))
        if not ancillary:
            return KILLED
        # As the kernel says, not as the container says. `struct` and `array` would be libraries to load.
        pid = int.from_bytes(ancillary[0][2][:_INT], sys.byteorder)
        with open("/proc/self/comm", "w") as file:  # noqa: PTH123 - pathlib doubles the start-up time
            file.write(f"holder={pid}")
        _ask(holder, directory, command)
        status = holder.recv(1)
    except OSError:
        return KILLED
    return status[0] if status else KILLED


def _ask(holder: _socket.socket, directory: str, command: list[str]) -> None:
    pairs = [f"{name}={value}" for name, value in os.environ.items()]
    fields = [directory, str(len(command)), *command, *pairs]
    request = b"\0".join(map(os.fsencode, fields))
    streams = b"".join(stream.to_bytes(_INT, sys.byteorder) for stream in (0, 1, 2))
    holder.sendmsg([len(request).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    holder.sendall(request)


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
