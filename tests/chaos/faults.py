"""The faults: what each does to the fleet, how it is undone, and when it counts as noticed and recovered from."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import psutil
import pytest

from control_plane.declarations import drones, orders
from control_plane.declarations.orders import CancelRequest
from shared.errors import FleetError, Refused
from shared.states import OrderStatus
from tests.chaos.facts import Facts
from tests.chaos.fleet_under_load import ROLES, FleetUnderLoad
from tests.chaos.parts import Drone, thaw

KILL_SPACING_SECONDS = 20.0
"""Between two kills of one drone."""
SHOWN_SILENT_SECONDS = 15.0
TAKEN_OVER_SECONDS = 70.0
REMOTE_SECONDS = 5.0
BROKER_SECONDS = 5.0
DRAIN_SECONDS = 60.0


@dataclass
class Fault:
    """One fault, from its plan to its recovery. Times are seconds since the epoch."""

    kind: str
    part: str
    """The part that it hits; no other fault hits this part before this one is undone."""
    act: Callable[[Fault], None]
    """Causes the fault and undoes it; sets `done_at` in between."""
    noticed: Callable[[Fault, Facts], bool] | None
    """None: the fleet does not show this fault."""
    recovered: Callable[[Fault, Facts], bool]
    seconds: float = 0.0
    """How long it lasts, if it has a duration."""
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
                made = KINDS[kind](self, kind)
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
        def act(fault: Fault) -> None:
            worker = drone.worker()
            self._begin(fault, drone)
            if worker is not None:
                worker.kill()

        drone = self._drone(killing=True)
        return drone and Fault(kind, drone.name, act, _runs_taken_back, _runs_go_on)

    def drone_kill(self, kind: str) -> Fault | None:
        def act(fault: Fault) -> None:
            self._begin(fault, drone)
            drone.kill()
            time.sleep(fault.seconds)
            drone.start()

        drone = self._drone(killing=True)
        seconds = self._numbers.uniform(1, 5)
        return drone and Fault(kind, drone.name, act, _runs_taken_back, _runs_go_on, seconds)

    def run_kill(self, kind: str) -> Fault | None:
        def act(fault: Fault) -> None:
            self._begin(fault, drone)
            fault.hit = {}
            for run_id, order_id in sorted((fault.before or self._look()).running_on(drone.id).items()):
                process = drone.run_process(run_id)
                if process is not None:
                    fault.hit = {run_id: order_id}
                    process.kill()
                    return

        drone = self._drone(killing=True, working=True)
        return drone and Fault(kind, drone.name, act, _runs_taken_back, _runs_go_on)

    def freeze(self, kind: str) -> Fault | None:
        return self._frozen(kind, self._numbers.uniform(3, 20))

    def long_freeze(self, kind: str) -> Fault | None:
        return self._frozen(kind, TAKEN_OVER_SECONDS)

    def _frozen(self, kind: str, seconds: float) -> Fault | None:
        def act(fault: Fault) -> None:
            self._begin(fault, drone)
            stopped: list[psutil.Process] = []
            try:
                stopped = drone.freeze()
                time.sleep(fault.seconds)
            finally:
                thaw(stopped)

        def silent(fault: Fault, facts: Facts) -> bool:
            return facts.at - facts.drones[drone.name].seen >= SHOWN_SILENT_SECONDS

        drone = self._drone(killing=True)
        taken_over = seconds >= TAKEN_OVER_SECONDS
        noticed = _runs_taken_back if taken_over else silent if seconds > SHOWN_SILENT_SECONDS + 1 else None
        recovered = _runs_go_on if taken_over else _drone_seen
        return drone and Fault(kind, drone.name, act, noticed, recovered, seconds)

    def restart(self, kind: str) -> Fault | None:
        def act(fault: Fault) -> None:
            self._begin(fault, drone)
            drone.stop(seconds=DRAIN_SECONDS)
            drone.start()

        def leaves(fault: Fault, facts: Facts) -> bool:
            shown = facts.drones[drone.name]
            return shown.stopping or shown.draining or _new_boot(fault, facts)

        drone = self._drone(killing=True)
        return drone and Fault(kind, drone.name, act, leaves, _drone_back)

    def drain(self, kind: str) -> Fault | None:
        def act(fault: Fault) -> None:
            with self._fleet.client() as client:
                self._begin(fault, drone)
                self._until_told(lambda: client.call(drones.DRAIN, name=drone.name))
                time.sleep(fault.seconds)
                self._until_told(lambda: client.call(drones.RESUME, name=drone.name))

        def drains(fault: Fault, facts: Facts) -> bool:
            return facts.drones[drone.name].draining

        def takes_again(fault: Fault, facts: Facts) -> bool:
            return not facts.drones[drone.name].draining and _drone_seen(fault, facts)

        drone = self._drone()
        return drone and Fault(kind, drone.name, act, drains, takes_again, self._numbers.uniform(2, 6))

    # --- the broker, the database, the remote -----------------------------------------------------

    def broker_restart(self, kind: str) -> Fault | None:
        hard = self._numbers.random() < 0.5

        def act(fault: Fault) -> None:
            self._begin(fault)
            self._fleet.broker.restart(kill=hard)

        return Fault(kind, "redis", act, _broker_missed, self._all_seen)

    def broker_emptied(self, kind: str) -> Fault | None:
        def act(fault: Fault) -> None:
            self._begin(fault)
            self._fleet.broker.redis.flushall()

        return Fault(kind, "redis", act, None, self._all_seen)

    def broker_frozen(self, kind: str) -> Fault | None:
        def act(fault: Fault) -> None:
            self._begin(fault)
            self._fleet.freeze_broker()
            try:
                time.sleep(BROKER_SECONDS)
            finally:
                self._fleet.freeze_broker(thaw=True)

        return Fault(kind, "redis", act, _broker_missed, self._all_seen, BROKER_SECONDS)

    def database_restart(self, kind: str) -> Fault | None:
        def act(fault: Fault) -> None:
            self._begin(fault)
            self._fleet.postgres.stop()
            time.sleep(fault.seconds)
            self._fleet.postgres.start()

        seconds = self._numbers.uniform(0, 3)
        return Fault(kind, "database", act, _database_missed, self._all_seen, seconds)

    def remote_away(self, kind: str) -> Fault | None:
        away = self._fleet.remote.with_name("away.git")

        def act(fault: Fault) -> None:
            self._begin(fault)
            self._fleet.remote.rename(away)
            try:
                time.sleep(REMOTE_SECONDS)
            finally:
                away.rename(self._fleet.remote)

        def pushed_again(fault: Fault, facts: Facts) -> bool:
            heads = self._fleet.remote / "logs" / "refs" / "heads" / "fleet"
            nothing_left = all(order.ended for order in facts.orders.values())
            return nothing_left or any(each.stat().st_mtime > fault.undone_at for each in heads.glob("*"))

        return Fault(kind, "remote", act, None, pushed_again, REMOTE_SECONDS)

    # --- the control plane, users ----------------------------------------------------------------

    def role_kill(self, kind: str) -> Fault | None:
        name = kind.removesuffix("_kill")
        role = self._fleet.roles[name]

        def act(fault: Fault) -> None:
            self._begin(fault)
            role.end(signal.SIGKILL)
            time.sleep(fault.seconds)
            role.start()

        def works(fault: Fault, facts: Facts) -> bool:
            if name == "api":
                return bool(facts.health)
            if name == "supervisor":
                return bool(facts.leader) and facts.leader != (fault.before.leader if fault.before else "")
            return any(drone.seen > fault.undone_at for drone in facts.drones.values())

        return Fault(kind, name, act, None, works, self._numbers.uniform(1, 3)) if role.alive else None

    def cancel(self, kind: str) -> Fault | None:
        def act(fault: Fault) -> None:
            with self._fleet.client() as client:
                self._begin(fault)
                fault.hit = {run: order for run, order in fault.hit.items() if order == order_id}
                self._until_told(lambda: client.call(orders.CANCEL, CancelRequest(reason="chaos"), order_id=order_id))

        def asked(fault: Fault, facts: Facts) -> bool:
            return facts.orders[order_id].status in {"canceling", "canceled"}

        def ended(fault: Fault, facts: Facts) -> bool:
            return facts.orders[order_id].ended

        facts = self._look()
        chosen = sorted(each for each in facts.running().values() if facts.orders[each].status == OrderStatus.RUNNING)
        if not chosen:
            return None
        order_id = self._numbers.choice(chosen)
        return Fault(kind, f"order {order_id}", act, asked, ended)

    # --- shared by all faults -------------------------------------------------------------------

    def _begin(self, fault: Fault, drone: Drone | None = None) -> None:
        """Record the running runs right before the fault."""
        with suppress(FleetError):
            fault.before = self._look()
            fault.hit = fault.before.running_on(drone.id) if drone else fault.before.running()
        fault.done_at = time.time()
        if drone is not None:
            drone.last_killed = time.monotonic()

    def _drone(self, *, killing: bool = False, working: bool = False) -> Drone | None:
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
        return self._numbers.choice(free) if free else None

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


def _new_boot(fault: Fault, facts: Facts) -> bool:
    return fault.before is not None and facts.drones[fault.part].boot_id != fault.before.drones[fault.part].boot_id


def _drone_back(fault: Fault, facts: Facts) -> bool:
    """If the database was unavailable at the hit, the previous boot is unknown, and a new beat has to suffice."""
    return (fault.before is None or _new_boot(fault, facts)) and _drone_seen(fault, facts)


def _broker_missed(fault: Fault, facts: Facts) -> bool:
    return facts.health.get("broker") is False


def _database_missed(fault: Fault, facts: Facts) -> bool:
    return facts.health.get("database") is False


KINDS: dict[str, Callable[[Faults, str], Fault | None]] = {
    "worker_kill": Faults.worker_kill,
    "drone_kill": Faults.drone_kill,
    "run_kill": Faults.run_kill,
    "freeze": Faults.freeze,
    "long_freeze": Faults.long_freeze,
    "restart": Faults.restart,
    "drain": Faults.drain,
    "broker_restart": Faults.broker_restart,
    "broker_emptied": Faults.broker_emptied,
    "broker_frozen": Faults.broker_frozen,
    "database_restart": Faults.database_restart,
    "remote_away": Faults.remote_away,
    **{f"{role}_kill": Faults.role_kill for role in ROLES},
    "cancel": Faults.cancel,
}
WEIGHTS = {
    "worker_kill": 3,
    "drone_kill": 4,
    "run_kill": 4,
    "freeze": 3,
    "long_freeze": 1,
    "restart": 2,
    "drain": 2,
    "broker_restart": 3,
    "broker_emptied": 2,
    "broker_frozen": 2,
    "database_restart": 2,
    "remote_away": 2,
    "collector_kill": 2,
    "supervisor_kill": 2,
    "api_kill": 2,
    "cancel": 3,
}
"""The relative frequency of each kind."""
LABELS = {
    "worker_kill": "SIGKILL of a drone's worker",
    "drone_kill": "SIGKILL of a whole drone, started again after 1 to 5 s",
    "run_kill": "SIGKILL of one run's process",
    "freeze": "SIGSTOP of a drone for 3 to 20 s",
    "long_freeze": "SIGSTOP of a drone for 70 s",
    "restart": "SIGTERM of a drone, started again",
    "drain": "drone drained, and resumed after 2 to 6 s",
    "broker_restart": "Redis restarted, every second time killed",
    "broker_emptied": "Redis emptied (FLUSHALL)",
    "broker_frozen": "Redis frozen for 5 s",
    "database_restart": "database restarted, away for 0 to 3 s",
    "remote_away": "git remote away for 5 s",
    "collector_kill": "SIGKILL of the collector, restarted after 1 to 3 s",
    "supervisor_kill": "SIGKILL of the supervisor, restarted after 1 to 3 s",
    "api_kill": "SIGKILL of the API, restarted after 1 to 3 s",
    "cancel": "order canceled by a user",
}
