"""Many stand-in drones in one process: they beat, take orders, report short runs and read their inboxes.

Each implements the wire protocol (`tests.support.stand_in`) and runs nothing. A drone takes an order only if it has a
free slot, as a real one does, and repeats an ended run in its beats until the run is confirmed.
"""

from __future__ import annotations

import heapq
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import redis

from shared import names
from shared.control import Confirm, ControlMessage, Resend
from shared.events import AssistantStep, Delivered, Event, Prepared, RunBeat, Usage, UserStep
from shared.states import BEAT_EVERY
from shared.work_order import WorkOrder
from tests.support.stand_in import DroneStandIn

_BEATS_TOGETHER = 50
"""Drones that share a connection and beat in one round trip."""
_QUEUES_TOGETHER = 500
"""Queues for which one shared connection waits."""
_WAIT_S = 0.5
AWAY_S = 20.0


@dataclass(eq=False)
class PlayedDrone:
    """One drone of the crowd, and what it has in hand."""

    stand_in: DroneStandIn
    running: dict[str, WorkOrder] = field(default_factory=dict)
    ended: dict[str, WorkOrder] = field(default_factory=dict)
    """Unconfirmed runs."""
    acted_on: set[str] = field(default_factory=set)
    back_at: float | None = None
    """Monotonic time at which it returns; None: it is here."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def takes_orders(self) -> bool:
        return self.back_at is None and len(self.running) < self.stand_in.concurrency

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing in hand, so that it may leave."""
        return not self.running and not self.ended

    def beat(self) -> str:
        """Its next beat, sealed."""
        with self.lock:
            self.stand_in.acted_on = sorted(self.acted_on)
            runs = [self._run_beat(order, ended=False) for order in self.running.values()]
            runs += [self._run_beat(order, ended=True) for order in self.ended.values()]
        return self.stand_in.sealed_beat(*runs)

    def _run_beat(self, order: WorkOrder, *, ended: bool) -> RunBeat:
        return self.stand_in.run_beat(order, doing="" if ended else "model", ended=ended)


