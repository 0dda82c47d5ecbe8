"""One simulation: a crowd of stand-in drones, orders over HTTP, and what became of them according to the database."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from control_plane.client.fleet import FleetClient
from control_plane.core import Core
from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from control_plane.declarations import drones, orders
from control_plane.documents.orders import SubmitRequest
from shared.states import OrderStatus, RunStatus
from tests.scale.crowd import Crowd
from tests.scale.fleet import ScaleFleet, scale_fleet
from tests.scale.samples import FleetSample, Sampler, used_by
from tests.scale.size import ScaleSize
from tests.support import wait_until

BOARD_S = 1.0
"""How long the list of drones may take, in the median."""
SILENT_S = 15.0
"""A drone that has sent no beat for so long is rightly shown as unresponsive."""
_CHECK_S = 1.0


@dataclass(frozen=True)
class Outcome:
    """What became of the orders and drones, and how long it took."""

    orders: int
    online_s: float
    """From the first beat until all drones were shown as online."""
    submit_s: float
    """Until the last order was submitted."""
    all_s: float
    """From the first submission until all orders had ended."""
    orders_per_s: float
    lost: int
    """Orders that have not succeeded."""
    twice: int
    """Orders that drones claimed more than once."""
    incomplete: int
    """Ended runs of which the database has not every event."""
    false_losses: int
    """Runs that were given up although their drone was there."""
    false_silences: int
    """Samples in which more drones were shown as silent or offline than had left, times the drones."""
    wait_median_s: float
    """From the order to the claim."""
    wait_p95_s: float
    end_median_s: float
    """From the order to its end in the database."""
    left: int
    """Drones that left; each returned."""
    latest_beat_s: float
    """The longest interval between the beats of one drone, which is this process's doing."""
    unexpected: dict[str, int]
    board_median_s: float
    board_worst_s: float
    cpu_s: dict[str, float]
    """From the first submission to the end."""
    idle_cores: dict[str, float]
    """What each process used of a core while all drones only beat; empty if that was not measured."""

    def broken(self) -> list[str]:
        """The promises that were not kept."""
        counts = {
            "lost orders": self.lost,
            "orders claimed twice": self.twice,
            "incomplete transcripts": self.incomplete,
            "false losses": self.false_losses,
            "false silences": self.false_silences,
        }
        found = [f"{what}: {count}" for what, count in counts.items() if count]
        if self.board_median_s > BOARD_S:
            found.append(f"the list of drones takes {self.board_median_s:.1f} s")
        return found


def simulate(size: ScaleSize, root: Path) -> tuple[Outcome, list[FleetSample]]:
    """Run one simulation below `root`; nothing is left of its processes."""
    with scale_fleet(root, size) as fleet:
        crowd = fleet.crowd(size)
        fleet.start_roles(size)
        sampler = Sampler(fleet, crowd, size.sample_s)
        began = time.monotonic()
        crowd.start()
        try:
            _wait_online(fleet, size)
            online_s = time.monotonic() - began
            crowd.may_leave.set()
            idle = _idle_cores(fleet, size.minutes * 60)
            sampler.start()
            return _do_orders(fleet, crowd, sampler, size, (online_s, idle)), sampler.samples
        finally:
            sampler.stop()
            crowd.stop()


def _wait_online(fleet: ScaleFleet, size: ScaleSize) -> None:
    with fleet.client() as client:

        def online() -> bool:
            shown = Counter(str(each["status"]) for each in client.call(drones.LIST))
            return shown["online"] == size.drones

        wait_until(online, seconds=size.limit_s, every=2.0)


def _idle_cores(fleet: ScaleFleet, seconds: float) -> dict[str, float]:
    if not seconds:
        return {}
    before, began = used_by(fleet), time.monotonic()
    time.sleep(seconds)
    took, after = time.monotonic() - began, used_by(fleet)
    return {name: round((after[name].cpu_s - before[name].cpu_s) / took, 3) for name in before}


def _do_orders(
    fleet: ScaleFleet, crowd: Crowd, sampler: Sampler, size: ScaleSize, before: tuple[float, dict[str, float]]
) -> Outcome:
    used, began = used_by(fleet), time.monotonic()
    _submit(fleet, size)
    submit_s = time.monotonic() - began
    _until_ended(fleet.core, crowd, size, began + size.limit_s)
    all_s = time.monotonic() - began
    spent = {name: round(use.cpu_s - used[name].cpu_s, 1) for name, use in used_by(fleet).items()}
    _until_confirmed(crowd)
    sampler.stop()
    return _outcome(fleet.core, crowd, sampler.samples, _Timing(size.orders, *before, submit_s, all_s, spent))


