"""The faults: what each does to the fleet, how it is undone, and when it counts as noticed and recovered from."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from control_plane.contract.declarations import drones, orders
from control_plane.contract.declarations.orders import CancelRequest
from shared.errors import FleetError, Refused
from shared.states import OrderStatus
from tests.chaos.facts import Facts
from tests.chaos.fleet_under_load import FleetUnderLoad
from tests.chaos.parts import Drone
from tests.support.freezing import frozen

KILL_SPACING_SECONDS = 20.0
"""Between two kills of one drone."""
SHOWN_SILENT_SECONDS = 15.0
TAKEN_OVER_SECONDS = 70.0
AWAY_SECONDS = 5.0
"""Of the broker when it is frozen, and of the git remote."""
DRAIN_SECONDS = 60.0

Sign = Callable[["Fault", Facts], bool]


@dataclass
class Fault:
    """One fault, from its plan to its recovery. Times are seconds since the epoch."""

    kind: str
    part: str
    """The part that it hits; no other fault hits this part before this one is undone."""
    act: Callable[[Fault], None]
    """Causes the fault and undoes it; sets `done_at` in between."""
    noticed: Sign | None
    """None: the fleet does not show this fault."""
    recovered: Sign
    hit: dict[str, str] = field(default_factory=dict)
    """Runs that the part was running when it was hit, each with its order."""
    before: Facts | None = None
    done_at: float = 0.0
    undone_at: float = 0.0
    noticed_at: float = 0.0
    recovered_at: float = 0.0
    error: str = ""

    def look(self, facts: Facts) -> None:
        """Update `noticed_at` and `recovered_at` from these facts."""
        if not self.done_at or facts.at < self.done_at:
            return
        if not self.noticed_at and self.noticed is not None and self.noticed(self, facts):
            self.noticed_at = facts.at
        if not self.recovered_at and self.undone_at and facts.at >= self.undone_at and self.recovered(self, facts):
            self.recovered_at = facts.at

    @property
    def settled(self) -> bool:
        return bool(self.recovered_at)


class Faults:
    """Draws faults for one fleet. The draw depends on the seed; the parts that can be hit depend on the fleet."""

    def __init__(self, fleet: FleetUnderLoad, numbers: random.Random, look: Callable[[], Facts]) -> None:
        self._fleet = fleet
        self._numbers = numbers
        self._look = look
        self.busy: set[str] = set()
        """Parts with a fault in progress."""

    def draw(self, kinds: Mapping[str, int]) -> Fault | None:
        """A fault of one of these kinds, by weight; another kind if none of its parts is free; None if none is."""
        left = dict(kinds)
        while left:
            kind = self._numbers.choices(list(left), list(left.values()))[0]
            made: Fault | None = None
            with suppress(FleetError):  # a kind that reads the database first, while it is unavailable
                made = KINDS[kind].make(self, kind)
            if made is not None and made.part not in self.busy:
                return made
            del left[kind]
        return None

    def carry_out(self, fault: Fault) -> None:
        """Execute the fault in the caller's thread; an error is kept in `fault.error`."""
        self.busy.add(fault.part)
        try:
            fault.act(fault)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the campaign fails in the end
            fault.error = f"{type(error).__name__}: {error}"
        finally:
            fault.done_at = fault.done_at or time.time()
            fault.undone_at = fault.undone_at or time.time()
            self.busy.discard(fault.part)

    # --- drones --------------------------------------------------------------------------------

    def worker_kill(self, kind: str) -> Fault | None:
        def act(fault: Fault, drone: Drone) -> None:
            worker = drone.worker()
            self._begin(fault, drone)
            if worker is not None:
                worker.kill()

        return self._of_drone(kind, act, _runs_taken_back, _runs_go_on)

    def drone_kill(self, kind: str) -> Fault | None:
        def act(fault: Fault, drone: Drone) -> None:
            self._begin(fault, drone)
            drone.kill()
            time.sleep(seconds)
            drone.start()

        seconds = self._numbers.uniform(1, 5)
        return self._of_drone(kind, act, _runs_taken_back, _runs_go_on)

    def run_kill(self, kind: str) -> Fault | None:
        def act(fault: Fault, drone: Drone) -> None:
            self._begin(fault, drone)
            fault.hit = {}
            for run_id, order_id in sorted((fault.before or self._look()).running_on(drone.id).items()):
                process = drone.run_process(run_id)
                if process is not None:
                    fault.hit = {run_id: order_id}
                    process.kill()
                    return

        return self._of_drone(kind, act, _runs_taken_back, _runs_go_on, working=True)

    def freeze(self, kind: str) -> Fault | None:
        seconds = self._numbers.uniform(3, 20)
        noticed = _silent if seconds > SHOWN_SILENT_SECONDS + 1 else None
        return self._of_drone(kind, self._frozen(seconds), noticed, _drone_seen)

    def long_freeze(self, kind: str) -> Fault | None:
        return self._of_drone(kind, self._frozen(TAKEN_OVER_SECONDS), _runs_taken_back, _runs_go_on)

    def _frozen(self, seconds: float) -> Callable[[Fault, Drone], None]:
        def act(fault: Fault, drone: Drone) -> None:
            self._begin(fault, drone)
            with frozen(drone.pid):
                time.sleep(seconds)

        return act

    def restart(self, kind: str) -> Fault | None:
        def act(fault: Fault, drone: Drone) -> None:
            self._begin(fault, drone)
            drone.stop(seconds=DRAIN_SECONDS)
            drone.start()

        return self._of_drone(kind, act, _leaves, _drone_back)

    def drain(self, kind: str) -> Fault | None:
        def act(fault: Fault, drone: Drone) -> None:
            with self._fleet.client() as client:
                self._begin(fault, drone)
                self._until_told(lambda: client.call(drones.DRAIN, name=drone.name))
                time.sleep(seconds)
                self._until_told(lambda: client.call(drones.RESUME, name=drone.name))

        seconds = self._numbers.uniform(2, 6)
        return self._of_drone(kind, act, _drains, _takes_again, killing=False)

    def _of_drone(
        self,
        kind: str,
        act: Callable[[Fault, Drone], None],
        noticed: Sign | None,
        recovered: Sign,
        *,
        killing: bool = True,
        working: bool = False,
    ) -> Fault | None:
        """A fault of a drone that is up, was not killed recently if it is killed, and has a run if it must."""
        now = time.monotonic()
        facts = self._look() if working else None
        free = [
            drone
            for drone in self._fleet.drones.values()
            if drone.up
            and drone.name not in self.busy
            and not (killing and now - drone.last_killed < KILL_SPACING_SECONDS)
            and (facts is None or facts.running_on(drone.id))
        ]
        if not free:
            return None
        drone = self._numbers.choice(free)
        return Fault(kind, drone.name, lambda fault: act(fault, drone), noticed, recovered)

    # --- the broker, the database, the remote -----------------------------------------------------

    def broker_restart(self, kind: str) -> Fault | None:
        hard = self._numbers.random() < 0.5
        return self._of_broker(kind, lambda: self._fleet.broker.restart(kill=hard), _broker_missed)

    def broker_emptied(self, kind: str) -> Fault | None:
        return self._of_broker(kind, self._fleet.broker.redis.flushall, None)

    def broker_frozen(self, kind: str) -> Fault | None:
        def freeze() -> None:
            with frozen(self._fleet.broker.pid):
                time.sleep(AWAY_SECONDS)

        return self._of_broker(kind, freeze, _broker_missed)

    def _of_broker(self, kind: str, do: Callable[[], object], noticed: Sign | None) -> Fault:
        def act(fault: Fault) -> None:
            self._begin(fault)
            do()

        return Fault(kind, "redis", act, noticed, self._all_seen)

    def database_restart(self, kind: str) -> Fault | None:
        def act(fault: Fault) -> None:
            self._begin(fault)
            self._fleet.postgres.stop()
            time.sleep(seconds)
            self._fleet.postgres.start()

        seconds = self._numbers.uniform(0, 3)
        return Fault(kind, "database", act, lambda _, facts: facts.health.get("database") is False, self._all_seen)

    def remote_away(self, kind: str) -> Fault | None:
        away = self._fleet.remote.with_name("away.git")

        def act(fault: Fault) -> None:
            self._begin(fault)
            self._fleet.remote.rename(away)
            try:
                time.sleep(AWAY_SECONDS)
            finally:
                away.rename(self._fleet.remote)

        def pushed_again(fault: Fault, facts: Facts) -> bool:
            heads = self._fleet.remote / "logs" / "refs" / "heads" / "fleet"
            nothing_left = all(order.ended for order in facts.orders.values())
            return nothing_left or any(each.stat().st_mtime > fault.undone_at for each in heads.glob("*"))

        return Fault(kind, "remote", act, None, pushed_again)

    # --- the control plane, users ----------------------------------------------------------------

    def role_kill(self, kind: str) -> Fault | None:
        name = kind.removesuffix("_kill")
        role = self._fleet.roles.get(name)
        if role is None or not role.alive:
            return None

        def act(fault: Fault) -> None:
            self._begin(fault)
            role.end(signal.SIGKILL)
            time.sleep(seconds)
            role.start()

        def works(fault: Fault, facts: Facts) -> bool:
            if name == "api":
                return bool(facts.health)
            if name == "flower":
                return self._fleet.answers("/flower/api/workers")
            if name == "supervisor":
                return bool(facts.leader) and facts.leader != (fault.before.leader if fault.before else "")
            return any(drone.seen > fault.undone_at for drone in facts.drones.values())

        seconds = self._numbers.uniform(1, 3)
        return Fault(kind, name, act, None, works)

    def cancel(self, kind: str) -> Fault | None:
        def act(fault: Fault) -> None:
            with self._fleet.client() as client:
                self._begin(fault)
                fault.hit = {run: order for run, order in fault.hit.items() if order == order_id}
                self._until_told(lambda: client.call(orders.CANCEL, CancelRequest(reason="chaos"), order_id=order_id))

        def asked(_: Fault, facts: Facts) -> bool:
            return facts.orders[order_id].status in {"canceling", "canceled"}

        facts = self._look()
        chosen = sorted(each for each in facts.running().values() if facts.orders[each].status == OrderStatus.RUNNING)
        if not chosen:
            return None
        order_id = self._numbers.choice(chosen)
        return Fault(kind, f"order {order_id}", act, asked, lambda _, facts: facts.orders[order_id].ended)

    # --- shared by all faults -------------------------------------------------------------------

    def _begin(self, fault: Fault, drone: Drone | None = None) -> None:
        """Record the running runs right before the fault."""
        with suppress(FleetError):
            fault.before = self._look()
            fault.hit = fault.before.running_on(drone.id) if drone else fault.before.running()
        fault.done_at = time.time()
        if drone is not None:
            drone.last_killed = time.monotonic()

    def _all_seen(self, fault: Fault, facts: Facts) -> bool:
        """True if every drone that is up has sent a beat since, and consumes or has no free slot."""
        for name, drone in self._fleet.drones.items():
            if name in self.busy or not drone.up:
                continue
            full = len(facts.running_on(drone.id)) >= self._fleet.size.slots
            if facts.drones[name].seen <= fault.undone_at or not (full or name in facts.consuming):
                return False
        return True

    def _until_told(self, ask: Callable[[], object]) -> None:
        """Call the API until it answers; a refusal is an answer."""
        for _ in range(60):
            try:
                ask()
                return
            except Refused:
                return
            except FleetError:
                time.sleep(0.5)


