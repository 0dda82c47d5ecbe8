"""Compare two batches: rows paired by their ids, and McNemar's exact test on which of them were resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import batches as declared
from control_plane.contract.declarations.batches import BatchComparison, ComparedRow
from control_plane.core import Caller, Core
from control_plane.core.lookups.groups import find_batch
from control_plane.db.batches import BatchRow
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.operations.batches.reading import is_resolved, summaries
from control_plane.operations.gateway import performs
from control_plane.orders import totals
from shared.events import Stats


@performs(declared.COMPARE)
def compare(core: Core, caller: Caller, batch_id: str, other_id: str) -> BatchComparison:
    """The comparison of the rows that have ended in both batches. Raises as `show`."""
    with core.database.read() as db:
        batches = (find_batch(db, caller, batch_id), find_batch(db, caller, other_id))
        a, b = (_results(db, each) for each in batches)
        shared = [key for key in a if key in b]
        pairs = [(key, a[key], b[key]) for key in shared if a[key].ended and b[key].ended]
        used_a, used_b = _usage(db, [x for _, x, _ in pairs]), _usage(db, [y for _, _, y in pairs])
        summary_a, summary_b = summaries(db, batches)
    different = [
        ComparedRow(id=key, resolved_by="a" if x.resolved else "b", order_a=x.order_id, order_b=y.order_id)
        for key, x, y in pairs
        if x.resolved != y.resolved
    ]
    only_a = sum(each.resolved_by == "a" for each in different)
    only_b = len(different) - only_a
    both = sum(x.resolved and y.resolved for _, x, y in pairs)
    return BatchComparison(
        a=summary_a,
        b=summary_b,
        pairs=len(pairs),
        both=both,
        only_a=only_a,
        only_b=only_b,
        neither=len(pairs) - both - only_a - only_b,
        p_value=mcnemar(only_a, only_b),
        unpaired_a=len(a) - len(shared),
        unpaired_b=len(b) - len(shared),
        unfinished=len(shared) - len(pairs),
        cost_a_usd=used_a.cost_usd,
        cost_b_usd=used_b.cost_usd,
        steps_a=used_a.tool_calls,
        steps_b=used_b.tool_calls,
        different=different[: declared.MOST_DIFFERENT],
    )


def mcnemar(only_a: int, only_b: int) -> float:
    """The two-sided p-value of McNemar's exact test: a binomial test of the pairs in which the results differ."""
    n, smaller = only_a + only_b, min(only_a, only_b)
    # Whole numbers, which do not overflow, up to the last division.
    return min(1.0, sum(comb(n, k) for k in range(smaller + 1)) / (1 << n) * 2)


@dataclass(frozen=True)
class _Result:
    order_id: str | None
    ended: bool
    resolved: bool


def _results(db: Db, batch: OrderGroup) -> dict[str, _Result]:
    wanted = (
        select(BatchRow.key, BatchRow.state, BatchRow.order_id, Order.status, Order.verification, Order.ended_at)
        .outerjoin(Order, Order.id == BatchRow.order_id)
        .where(BatchRow.batch_id == batch.id)
        .order_by(BatchRow.number)
    )
    return {
        key: _Result(
            order_id,
            ended=state in {"refused", "canceled"} or (state == "submitted" and ended_at is not None),
            resolved=state == "submitted" and is_resolved(status, verification),
        )
        for key, state, order_id, status, verification, ended_at in db.execute(wanted)
    }


def _usage(db: Db, results: Sequence[_Result]) -> Stats:
    used = totals.of_orders(db, [each.order_id for each in results if each.order_id is not None]).values()
    known = [each.cost_usd for each in used if each.cost_usd is not None]
    return Stats(
        tool_calls=sum(each.tool_calls for each in used), cost_usd=sum(known) if len(known) == len(used) else None
    )