class Crowd:
    """All drones. `start` returns at once; `stop` ends the threads."""

    def __init__(self, drones: Sequence[DroneStandIn], *, work_s: float, leaving_per_minute: float, own: bool) -> None:
        """`work_s`: how long a run lasts; `leaving_per_minute`: the part of the idle drones that leaves and returns."""
        self.drones = [PlayedDrone(each) for each in drones]
        self.claims: Counter[str] = Counter()
        """How often each order was claimed."""
        self.claimed_at: dict[str, float] = {}
        """The time (Unix) of each order's first claim."""
        self.events: dict[str, int] = {}
        """How many events each ended run has."""
        self.unexpected: Counter[str] = Counter()
        """Control messages that the crowd does not act on, and failures of its own, by kind."""
        self.latest_beat_s = 0.0
        """The longest time between two beats of a drone: beyond 15 s, a silent drone is this process's fault."""
        self.left = 0
        self._own, self._work_s, self._leaving = own, work_s, leaving_per_minute
        self.may_leave = threading.Event()
        """Set once all are there."""
        self._stopping = threading.Event()
        self._due: list[tuple[float, int, PlayedDrone, WorkOrder]] = []
        self._ready = threading.Condition()
        self._numbers = iter(range(1 << 60))
        self._chance = random.Random(1)
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        bodies: list[Callable[[], None]] = [self._beat_round, self._finish_due]
        bodies += [self._taking(group) for group in self._groups(_QUEUES_TOGETHER)]
        for drone in self.drones:
            drone.stand_in.restart()
        for body in bodies:
            thread = threading.Thread(target=self._repeat, args=(body,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        self._stopping.set()
        with self._ready:
            self._ready.notify_all()
        for thread in self._threads:
            thread.join(30)

    @property
    def present(self) -> int:
        return sum(drone.back_at is None for drone in self.drones)

    @property
    def in_hand(self) -> int:
        """Runs that are running or not confirmed."""
        return sum(len(drone.running) + len(drone.ended) for drone in self.drones)

    def _repeat(self, body: Callable[[], None]) -> None:
        while not self._stopping.is_set():
            try:
                body()
            except redis.RedisError as error:
                self.unexpected[f"{type(error).__name__}: {error}"[:200]] += 1
                self._stopping.wait(1)

    # --- beats -------------------------------------------------------------------------

    def _beat_round(self) -> None:
        """Let every drone beat once, spread over the interval."""
        began, every = time.monotonic(), BEAT_EVERY.total_seconds()
        groups = self._groups(_BEATS_TOGETHER)
        for number, group in enumerate(groups):
            self._beat_together([drone for drone in group if self._is_here(drone)])
            behind = time.monotonic() - began - every * (number + 1) / len(groups)
            if self._stopping.wait(max(0.0, -behind)):
                return
        self.latest_beat_s = max(self.latest_beat_s, time.monotonic() - began)

    def _groups(self, size: int) -> list[list[PlayedDrone]]:
        """Drones that share a connection."""
        together = 1 if self._own else size
        return [self.drones[at : at + together] for at in range(0, len(self.drones), together)]

    def _beat_together(self, drones: Sequence[PlayedDrone]) -> None:
        if not drones:
            return
        with drones[0].stand_in.redis.pipeline(transaction=False) as pipe:
            for drone in drones:
                drone_id = drone.stand_in.id
                pipe.publish(names.beat_channel(drone_id), drone.beat())
                pipe.set(names.lease_key(drone_id), drone.stand_in.lease(), ex=60)
                pipe.hgetall(names.inbox_key(drone_id))
            answers = pipe.execute()
        for drone, inbox in zip(drones, answers[2::3], strict=True):
            self._read_inbox(drone, inbox)

    def _is_here(self, drone: PlayedDrone) -> bool:
        """Let it leave or return, at random; false while it is away."""
        now = time.monotonic()
        if drone.back_at is not None:
            if now >= drone.back_at:
                drone.back_at = None
                drone.stand_in.restart(*(drone._run_beat(order, ended=True) for order in drone.ended.values()))
        elif self.may_leave.is_set() and self._chance.random() < self._leaving * BEAT_EVERY.total_seconds() / 60:
            with drone.lock:
                if not drone.is_idle:
                    return True
                drone.back_at = now + AWAY_S
            self.left += 1
            drone.stand_in.beat(stopping=True)
        return drone.back_at is None

    def _read_inbox(self, drone: PlayedDrone, inbox: dict[str, str]) -> None:
        with drone.lock:
            new = [drone.stand_in.open_control(sealed) for key, sealed in inbox.items() if key not in drone.acted_on]
            for message in new:
                self._act(drone, message)
            drone.acted_on = set(inbox)

    def _act(self, drone: PlayedDrone, message: ControlMessage) -> None:
        match message.body:
            case Confirm(run_id=run_id):
                if drone.ended.pop(run_id, None) is not None:
                    del drone.stand_in.journals[run_id]
            case Resend(run_id=run_id, from_seq=first):
                self.unexpected["resend"] += 1
                drone.stand_in.send_together(*(e for e in drone.stand_in.journals.get(run_id, ()) if e.seq >= first))
            case other:
                self.unexpected[other.kind] += 1

    # --- orders ------------------------------------------------------------------------

    def _taking(self, drones: Sequence[PlayedDrone]) -> Callable[[], None]:
        """Wait for one message on the queues of these drones, and begin what it asks for."""
        by_queue = {names.queue(drone.stand_in.id): drone for drone in drones}
        connection: Any = drones[0].stand_in.redis

        def take() -> None:
            wanted = [queue for queue, drone in by_queue.items() if drone.takes_orders]
            if not wanted:
                self._stopping.wait(0.1)
                return
            found = connection.brpop(wanted, timeout=_WAIT_S)
            if found is not None:
                queue, message = found
                self._begin(by_queue[queue], message)

        return take

    def _begin(self, drone: PlayedDrone, message: str) -> None:
        stand_in = drone.stand_in
        order = stand_in.open_order(message)
        if not stand_in.claim(order):
            self.unexpected["a refused claim"] += 1
            return
        with drone.lock:
            drone.running[order.run_id] = order
        self.claims[order.order_id] += 1
        self.claimed_at.setdefault(order.order_id, time.time())
        prompt = UserStep(text=order.prompt, source="prompt")
        stand_in.send_together(*self._journal(drone, order, stand_in.started(), Prepared(base_commit="a" * 40), prompt))
        with self._ready:
            heapq.heappush(self._due, (time.monotonic() + self._work_s, next(self._numbers), drone, order))
            self._ready.notify()

    def _finish_due(self) -> None:
        with self._ready:
            wait = self._due[0][0] - time.monotonic() if self._due else _WAIT_S
            if wait > 0:
                self._ready.wait(min(wait, _WAIT_S))
                return
            _, _, drone, order = heapq.heappop(self._due)
        self._finish(drone, order)
        if drone.takes_orders and (message := drone.stand_in.redis.rpop(names.queue(drone.stand_in.id))):
            self._begin(drone, str(message))

    def _finish(self, drone: PlayedDrone, order: WorkOrder) -> None:
        answer = AssistantStep(text="done", usage=Usage(cost_usd=0.0))
        events = self._journal(drone, order, answer, Delivered(), drone.stand_in.ended())
        self.events[order.run_id] = events[-1].seq
        drone.stand_in.send_together(*events)
        with drone.lock:
            drone.ended[order.run_id] = drone.running.pop(order.run_id)

    def _journal(self, drone: PlayedDrone, order: WorkOrder, *bodies: Any) -> list[Event]:
        return [drone.stand_in.journal(order, body) for body in bodies]