def _submit(fleet: ScaleFleet, size: ScaleSize) -> None:
    numbers = iter(range(size.orders))
    lock, failed = threading.Lock(), list[BaseException]()

    def submit_some() -> None:
        try:
            with fleet.client() as client:
                _submit_until_none(client, numbers, lock)
        except BaseException as error:  # noqa: BLE001 - raised below, in the main thread
            failed.append(error)

    threads = [threading.Thread(target=submit_some, daemon=True) for _ in range(size.submitters)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def _submit_until_none(client: FleetClient, numbers: Any, lock: threading.Lock) -> None:
    while True:
        with lock:
            number = next(numbers, None)
        if number is None:
            return
        client.call(orders.SUBMIT, SubmitRequest(prompt=f"Order {number}.", project="demo"))


def _until_ended(core: Core, crowd: Crowd, size: ScaleSize, deadline: float) -> None:
    """Return when the database has ended every order, or at the deadline."""
    ended = select(func.count()).select_from(Order).where(Order.ended_at.is_not(None))
    while time.monotonic() < deadline:
        # The database is asked only when the crowd is done: counting is work for it.
        if len(crowd.events) >= size.orders:
            with core.database.read() as db:
                if (db.scalar(ended) or 0) >= size.orders:
                    return
        time.sleep(0.1)


def _until_confirmed(crowd: Crowd) -> None:
    """Give the control plane the time of some beats to confirm every run; what is unconfirmed then is incomplete."""
    deadline = time.monotonic() + 60
    while crowd.in_hand and time.monotonic() < deadline:
        time.sleep(_CHECK_S)


@dataclass(frozen=True)
class _Timing:
    orders: int
    online_s: float
    idle_cores: dict[str, float]
    submit_s: float
    all_s: float
    cpu_s: dict[str, float]


def _outcome(core: Core, crowd: Crowd, samples: Sequence[FleetSample], timing: _Timing) -> Outcome:
    with core.database.read() as db:
        rows = db.execute(select(Order.id, Order.status, Order.created_at, Order.ended_at)).all()
        lost_runs = db.scalar(select(func.count()).select_from(Run).where(Run.status == RunStatus.LOST)) or 0
        steps = dict(db.execute(select(Step.run_id, func.count()).group_by(Step.run_id)).all())
        stored = dict(db.execute(select(Run.id, Run.last_seq)).all())
    waits = [crowd.claimed_at[row.id] - row.created_at.timestamp() for row in rows if row.id in crowd.claimed_at]
    ends = [_seconds(row.created_at, row.ended_at) for row in rows if row.ended_at is not None]
    succeeded = sum(row.status == OrderStatus.SUCCEEDED for row in rows)
    wrong = [run for run, number in crowd.events.items() if (steps.get(run), stored.get(run)) != (number, number)]
    boards = [sample.board_s for sample in samples]
    return Outcome(
        orders=timing.orders,
        online_s=round(timing.online_s, 1),
        submit_s=round(timing.submit_s, 1),
        all_s=round(timing.all_s, 1),
        orders_per_s=round(succeeded / timing.all_s, 1),
        lost=timing.orders - succeeded,
        twice=sum(count > 1 for count in crowd.claims.values()),
        incomplete=len(wrong) + crowd.in_hand,
        false_losses=lost_runs,
        false_silences=sum(_falsely_silent(sample, len(crowd.drones)) for sample in samples),
        wait_median_s=_part(waits, 0.5),
        wait_p95_s=_part(waits, 0.95),
        end_median_s=_part(ends, 0.5),
        left=crowd.left,
        latest_beat_s=round(crowd.latest_beat_s, 1),
        unexpected=dict(crowd.unexpected),
        board_median_s=round(statistics.median(boards), 3),
        board_worst_s=max(boards),
        cpu_s=timing.cpu_s,
        idle_cores=timing.idle_cores,
    )


def _falsely_silent(sample: FleetSample, number: int) -> int:
    """How many present drones the list shows as unresponsive or offline.

    A drone that left or returned within the last seconds may be shown as it was: 1 % of the drones is allowed for them.
    """
    silent = sum(sample.shown.get(status, 0) for status in ("unresponsive", "offline"))
    return max(0, silent - (number - sample.present) - max(1, number // 100))


def _seconds(since: datetime, until: datetime) -> float:
    return (until - since).total_seconds()


def _part(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * part))], 2) if ordered else 0.0


def document(size: ScaleSize, outcome: Outcome, samples: Sequence[FleetSample]) -> dict[str, Any]:
    """All figures, as the command writes them."""
    found = {"size": asdict(size), "outcome": asdict(outcome), "samples": [asdict(each) for each in samples]}
    return {**found, "broken": outcome.broken()}
