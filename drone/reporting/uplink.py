"""The drone's own connection to Redis, separate from Celery's, and the sealing of its messages."""

from __future__ import annotations

from dataclasses import dataclass

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from shared.clock import Clock
from shared.envelope import Binding, Direction, Opened, key_id, open_envelope, public_key, recipient_of, seal
from shared.sockets import keepalive_options, redis_tls
from shared.tls import failed_handshake

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 10.0


def connect(broker_url: str, ca_file: str = "") -> Redis:
    """A client that retries a command once over a new connection; any further retries are up to the caller.

    `ca_file`: authorities to trust besides the machine's.
    """
    return Redis.from_url(
        broker_url,
        socket_timeout=ANSWER_SECONDS,
        socket_connect_timeout=CONNECT_SECONDS,
        socket_keepalive=True,
        socket_keepalive_options=keepalive_options(),
        health_check_interval=10,
        retry=Retry(NoBackoff(), 1),
        **redis_tls(broker_url, ca_file),
    )


def why_unreachable(redis: Redis, error: RedisError) -> str:
    """Why a command failed, in words for the drone's owner."""
    place = redis.get_connection_kwargs()
    failed = failed_handshake(f"//{place.get('host')}:{place.get('port')}", error, trust="")
    return failed.what if failed else str(error)


@dataclass(frozen=True)
class Sealer:
    """Seals what this drone sends, and opens what the control plane sent to it."""

    drone_id: str
    private_key: bytes
    control_plane_key: bytes
    clock: Clock

    def seal(self, direction: Direction, body: str, *, order: str = "", run: str = "", generation: int = 0) -> str:
        """Seal `body` for the control plane."""
        binding = Binding(direction=direction, drone=self.drone_id, order=order, run=run, generation=generation)
        return seal(
            body, binding, sender=self.private_key, recipient=self.control_plane_key, issued_at=self.clock.now()
        )

    def has_key_of(self, envelope: str) -> bool:
        """Whether an envelope is sealed to this drone's current key, and not to one that was replaced."""
        return recipient_of(envelope) == key_id(public_key(self.private_key))

    def open(
        self, envelope: str, direction: Direction, *, order: str = "", run: str = "", generation: int = 0
    ) -> Opened:
        """Open an envelope that the control plane sealed for this drone, with this binding.

        Raises CannotOpen if it is for another recipient, was altered, or has another binding.
        """
        expect = Binding(direction=direction, drone=self.drone_id, order=order, run=run, generation=generation)
        own = {key_id(public_key(self.private_key)): self.private_key}
        return open_envelope(envelope, recipients=own, sender=self.control_plane_key, expect=expect)
