"""One simulation: a crowd of stand-in drones, orders over HTTP, and what became of them according to the database."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from control_plane.contract.declarations import drones, orders
from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.core import Core
from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from shared.states import OrderStatus, RunStatus
from tests.scale.crowd import Crowd
from tests.scale.fleet import ProcessUse, ScaleFleet, ScaleSize, scale_fleet
from tests.support import wait_until

BOARD_S = 1.0
"""How long the list of drones may take, in the median."""


@dataclass(frozen=True)
class FleetSample:
    at_s: float
    """Since the first sample."""
    ended: int
    """Orders whose runs have sent their last event."""
    board_s: float
    """How long the list of drones took over HTTP."""
    shown: dict[str, int]
    """The drones' states in that list."""
    present: int
    """The drones that were there."""
    usage: dict[str, ProcessUse]

    def falsely_silent(self, number: int) -> int:
        """How many present drones of so many the list shows as unresponsive or offline.

        One that left or returned within the last seconds may be shown as it was: 1 % of the drones is allowed for them.
        """
        silent = sum(self.shown.get(status, 0) for status in ("unresponsive", "offline"))
        return max(0, silent - (number - self.present) - max(1, number // 100))


@dataclass(frozen=True)
class Outcome:
    """What became of the orders and drones."""

    promises: dict[str, int]
    """How often each was broken."""
    figures: dict[str, Any]
    """How long it took and what it cost."""
    samples: list[FleetSample]

    def broken(self) -> list[str]:
        """The promises that were not kept."""
        found = [f"{what}: {count}" for what, count in self.promises.items() if count]
        if (median := self.figures["board_median_s"]) > BOARD_S:
            found.append(f"the list of drones takes {median:.1f} s")
        return found


def simulate(size: ScaleSize, root: Path) -> Outcome:
    """Run one simulation below `root`; nothing is left of its processes."""
    with scale_fleet(root, size) as fleet:
        crowd = Crowd(fleet.drones(size), work_s=size.work_s, leaving_per_minute=size.leaving, own=size.own_users)
        fleet.start_roles(size)
        began = time.monotonic()
        crowd.start()
        try:
            _wait_online(fleet, size)
            figures: dict[str, Any] = {"online_s": time.monotonic() - began}
            crowd.may_leave.set()
            figures["idle_cores"] = _idle_cores(fleet, size.minutes * 60)
            with _sampled(fleet, crowd, size.sample_s) as samples:
                figures |= _do_orders(fleet, crowd, size)
            return _outcome(fleet.core, crowd, size, samples, figures)
        finally:
            crowd.stop()


@contextmanager
def _sampled(fleet: ScaleFleet, crowd: Crowd, every_s: float) -> Iterator[list[FleetSample]]:
    """Samples that are taken every few seconds, and once more in the end."""
    samples: list[FleetSample] = []
    began, stopping = time.monotonic(), threading.Event()

    def sample() -> None:
        with fleet.client() as client:
            is_last = False
            while not is_last:
                is_last = stopping.wait(every_s)
                asked = time.monotonic()
                shown = Counter(str(each["status"]) for each in client.call(drones.LIST))
                took = round(time.monotonic() - asked, 3)
                facts = len(crowd.events), took, dict(shown), crowd.present, fleet.used()
                samples.append(FleetSample(round(asked - began, 1), *facts))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        stopping.set()
        thread.join(120)


def _wait_online(fleet: ScaleFleet, size: ScaleSize) -> None:
    with fleet.client() as client:
        wait_until(
            lambda: Counter(str(each["status"]) for each in client.call(drones.LIST))["online"] == size.drones,
            seconds=size.limit_s,
            every=2.0,
        )


def _idle_cores(fleet: ScaleFleet, seconds: float) -> dict[str, float]:
    """What each process uses of a core while all drones only beat; empty if that is not measured."""
    if not seconds:
        return {}
    before, began = fleet.used(), time.monotonic()
    time.sleep(seconds)
    took, after = time.monotonic() - began, fleet.used()
    return {name: round((after[name].cpu_s - before[name].cpu_s) / took, 3) for name in before}


def _do_orders(fleet: ScaleFleet, crowd: Crowd, size: ScaleSize) -> dict[str, Any]:
    """Submit all orders, and wait until they have ended or the time is over, and are confirmed."""
    before, began = fleet.used(), time.monotonic()
    with ThreadPoolExecutor(size.submitters) as pool:
        parts = [range(first, size.orders, size.submitters) for first in range(size.submitters)]
        list(pool.map(lambda part: _submit(fleet, part), parts))
    submit_s = time.monotonic() - began
    _until_ended(fleet.core, crowd, size, began + size.limit_s)
    all_s = time.monotonic() - began
    spent = {name: round(use.cpu_s - before[name].cpu_s, 1) for name, use in fleet.used().items()}
    # The control plane has the time of some beats to confirm every run; what is unconfirmed then is incomplete.
    deadline = time.monotonic() + 60
    while crowd.in_hand and time.monotonic() < deadline:
        time.sleep(1)
    return {"submit_s": submit_s, "all_s": all_s, "cpu_s": spent}


def _submit(fleet: ScaleFleet, numbers: range) -> None:
    with fleet.client() as client:
        for number in numbers:
            client.call(orders.SUBMIT, SubmitRequest(prompt=f"Order {number}.", project="demo"))


def _until_ended(core: Core, crowd: Crowd, size: ScaleSize, deadline: float) -> None:
    ended = select(func.count()).select_from(Order).where(Order.ended_at.is_not(None))
    while time.monotonic() < deadline:
        # The database is asked only when the crowd is done: counting is work for it.
        if len(crowd.events) >= size.orders:
            with core.database.read() as db:
                if (db.scalar(ended) or 0) >= size.orders:
                    return
        time.sleep(0.1)


def _outcome(core: Core, crowd: Crowd, size: ScaleSize, samples: list[FleetSample], figures: dict[str, Any]) -> Outcome:
    with core.database.read() as db:
        rows = db.execute(select(Order.id, Order.status, Order.created_at, Order.ended_at)).all()
        lost_runs = db.scalar(select(func.count()).select_from(Run).where(Run.status == RunStatus.LOST)) or 0
        steps = dict(db.execute(select(Step.run_id, func.count()).group_by(Step.run_id)).all())
        stored = dict(db.execute(select(Run.id, Run.last_seq)).all())
    waits = [crowd.claimed_at[row.id] - row.created_at.timestamp() for row in rows if row.id in crowd.claimed_at]
    ends = [(row.ended_at - row.created_at).total_seconds() for row in rows if row.ended_at is not None]
    succeeded = sum(row.status == OrderStatus.SUCCEEDED for row in rows)
    wrong = [run for run, number in crowd.events.items() if (steps.get(run), stored.get(run)) != (number, number)]
    promises = {
        "lost orders": size.orders - succeeded,
        "orders claimed twice": sum(count > 1 for count in crowd.claims.values()),
        "incomplete transcripts": len(wrong) + crowd.in_hand,
        "runs given up although their drone was there": lost_runs,
        "false silences": sum(sample.falsely_silent(len(crowd.drones)) for sample in samples),
    }
    figures |= {
        "orders_per_s": round(succeeded / figures["all_s"], 1),
        "wait_median_s": _part(waits, 0.5),
        "wait_p95_s": _part(waits, 0.95),
        "end_median_s": _part(ends, 0.5),
        "left": crowd.left,
        "latest_beat_s": round(crowd.latest_beat_s, 1),
        "unexpected": dict(crowd.unexpected),
        "board_median_s": round(statistics.median(sample.board_s for sample in samples), 3),
        "board_worst_s": max(sample.board_s for sample in samples),
    }
    return Outcome(promises, figures, samples)


def _part(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * part))], 2) if ordered else 0.0