def _runs_taken_back(fault: Fault, facts: Facts) -> bool:
    if not fault.hit:
        return _new_boot(fault, facts)
    return all(facts.runs[run].closed for run in fault.hit)


def _runs_go_on(fault: Fault, facts: Facts) -> bool:
    if not fault.hit:
        return _drone_seen(fault, facts)
    return all(facts.goes_on(run) for run in fault.hit)


def _drone_seen(fault: Fault, facts: Facts) -> bool:
    return facts.drones[fault.part].seen > fault.undone_at


def _silent(fault: Fault, facts: Facts) -> bool:
    return facts.at - facts.drones[fault.part].seen >= SHOWN_SILENT_SECONDS


def _drains(fault: Fault, facts: Facts) -> bool:
    return facts.drones[fault.part].draining


def _takes_again(fault: Fault, facts: Facts) -> bool:
    return not _drains(fault, facts) and _drone_seen(fault, facts)


def _leaves(fault: Fault, facts: Facts) -> bool:
    return facts.drones[fault.part].stopping or _drains(fault, facts) or _new_boot(fault, facts)


def _new_boot(fault: Fault, facts: Facts) -> bool:
    return fault.before is not None and facts.drones[fault.part].boot_id != fault.before.drones[fault.part].boot_id


def _drone_back(fault: Fault, facts: Facts) -> bool:
    """If the database was unavailable at the hit, the previous boot is unknown, and a new beat has to suffice."""
    return (fault.before is None or _new_boot(fault, facts)) and _drone_seen(fault, facts)


