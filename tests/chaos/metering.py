"""What has to be true of `/metrics` in a campaign: no counter shrinks, and at the end the figures are the database's.

The figures are counted again here from the stored steps and payments, one by one, not as the metrics sum them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import httpx
from sqlalchemy import select

from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from control_plane.db.spending import SpendingBlock
from shared.amounts import dollars
from shared.states import RunStatus
from tests.chaos.fleet_under_load import FleetUnderLoad
from tests.support.metrics import TOKEN, Series, series_in

MILLIONTH = 1e-6
"""USD. What two sums of fractions may differ by."""


@dataclass
class Meter:
    """Reads the metrics while faults are injected, as Prometheus does."""

    fleet: FleetUnderLoad
    times_read: int = 0
    shrunk: list[str] = field(default_factory=list)
    """Counters that fell."""
    _last: dict[Series, float] = field(default_factory=dict)

    def read(self) -> dict[Series, float]:
        """The series now; none if the API does not answer."""
        try:
            found = series_in(self.fleet.get("/metrics", TOKEN).raise_for_status().text)
        except httpx.HTTPError:
            return {}
        counters = {key: value for key, value in found.items() if key[0].endswith("_total")}
        fell = (key for key, value in counters.items() if value < self._last.get(key, 0.0) - MILLIONTH)
        self.shrunk += [f"{key}: {self._last[key]}, then {counters[key]}" for key in fell]
        # A part that did not answer in time leaves its series out.
        self._last |= counters
        self.times_read += 1
        return found

    def wrong(self) -> Iterator[str]:
        """One line for each figure that does not agree, once nothing runs any more."""
        if not self.times_read:
            yield "the metrics were never read"
        shown = _by_label(self.read())
        yield from self.shrunk
        for name, expected in _expected(self.fleet).items():
            figures = shown.get(name, {})
            if any(abs(figures.get(key, 0) - expected.get(key, 0)) > MILLIONTH for key in {*figures, *expected}):
                yield f"{name}: {figures}, counted {dict(expected)}"


def _by_label(found: Mapping[Series, float]) -> dict[str, dict[str, float]]:
    """The figures of each metric by its first label beside the organization and the drone; zeros are left out."""
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (name, labels), number in found.items():
        if number:
            sums[name][next((value for key, value in labels if key not in {"organization", "drone"}), "")] += number
    return sums


def _expected(fleet: FleetUnderLoad) -> dict[str, Mapping[str, float]]:
    with fleet.database.read() as db:
        orders = {order.id: order for order in db.scalars(select(Order))}
        runs = list(db.scalars(select(Run)))
        steps = list(db.scalars(select(Step)))
        blocks = list(db.scalars(select(SpendingBlock)))
    works = {id_ for id_, order in orders.items() if order.purpose == "work"}
    reported: Counter[str] = Counter()
    for block in blocks:
        reported[block.model] += block.reported_nusd
    return {
        "dronefleet_up": {"broker": 1, "database": 1, "history": 1},
        "dronefleet_orders": Counter(order.status for order in orders.values()),
        "dronefleet_orders_waiting": {},
        "dronefleet_runs_open": {},
        "dronefleet_runs_ended_total": Counter(_end(run) for run in runs if run.order_id in works),
        "dronefleet_steps_total": {"": sum(step.order_id in works for step in steps)},
        "dronefleet_tool_calls_total": {"": sum(step.kind == "tool_call" for step in steps)},
        "dronefleet_tokens_total": _tokens(steps),
        "dronefleet_cost_usd_total": {model: dollars(nusd) for model, nusd in reported.items()},
        "dronefleet_budget_spent_usd": {"organization": dollars(sum(block.spent_nusd for block in blocks))},
        "dronefleet_budget_reserved_usd": {},
        "dronefleet_stream_entries": {},
        "dronefleet_queue_messages": {},
    }


def _end(run: Run) -> str:
    return "lost" if run.status == RunStatus.LOST else str(run.exit_status)


def _tokens(steps: Sequence[Step]) -> Mapping[str, float]:
    usages = [step.body.get("usage") or {} for step in steps]
    kinds = ("input", "output", "thinking", "cached")
    return {kind: sum(usage.get(f"{kind}_tokens", 0) for usage in usages) for kind in kinds}
