"""A server of live streams that plays a script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import httpx
from httpx_sse import ServerSentEvent

from control_plane.contract.client.following import open_stream


@contextmanager
def opened(content: bytes | Iterable[bytes]) -> Iterator[Iterator[ServerSentEvent]]:
    """What the client reads of a stream with this content."""

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=content)

    with (
        httpx.Client(transport=httpx.MockTransport(answer), base_url="http://fleet.example") as http,
        open_stream(http, "/events", 0, "default") as events,
    ):
        yield events


class Script:
    """The outcomes of successive connections: bytes to send, or an error to raise."""

    def __init__(self, *connections: bytes | Exception) -> None:
        self.connections = list(connections)
        self.asked: list[int] = []

    @contextmanager
    def connect(self, last: int) -> Iterator[Iterator[ServerSentEvent]]:
        self.asked.append(last)
        now = self.connections.pop(0)
        if isinstance(now, Exception):
            raise now
        with opened(now) as events:
            yield events
