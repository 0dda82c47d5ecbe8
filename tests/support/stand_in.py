"""A drone stand-in: it implements the real protocol (queue, claim, sealed events, beats, inbox), but runs nothing.

The test determines its reports.
"""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

import redis

from control_plane.contract.declarations.tokens import JoinTokenRequest
from control_plane.core import Caller, Core
from control_plane.operations.access import tokens
from control_plane.operations.drones import registration
from shared import envelope, names
from shared.clock import Clock, SystemClock
from shared.control import ControlMessage
from shared.envelope import Binding
from shared.events import (
    ABILITIES,
    AssistantStep,
    Beat,
    Body,
    Delivered,
    Event,
    Hello,
    Prepared,
    RunBeat,
    RunEnded,
    RunStarted,
    Usage,
    UserStep,
)
from shared.registration import Credentials, JoinTokenString, RegistrationRequest
from shared.work_order import WorkOrder
from tests.support import wait_until

T = TypeVar("T")


class Until(Protocol):
    """Returns the condition's first true value; fails if it stays false."""

    def __call__(self, condition: Callable[[], T], /) -> T: ...


@dataclass
class DroneStandIn:
    """One registered drone. Created by `join`."""

    id: str
    name: str
    redis: redis.Redis
    private_key: bytes
    control_key: bytes
    concurrency: int = 2
    abilities: tuple[str, ...] = ABILITIES
    clock: Clock = field(default_factory=SystemClock)
    ahead: timedelta = timedelta()
    """How far the drone's clock is ahead of all others."""
    boot: str = field(default_factory=names.new_id)
    journals: dict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))
    acted_on: list[str] = field(default_factory=list)
    until: Until = wait_until
    """Waits until something is true: for the threads of a control plane, or round by round."""

    # --- orders ------------------------------------------------------------------------

    def queued(self) -> int:
        return int(self.redis.llen(names.queue(self.id)))  # type: ignore[arg-type]

    def take(self) -> WorkOrder | None:
        """Take the next message from the queue and open it; None if there is none. Nothing is claimed yet."""
        message: Any = self.redis.rpop(names.queue(self.id))
        return None if message is None else self.open_order(message)

    def taken(self) -> WorkOrder:
        """The next order that comes, claimed."""
        order = self.until(self.take)
        assert order is not None
        assert self.claim(order)
        return order

    def open_order(self, message: str) -> WorkOrder:
        """The order in a message that was taken from the queue."""
        order_id, run_id, generation, sealed = json.loads(base64.b64decode(json.loads(message)["body"]))[0]
        binding = Binding(direction="order", drone=self.id, order=order_id, run=run_id, generation=generation)
        return WorkOrder.model_validate_json(self._open(sealed, binding))

    def claim(self, order: WorkOrder) -> bool:
        """Claim the run; True on success."""
        key = names.run_key(self.id, order.run_id)

        def swap(pipe: Any) -> bool:
            offered = bool(pipe.get(key) == names.dispatched(order.generation))
            pipe.multi()
            if offered:
                pipe.set(key, names.claimed(order.generation, self.boot))
            return offered

        return bool(self.redis.transaction(swap, key, value_from_callable=True))

    # --- reports -----------------------------------------------------------------------

    def report(self, order: WorkOrder, *bodies: Body) -> None:
        """Journal and send the run's next events."""
        for body in bodies:
            self.send(self.journal(order, body))

    def journal(self, order: WorkOrder, body: Body) -> Event:
        """Journal the run's next event without sending it."""
        journal = self.journals[order.run_id]
        event = Event(
            run_id=order.run_id,
            order_id=order.order_id,
            generation=order.generation,
            seq=len(journal) + 1,
            at=self._now(),
            body=body,
        )
        journal.append(event)
        return event

    def send(self, event: Event, *, live: bool = True) -> None:
        """Put an event into the stream, repeatedly if the test wants; without `live` it is not published."""
        self.put("event", self._sealed_event(event), live=live)

    def send_together(self, *events: Event) -> None:
        """Put events into the stream and publish them, all in one round trip."""
        self.send_sealed([self._sealed_event(event) for event in events])

    def sealed_journal(self, order: WorkOrder, bodies: Iterable[Body]) -> list[str]:
        """Journal the run's next events and seal them for `send_sealed`."""
        return [self._sealed_event(self.journal(order, body)) for body in bodies]

    def send_sealed(self, sealed: Sequence[str]) -> None:
        """As `send_together`, for events that were sealed before, as sealing takes longer than sending."""
        with self.redis.pipeline(transaction=False) as pipe:
            for each in sealed:
                fields: dict[Any, Any] = {"t": "event", "e": each}
                pipe.xadd(names.events_stream(self.id), fields)
                pipe.publish(names.live_channel(self.id), json.dumps(fields))
            pipe.execute()

    def _sealed_event(self, event: Event) -> str:
        binding = Binding(
            direction="event",
            drone=self.id,
            order=event.order_id,
            run=event.run_id,
            generation=event.generation,
        )
        return self.seal(event.model_dump_json(), binding)

    def put(self, kind: str, sealed: str, *, live: bool = True) -> None:
        """Put anything into the stream."""
        self.redis.xadd(names.events_stream(self.id), {"t": kind, "e": sealed})
        if live:
            self.redis.publish(names.live_channel(self.id), json.dumps({"t": kind, "e": sealed}))

    def do(self, order: WorkOrder) -> None:
        """Claim the order and report a whole short run that succeeds."""
        assert self.claim(order)
        prompt = UserStep(text=order.prompt, source="prompt")
        answer = AssistantStep(text="done", usage=Usage(cost_usd=0.0))
        self.report(order, self.started(), Prepared(base_commit="a" * 40), prompt, answer)
        self.report(order, Delivered(), self.ended())

    def started(self) -> RunStarted:
        return RunStarted(boot_id=self.boot, sandbox="none")

    def ended(self, **fields: Any) -> RunEnded:
        """The last event of a run; a success unless `fields` say otherwise."""
        return RunEnded.model_validate(
            {"status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "done", **fields}
        )

    # --- life --------------------------------------------------------------------------

    def beat(self, *runs: RunBeat, **fields: Any) -> None:
        """Send one beat and renew the lease."""
        self.redis.publish(names.beat_channel(self.id), self.sealed_beat(*runs, **fields))
        self.renew_lease()

    def sealed_beat(self, *runs: RunBeat, **fields: Any) -> str:
        """A beat as it is published."""
        said = {**self._self(), "name": self.name, "sent_at": self._now(), "runs": runs, "done": self.acted_on}
        beat = Beat.model_validate({**said, **fields})
        return self.seal(beat.model_dump_json(), Binding(direction="beat", drone=self.id))

    def forge_beat(self, *runs: dict[str, Any], **fields: Any) -> None:
        """Send a beat with values that no model has checked, NaN included."""
        said = {**self._self(), "name": self.name, "sent_at": self._now().isoformat(), "runs": runs, **fields}
        sealed = self.seal(json.dumps(said), Binding(direction="beat", drone=self.id))
        self.redis.publish(names.beat_channel(self.id), sealed)

    def renew_lease(self) -> None:
        """Count as alive for a minute, without a beat."""
        self.redis.set(names.lease_key(self.id), self.lease(), ex=60)

    def lease(self) -> str:
        """What the lease's key holds now."""
        return f"{self.boot}:{self._now().isoformat()}"

    def run_beat(self, order: WorkOrder, **fields: Any) -> RunBeat:
        """A beat's entry for one run."""
        seq = len(self.journals[order.run_id])
        known = {"run_id": order.run_id, "order_id": order.order_id, "generation": order.generation, "last_seq": seq}
        return RunBeat.model_validate({**known, **fields})

    def restart(self, *runs: RunBeat) -> None:
        """Begin a new boot and send a hello with the runs on disk."""
        self.boot = names.new_id()
        self.hello(*runs)

    def hello(self, *runs: RunBeat, **fields: Any) -> None:
        """Send the hello of this boot."""
        hello = Hello.model_validate({**self._self(), "at": self._now(), "runs": runs, **fields})
        self.put("hello", self.seal(hello.model_dump_json(), Binding(direction="hello", drone=self.id)))

    def inbox(self) -> list[ControlMessage]:
        """The control plane's messages."""
        sealed: Any = self.redis.hgetall(names.inbox_key(self.id))
        return [self.open_control(each) for each in sealed.values()]

    def open_control(self, sealed: str) -> ControlMessage:
        """One message of the inbox."""
        return ControlMessage.model_validate_json(self._open(sealed, Binding(direction="control", drone=self.id)))

    def told(self, kind: str) -> list[ControlMessage]:
        """The messages of one kind in the inbox."""
        return [message for message in self.inbox() if message.body.kind == kind]

    def close(self) -> None:
        self.redis.close()

    def seal(self, body: str, binding: Binding) -> str:
        return envelope.seal(body, binding, sender=self.private_key, recipient=self.control_key, issued_at=self._now())

    def _open(self, sealed: str, binding: Binding) -> str:
        keys = {envelope.key_id(envelope.public_key(self.private_key)): self.private_key}
        return envelope.open_envelope(sealed, recipients=keys, sender=self.control_key, expect=binding).body

    def _now(self) -> datetime:
        return self.clock.now() + self.ahead

    def _self(self) -> dict[str, Any]:
        return {
            "drone_id": self.id,
            "machine_id": f"machine-of-{self.name}",
            "boot_id": self.boot,
            "version": "0",
            "sandbox": "none",
            "concurrency": self.concurrency,
            "abilities": self.abilities,
        }


def join(core: Core, caller: Caller, name: str, *, private_key: bytes | None = None, **fields: Any) -> DroneStandIn:
    """Register a drone through the same operation as real ones, with a new key unless it is given one."""
    return register(core, join_secret(core, caller), name, private_key=private_key, **fields)


def join_secret(core: Core, caller: Caller, *, uses: int = 1) -> str:
    """The secret of a new join token."""
    token = JoinTokenString.parse(tokens.create_join_token(core, caller, JoinTokenRequest(uses=uses)).token or "")
    assert token is not None
    return token.secret


def register(
    core: Core,
    secret: str,
    name: str,
    *,
    private_key: bytes | None = None,
    connection: redis.Redis | None = None,
    **fields: Any,
) -> DroneStandIn:
    """As `join`, with the secret of a join token; `connection`: instead of one of its own."""
    private_key = private_key or envelope.new_private_key()
    request = RegistrationRequest.model_validate(
        {
            "secret": secret,
            "name": name,
            "machine_id": f"machine-of-{name}",
            "public_key": base64.b64encode(envelope.public_key(private_key)).decode(),
            "concurrency": 2,
            "host": "test-host",
            "abilities": ABILITIES,
            **fields,
        }
    )
    answer = registration.register(core, request)
    control_key = base64.b64decode(answer.public_key)
    binding = Binding(direction="credentials", drone=answer.drone_id)
    keys = {envelope.key_id(envelope.public_key(private_key)): private_key}
    opened = envelope.open_envelope(answer.credentials, recipients=keys, sender=control_key, expect=binding)
    if connection is None:
        url = Credentials.model_validate_json(opened.body).broker_url
        connection = redis.Redis.from_url(url, decode_responses=True)
    keys_of = connection, private_key, control_key
    return DroneStandIn(answer.drone_id, name, *keys_of, concurrency=request.concurrency, clock=core.clock)
