"""A subscription to Redis that notices when it has gone deaf: the same on both sides."""

from __future__ import annotations

import time
from typing import Any

import redis
from redis.client import PubSub

from shared.sockets import Pings


class CheckedSubscription(PubSub):
    """One that notices when nobody is at the other end any more: then its next reading raises ConnectionError.

    The connections of `pool` need a health check interval; every reading is to have a timeout.
    """

    def __init__(self, pool: redis.ConnectionPool, **options: Any) -> None:
        super().__init__(pool, **options)
        self._pings = Pings()

    def get_message(self, *args: Any, **options: Any) -> Any:
        message = super().get_message(*args, **options)
        if self._pings.unanswered(self.health_check_response_counter, time.monotonic()):
            raise redis.ConnectionError("the subscription's pings are not answered")
        return message
