"""One campaign: a fleet, its load, faults at a steady pace, the wait until everything has settled, and the findings."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from shared.errors import FleetError
from tests.chaos import flower, invariants
from tests.chaos.facts import Facts, look
from tests.chaos.faults import WEIGHTS, Fault, Faults
from tests.chaos.fleet_under_load import FleetUnderLoad, Size
from tests.chaos.invariants import Findings
from tests.chaos.load import Load
from tests.chaos.metering import Meter

LOOK_EVERY = 0.3
READ_EVERY = 3.0
ROLE_PAUSE = 1.0
PATIENCE_SECONDS = 60.0
RECOVERY_SECONDS = 90.0
"""Time for recovery after everything has settled; a fault that is not recovered from by then never will be."""
_ASKS_HEALTH = frozenset({"broker_restart", "broker_frozen", "database_restart", "api_kill"})


@dataclass(frozen=True)
class Plan:
    """The parameters of one campaign."""

    seed: int
    seconds: float
    """How long faults are injected."""
    size: Size
    every: float = 2.0
    """Seconds between two faults."""
    kinds: Mapping[str, int] = field(default_factory=lambda: dict(WEIGHTS))
    each_once: bool = False
    """Every kind once, in random order, instead of drawing kinds for `seconds`."""
    settle_seconds: float = 600.0
    followers: int = 12


@dataclass
class Campaign:
    """The plan, the injected faults and the findings."""

    plan: Plan
    fleet: FleetUnderLoad
    load: Load
    faults: list[Fault] = field(default_factory=list)
    findings: Findings = field(default_factory=lambda: Findings({}))
    began: float = 0.0
    faults_ended: float = 0.0
    settled: float = 0.0
    _kept: float = 0.0
    """All four are seconds since the epoch."""
    _facts: Facts | None = None
    _over: threading.Event = field(default_factory=threading.Event)
    _watched: threading.Event = field(default_factory=threading.Event)

    def run(self) -> Campaign:
        """Run the campaign. The drones are stopped; the services keep running, so that the caller can inspect them."""
        watcher = self._thread(self._watch, "watch")
        meter = Meter(self.fleet)
        reader = self._thread(lambda: self._read_metrics(meter), "metrics")
        feeder = self._thread(self._feed, "feed")
        self.began = time.time()
        self._wait_for_work()
        carried_out = self._do_faults()
        self.faults_ended = time.time()
        self._over.set()
        for thread in [*carried_out, feeder]:
            thread.join(180)
            assert not thread.is_alive(), thread.name
        self._settle()
        self.settled = time.time()
        late = [follower.order_id for follower in self.load.followers if not follower.leave(30)]
        self._watched.set()
        watcher.join(30)
        reader.join(30)
        self.findings = invariants.examine(self.fleet, self.load, late_followers=late)
        differing = "metrics that differ from the database, or counters that fell"
        self.findings.promises[differing] = list(meter.wrong())
        differing = "tasks, queues and workers that Flower shows otherwise than the database"
        self.findings.promises[differing] = list(flower.differences(self.fleet))
        self.fleet.stop_drones()
        invariants.after_the_stop(self.fleet, self.findings)
        return self

    # --- concurrent activities -----------------------------------------------------------------

    def _watch(self) -> None:
        while not self._watched.wait(LOOK_EVERY):
            self._keep_roles()
            asks = any(each.kind in _ASKS_HEALTH and not each.settled for each in self.faults)
            health = self.fleet.health() if asks else {}
            facts = self._look_now()
            if facts is None:
                # Only the database is unavailable: the last facts stay, with the API's current health.
                facts = self._facts and replace(self._facts, at=time.time())
            else:
                facts = replace(facts, consuming=self.fleet.consuming())
                self._facts = facts
            if facts is None:
                continue
            facts = replace(facts, health=health)
            for fault in list(self.faults):
                if not fault.settled:
                    fault.look(facts)

    def _read_metrics(self, meter: Meter) -> None:
        while not self._watched.wait(READ_EVERY):
            meter.read()

    def _keep_roles(self) -> None:
        """Restart ended roles, at most once a second, so that a role that cannot start does not load the machine."""
        if time.time() - self._kept > ROLE_PAUSE:
            self._kept = time.time()
            self.fleet.start_again_what_ended()

    def _feed(self) -> None:
        """Submit half of the orders at once, the rest during the faults, and more while there are too few to hit."""
        plan, load = self.plan, self.load
        while len(load.accepted) < plan.size.orders // 2:
            load.submit()
        pause = plan.seconds / max(1, plan.size.orders - len(load.accepted))
        least = self.fleet.slots * (1 if plan.each_once else 2)
        while len(load.accepted) < plan.size.orders or not self._over.is_set():
            if len(load.accepted) < plan.size.orders or self._outstanding() < least:
                load.submit()
            self._over.wait(pause if len(load.accepted) < plan.size.orders else 0.3)

    def _do_faults(self) -> list[threading.Thread]:
        threads = []
        numbers = random.Random(self.plan.seed)
        faults = Faults(self.fleet, numbers, lambda: look(self.fleet.database))
        for kinds in self._draws(numbers):
            fault = self._drawn(faults, kinds)
            if fault is not None:
                self.faults.append(fault)
                threads.append(self._thread(lambda it=fault: faults.carry_out(it), f"fault-{fault.kind}"))
            time.sleep(self.plan.every)
        return threads

    def _drawn(self, faults: Faults, kinds: Mapping[str, int]) -> Fault | None:
        """A fault, or None; if every kind must occur once, wait until this kind is possible."""
        deadline = time.time() + (PATIENCE_SECONDS if self.plan.each_once else 0)
        while (fault := faults.draw(kinds)) is None and time.time() < deadline:
            time.sleep(0.2)
        return fault

    def _draws(self, numbers: random.Random) -> Iterator[Mapping[str, int]]:
        if self.plan.each_once:
            yield from ({kind: 1} for kind in numbers.sample(sorted(self.plan.kinds), len(self.plan.kinds)))
            return
        end = time.time() + self.plan.seconds
        while time.time() < end:
            yield self.plan.kinds

    def _wait_for_work(self) -> None:
        self._until(lambda facts: len(facts.running()) >= min(self.fleet.slots, 2), 60)

    def _settle(self) -> None:
        """Wait until all orders have ended, all events are stored and all faults are recovered from, with timeouts."""
        self._until(self._is_settled, self.plan.settle_seconds)
        self._until(lambda _: all(fault.settled for fault in self.faults), RECOVERY_SECONDS)

    def _is_settled(self, facts: Facts) -> bool:
        return all(order.ended for order in facts.orders.values()) and not invariants.unsent(self.fleet)

    def _until(self, true: Callable[[Facts], bool], seconds: float) -> None:
        deadline = time.time() + seconds
        while time.time() < deadline:
            facts = self._look_now()
            if facts is not None and true(facts):
                return
            time.sleep(0.5)

    def _look_now(self) -> Facts | None:
        try:
            return look(self.fleet.database)
        except FleetError:
            return None

    def _outstanding(self) -> int:
        return sum(not order.ended for order in self._facts.orders.values()) if self._facts else self.fleet.slots * 2

    def _thread(self, target: Callable[[], object], name: str) -> threading.Thread:
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        return thread


def carry_out(plan: Plan, root: Path) -> Campaign:
    """Start a fleet below `root`, run the campaign, and end everything."""
    fleet = FleetUnderLoad(root, plan.size, flower=True)
    try:
        fleet.start()
        return Campaign(plan, fleet, Load(fleet, followers=plan.followers)).run()
    finally:
        fleet.close()