def _broker_missed(_: Fault, facts: Facts) -> bool:
    return facts.health.get("broker") is False


@dataclass(frozen=True)
class Kind:
    """One kind of fault."""

    make: Callable[[Faults, str], Fault | None]
    weight: int
    """Its relative frequency."""
    label: str


KINDS: dict[str, Kind] = {
    "worker_kill": Kind(Faults.worker_kill, 3, "SIGKILL of a drone's worker"),
    "drone_kill": Kind(Faults.drone_kill, 4, "SIGKILL of a whole drone, started again after 1 to 5 s"),
    "run_kill": Kind(Faults.run_kill, 4, "SIGKILL of one run's process"),
    "freeze": Kind(Faults.freeze, 3, "SIGSTOP of a drone for 3 to 20 s"),
    "long_freeze": Kind(Faults.long_freeze, 1, "SIGSTOP of a drone for 70 s"),
    "restart": Kind(Faults.restart, 2, "SIGTERM of a drone, started again"),
    "drain": Kind(Faults.drain, 2, "drone drained, and resumed after 2 to 6 s"),
    "broker_restart": Kind(Faults.broker_restart, 3, "Redis restarted, every second time killed"),
    "broker_emptied": Kind(Faults.broker_emptied, 2, "Redis emptied (FLUSHALL)"),
    "broker_frozen": Kind(Faults.broker_frozen, 2, "Redis frozen for 5 s"),
    "database_restart": Kind(Faults.database_restart, 2, "database restarted, away for 0 to 3 s"),
    "remote_away": Kind(Faults.remote_away, 2, "git remote away for 5 s"),
    "collector_kill": Kind(Faults.role_kill, 2, "SIGKILL of the collector, restarted after 1 to 3 s"),
    "supervisor_kill": Kind(Faults.role_kill, 2, "SIGKILL of the supervisor, restarted after 1 to 3 s"),
    "api_kill": Kind(Faults.role_kill, 2, "SIGKILL of the API, restarted after 1 to 3 s"),
    "flower_kill": Kind(Faults.role_kill, 1, "SIGKILL of Flower, restarted after 1 to 3 s"),
    "cancel": Kind(Faults.cancel, 3, "order canceled by a user"),
}
WEIGHTS = {name: kind.weight for name, kind in KINDS.items()}
