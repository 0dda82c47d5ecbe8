"""Kombu's Redis transport within the rights of a drone: it writes no bindings.

Bindings are sets that all drones would share. None of them is needed here: the control plane names a drone's queue
itself, broadcasts go to channels, and answers to them to queues that the asking side has bound.
"""

from __future__ import annotations

from typing import Any

from kombu.transport.redis import Channel, Transport


class DroneChannel(Channel):  # type: ignore[misc]  # kombu has no types
    """Knows which queues receive broadcasts; nothing about queues is stored in Redis."""

    def _queue_bind(self, exchange: str, routing_key: str, _pattern: str, queue: str) -> None:
        if self.typeof(exchange).type == "fanout":
            self._fanout_queues[queue] = exchange, routing_key.replace("#", "*")

    def _delete(self, queue: str, *_: Any, **__: Any) -> None:
        # Only a queue for broadcasts is ever deleted, which has neither lists nor bindings.
        self.auto_delete_queues.discard(queue)


class DroneTransport(Transport):  # type: ignore[misc]  # kombu has no types
    """The transport with these channels."""

    Channel = DroneChannel
