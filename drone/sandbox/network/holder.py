"""Holds the network namespace of a run: opens the proxy's port inside, hands it out, and waits for the run's end.

Started as a script (`python -I -S holder.py DESCRIPTOR PORT`), so it imports only modules that load fast.
"""

from __future__ import annotations

import array
import os
import socket
import sys


def main(descriptor: int, port: int) -> None:
    """Send the listening socket through the connected socket `descriptor`; return when its other end is closed."""
    ours = socket.socket(fileno=descriptor)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    rights = array.array("i", [listener.fileno()])
    ours.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    # The proxy alone accepts: a listener that stayed open here would keep the port alive after its end.
    listener.close()
    ours.recv(1)
    # Not through the end of the interpreter: the end of a run waits for this process.
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
