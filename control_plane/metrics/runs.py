"""Figures of runs: open ones, how the others ended, and what all have used.

How runs ended is counted for people's orders alone: services are removed after a time (`operations.retention`), and
Prometheus takes a counter that shrinks for one that began anew. Those that used something are never removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.metrics.families import counter, gauge
from shared.outcome import ExitStatus
from shared.states import RunStatus

OTHER = "other"
"""An exit status that this version does not know: a drone may report any text."""
_TOKENS = {
    "input": Run.input_tokens,
    "output": Run.output_tokens,
    "thinking": Run.thinking_tokens,
    "cached": Run.cached_tokens,
}
_KNOWN = tuple(each.value for each in ExitStatus)


def run_metrics(db: Session, names: Mapping[str, str]) -> Iterator[Metric]:
    """`names`: of the organizations, by id. All figures come from one pass over the runs."""
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
    return f"ended {exit_status if exit_status in _KNOWN else OTHER}"


def _families(found: Mapping[str, Counter[str]]) -> Iterator[Metric]:
    own = ("organization",)
    yield gauge("dronefleet_runs_open", "Runs that have not ended.", own, _each(found, "open"))
    # Each status from the start: Prometheus sees no increase in a series that begins with 1.
    ended = [((name, way), sums[f"ended {way}"]) for name, sums in found.items() for way in (*_KNOWN, OTHER)]
    yield counter("dronefleet_runs_ended", "Runs of people's orders that ended.", (*own, "exit_status"), ended)
    tokens = [((name, kind), sums[f"tokens {kind}"]) for name, sums in found.items() for kind in _TOKENS]
    yield counter("dronefleet_tokens", "Tokens of model calls.", (*own, "kind"), tokens)
    yield counter("dronefleet_tool_calls", "Tool calls of runs.", own, _each(found, "calls"))
    help_ = "Runs with a call whose price is unknown."
    yield gauge("dronefleet_runs_unknown_cost", help_, own, _each(found, "unpriced"))


def _each(found: Mapping[str, Counter[str]], what: str) -> list[tuple[tuple[str], int]]:
    return [((name,), sums[what]) for name, sums in found.items()]
