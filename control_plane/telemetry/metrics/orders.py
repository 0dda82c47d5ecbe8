"""Figures of orders and their runs: how many are in each state, why the others wait, what ended, and what was used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime

from prometheus_client.core import Metric
from sqlalchemy import JSON, and_, func, select, type_coerce
from sqlalchemy.orm import Session

from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.db.traces import TraceExport
from control_plane.telemetry.metrics.families import counter, gauge
from shared.outcome import ExitStatus
from shared.states import OrderStatus, RunStatus

WAITING = (OrderStatus.QUEUED, OrderStatus.ASSIGNED, OrderStatus.AWAITING_APPROVAL)
NO_REASON = "none"
"""In place of the code of a reason: none is recorded yet."""
_CODE = type_coerce(Order.waits_because, JSON)["code"].as_string()


def order_metrics(db: Session, names: Mapping[str, str], now: datetime) -> Iterator[Metric]:
    """`names`: of the organizations, by id."""
    yield gauge("dronefleet_orders", "Orders.", ("organization", "status"), _by_status(db, names))
    waiting = _waiting(db, names)
    labels = ("organization", "code")
    counts = ((key, number) for key, (number, _) in waiting.items())
    yield gauge("dronefleet_orders_waiting", "Orders that wait.", labels, counts)
    ages = ((key, (now - oldest).total_seconds()) for key, (_, oldest) in waiting.items())
    help_ = "Seconds since the oldest order that waits was submitted."
    yield gauge("dronefleet_order_waiting_seconds", help_, labels, ages)


def step_metrics(db: Session, names: Mapping[str, str]) -> Iterator[Metric]:
    """Every step is counted in its order's row, which takes one pass over the orders, and none over the steps.

    Steps of people's orders alone: as in `run_metrics`, what is removed after a time must not count.
    """
    steps = select(Order.organization_id, func.sum(Order.step_count)).where(Order.purpose == "work")
    steps = steps.group_by(Order.organization_id)
    found = {id_: int(number) for id_, number in db.execute(steps)}
    stored = [((name,), found.get(id_, 0)) for id_, name in names.items()]
    yield counter("dronefleet_steps", "Steps of people's orders.", ("organization",), stored)


def _by_status(db: Session, names: Mapping[str, str]) -> Iterator[tuple[tuple[str, str], int]]:
    # Answered from ix_orders_state alone.
    counted = select(Order.organization_id, Order.status, func.count()).group_by(Order.organization_id, Order.status)
    found = {(organization, status): number for organization, status, number in db.execute(counted)}
    for id_, name in names.items():
        for status in OrderStatus:
            yield (name, status.value), found.get((id_, status), 0)


def _waiting(db: Session, names: Mapping[str, str]) -> dict[tuple[str, str], tuple[int, datetime]]:
    """The number of waiting orders and the oldest submission, by organization and code."""
    code = func.coalesce(_CODE, NO_REASON).label("code")
    # `ended_at` restricts it to ix_orders_unended, however many orders have ended.
    which = and_(Order.ended_at.is_(None), Order.status.in_(WAITING))
    wanted = select(Order.organization_id, code, func.count(), func.min(Order.created_at)).where(which)
    rows = db.execute(wanted.group_by(Order.organization_id, code))
    return {(names[organization], code): (number, oldest) for organization, code, number, oldest in rows}


# --- runs -----------------------------------------------------------------------------------------

_OTHER = "other"
"""An exit status that this version does not know: a drone may report any text."""
_TOKENS = {
    "input": Run.input_tokens,
    "output": Run.output_tokens,
    "thinking": Run.thinking_tokens,
    "cached": Run.cached_tokens,
}
_KNOWN = tuple(each.value for each in ExitStatus)


def run_metrics(db: Session, names: Mapping[str, str]) -> Iterator[Metric]:
    """Open runs, how the others ended, and what all have used, from one pass over the runs.

    How runs ended is counted for people's orders alone: services are removed after a time (`operations.retention`), and
    Prometheus takes a counter that shrinks for one that began anew. Those that used something are never removed.
    """
    # A run without an exit status was lost: nothing reported its end.
    exits = func.coalesce(Run.exit_status, "")
    sums = (func.count(), func.count(Run.cost_usd), func.sum(Run.tool_calls), *map(func.sum, _TOKENS.values()))
    by = (Run.organization_id, Order.purpose == "work", Run.status, exits)
    grouped = select(*by, *sums).join(Order, Order.id == Run.order_id).group_by(*by)
    found: dict[str, Counter[str]] = {name: Counter() for name in names.values()}
    for organization, is_work, status, exit_status, number, priced, calls, *tokens in db.execute(grouped):
        sum_ = found[names[organization]]
        kind = _kind(status, exit_status)
        sum_[kind] += number if is_work or kind == "open" else 0
        sum_["unpriced"] += number - priced
        sum_["calls"] += int(calls)
        for kind, count in zip(_TOKENS, tokens, strict=True):
            sum_[f"tokens {kind}"] += int(count)
    yield from _families(found)


def _kind(status: str, exit_status: str) -> str:
    if status == RunStatus.RUNNING:
        return "open"
    if status == RunStatus.LOST:
        return f"ended {ExitStatus.LOST}"
    return f"ended {exit_status if exit_status in _KNOWN else _OTHER}"


def _families(found: Mapping[str, Counter[str]]) -> Iterator[Metric]:
    own = ("organization",)
    yield gauge("dronefleet_runs_open", "Runs that have not ended.", own, _each(found, "open"))
    # Each status from the start: Prometheus sees no increase in a series that begins with 1.
    ended = [((name, way), sums[f"ended {way}"]) for name, sums in found.items() for way in (*_KNOWN, _OTHER)]
    yield counter("dronefleet_runs_ended", "Runs of people's orders that ended.", (*own, "exit_status"), ended)
    tokens = [((name, kind), sums[f"tokens {kind}"]) for name, sums in found.items() for kind in _TOKENS]
    yield counter("dronefleet_tokens", "Tokens of model calls.", (*own, "kind"), tokens)
    yield counter("dronefleet_tool_calls", "Tool calls of runs.", own, _each(found, "calls"))
    help_ = "Runs with a call whose price is unknown."
    yield gauge("dronefleet_runs_unknown_cost", help_, own, _each(found, "unpriced"))


def _each(found: Mapping[str, Counter[str]], what: str) -> list[tuple[tuple[str], int]]:
    return [((name,), sums[what]) for name, sums in found.items()]


# --- traces ---------------------------------------------------------------------------------------


def trace_metrics(db: Session, names: Mapping[str, str]) -> Iterator[Metric]:
    """Traces of orders that are not exported."""
    given_up = TraceExport.given_up_at.is_not(None)
    counted = select(TraceExport.organization_id, given_up, func.count()).group_by(
        TraceExport.organization_id, given_up
    )
    found = {(organization, bool(over)): number for organization, over, number in db.execute(counted)}
    for name, help_, over in (
        ("dronefleet_traces_waiting", "Traces that are not exported yet.", False),
        ("dronefleet_traces_given_up", "Traces that were given up in the last 30 days.", True),
    ):
        yield gauge(name, help_, ("organization",), [((names[id_],), found.get((id_, over), 0)) for id_ in names])
