"""A subscription to Redis that detects when it is dead: the same on both sides."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import redis
from redis.client import PubSub

from shared.sockets import Pings


class CheckedSubscription(PubSub):
    """Detects that the other end is gone: its next read then raises ConnectionError.

    The connections of `pool` need a health check interval; every read must have a timeout.
    """

    def __init__(self, pool: redis.ConnectionPool, **options: Any) -> None:
        super().__init__(pool, **options)
        self._pings = Pings()

    def get_message(self, *args: Any, **options: Any) -> Any:
        message = super().get_message(*args, **options)
        if self._pings.unanswered(self.health_check_response_counter, time.monotonic()):
            raise redis.ConnectionError("the subscription does not answer pings")
        return message

    def arrived(self) -> Iterator[dict[str, Any]]:
        """Each message that was published before this call, without waiting for more. Raises redis.RedisError.

        The server answers a ping after everything that it sent before, so its answer is the end.
        """
        if self.connection is not None:
            # The library sends a ping that is due, and counts the answers.
            self.connection.next_health_check = float("-inf")
        self.check_health()
        while self.health_check_response_counter:
            message = self.get_message(timeout=1.0)
            if message is not None:
                yield message
