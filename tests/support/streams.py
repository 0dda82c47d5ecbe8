"""A server of live streams that plays a script."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Script:
    """The outcomes of successive connections: bytes to send, or an error to raise."""

    def __init__(self, *connections: bytes | Exception) -> None:
        self.connections = list(connections)
        self.asked: list[int] = []

    @contextmanager
    def connect(self, last: int) -> Iterator[Iterator[bytes]]:
        self.asked.append(last)
        now = self.connections.pop(0)
        if isinstance(now, Exception):
            raise now
        yield iter([now])
