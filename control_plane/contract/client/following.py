"""Following an order over server-sent events, across lost connections and restarts of the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from control_plane.contract.client.refusals import CUT_OFF, not_a_fleet, refusal, unreachable
from shared.backoff import delay
from shared.clock import Clock
from shared.errors import FleetError, FleetFault, TooOften, Unreachable

if TYPE_CHECKING:
    import httpx
    from httpx_sse import ServerSentEvent

Connect = Callable[[int], AbstractContextManager["Iterator[ServerSentEvent]"]]
"""Open the stream after step number N and yield its events; raises the errors of `FleetClient`."""
Following = Iterator[tuple[str, dict[str, Any]]]

SILENCE_S = 25.0
"""The server sends a heartbeat every 10 s; a stream that is silent for longer is dead, even if TCP reports no error."""
MAX_WAIT_S = 10.0


@dataclass(frozen=True)
class Patience:
    """How long to continue without a server."""

    from_the_start: bool = False
    """The first connection may also fail."""
    give_up_after_s: float | None = None
    """None: never."""


def follow(connect: Connect, after: int, patience: Patience, clock: Clock) -> Following:
    """Yield events until `end`; reconnects after the last step seen whenever the stream breaks.

    Raises the server's refusals, and Unreachable when `patience` is exhausted.
    """
    return _Follower(connect, after, patience, clock).events()


class _Follower:
    """The state between two connections: the last step seen, and the time of the last message."""

    def __init__(self, connect: Connect, after: int, patience: Patience, clock: Clock) -> None:
        self._connect = connect
        self._last = after
        self._patience = patience
        self._clock = clock
        self._reached = patience.from_the_start
        self._failures = 0
        self._heard = clock.monotonic()

    def events(self) -> Following:
        while True:
            try:
                for event, data in self._one_connection():
                    yield event, data
                    if event == "end":
                        return
                trouble: FleetError = Unreachable("the stream ended before the order did", code=CUT_OFF)
            except (FleetFault, TooOften) as error:
                trouble = error
            wait_s = self._count_failure(trouble)
            yield "connection", {"state": "lost", "why": trouble.what, "retry_in_s": round(wait_s, 2)}
            self._clock.sleep(wait_s)

    def _one_connection(self) -> Following:
        with self._connect(self._last) as stream:
            if self._failures:
                yield "connection", {"state": "back"}
            self._reached, self._heard = True, self._clock.monotonic()
            for message in stream:
                self._failures, self._heard = 0, self._clock.monotonic()
                data = _decoded(message)
                if message.event != "step" or self._is_new(data):
                    yield message.event, data

    def _is_new(self, step: dict[str, Any]) -> bool:
        # A step that was sent twice, for any reason, is yielded once.
        if step["seq"] <= self._last:
            return False
        self._last = step["seq"]
        return True

    def _count_failure(self, trouble: FleetError) -> float:
        """Seconds until the next attempt; raises `trouble` if there is none."""
        if not self._reached:
            raise trouble
        self._failures += 1
        limit = self._patience.give_up_after_s
        if limit is not None and self._clock.monotonic() - self._heard > limit:
            raise trouble
        return min(delay(min(self._failures, 8), base=0.25), MAX_WAIT_S)


def _decoded(message: ServerSentEvent) -> dict[str, Any]:
    try:
        data = json.loads(message.data)
    except ValueError as error:
        raise FleetFault("the server sent an event that is not JSON", code="E-SERVER-STRANGE") from error
    return data if isinstance(data, dict) else {"value": data}


@contextmanager
def open_stream(http: httpx.Client, path: str, after: int, organization: str) -> Iterator[Iterator[ServerSentEvent]]:
    """Open a stream of events and yield them as they arrive.

    Raises the server's refusal; FleetFault if it answers with something else; Unreachable if it does not respond or
    falls silent, also while the events are read.
    """
    import httpx
    from httpx_sse import connect_sse

    url = str(http.base_url).rstrip("/")
    options = {"headers": {"Last-Event-ID": str(after)}, "params": {"org": organization}}
    timeout = httpx.Timeout(SILENCE_S, connect=10.0)
    try:
        with connect_sse(http, "GET", path, **options, timeout=timeout) as source:
            if not source.response.is_success:
                source.response.read()
                raise refusal(url, source.response)
            if not source.response.headers.get("content-type", "").startswith("text/event-stream"):
                raise not_a_fleet(url, source.response)
            # Without data it is no event, says the standard, but the library passes it on.
            yield (event for event in source.iter_sse() if event.data)
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise unreachable(url, error) from error
