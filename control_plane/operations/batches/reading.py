"""Read batches: their progress, statistics and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import batches as declared
from control_plane.contract.declarations.batches import (
    BatchDocument,
    BatchRowDocument,
    BatchStatus,
    BatchSummary,
    RowState,
    fingerprint,
)
from control_plane.core import Caller, Core
from control_plane.core.lookups.groups import find_batch
from control_plane.db.batches import BatchRow
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.operations.gateway import performs
from control_plane.operations.runs.blobs import blob_of_run
from control_plane.orders import totals
from control_plane.orders.outcomes import WORK, outcome_of
from shared.errors import NotFound
from shared.events import Stats
from shared.outcome import EndedWork, OrderOutcome, Verification, order_outcome, outcome_together
from shared.states import OrderStatus

MAX_PATCHES = 8 * 1024 * 1024
"""Bytes of patches in one answer, after which a list ends early."""
_RECENT = 50
"""Orders that ended last, from which the remaining time is estimated."""
SUBMITTED = BatchRow.state == "submitted"
RESOLVED = and_(
    SUBMITTED, Order.status == OrderStatus.SUCCEEDED.value, Order.verification == Verification.VERIFIED.value
)
_ENDED = or_(BatchRow.state.in_(("refused", "canceled")), and_(SUBMITTED, Order.ended_at.is_not(None)))
_STATES: dict[RowState, ColumnElement[bool]] = {
    "waiting": BatchRow.state == "waiting",
    "open": and_(SUBMITTED, Order.ended_at.is_(None)),
    "succeeded": and_(SUBMITTED, Order.status == OrderStatus.SUCCEEDED.value),
    "failed": and_(SUBMITTED, Order.status == OrderStatus.FAILED.value),
    "canceled": or_(BatchRow.state == "canceled", and_(SUBMITTED, Order.status == OrderStatus.CANCELED.value)),
    "refused": BatchRow.state == "refused",
    "resolved": RESOLVED,
    "unresolved": and_(
        _ENDED,
        # Of a row without an order, the status is null, and `NOT null` would not be true.
        or_(
            Order.id.is_(None),
            Order.status != OrderStatus.SUCCEEDED.value,
            Order.verification.is_(None),
            Order.verification != Verification.VERIFIED.value,
        ),
    ),
}


def is_resolved(status: str | None, verification: str | None) -> bool:
    """`RESOLVED` for a row that was read: its order's work passed its verify commands."""
    return status == OrderStatus.SUCCEEDED and verification == Verification.VERIFIED


@performs(declared.LIST)
def list_(core: Core, caller: Caller, limit: int = 50) -> list[BatchSummary]:
    """The organization's batches, newest first."""
    with core.database.read() as db:
        wanted = select(OrderGroup).where(
            OrderGroup.organization_id == caller.organization_id, OrderGroup.kind == "batch"
        )
        rows = db.scalars(wanted.order_by(OrderGroup.created_at.desc(), OrderGroup.id).limit(limit)).all()
        return summaries(db, rows)


@performs(declared.SHOW)
def show(core: Core, caller: Caller, batch_id: str) -> BatchDocument:
    """A batch with its statistics. Raises NotFound, and Invalid for an ambiguous prefix."""
    with core.database.read() as db:
        batch = find_batch(db, caller, batch_id)
        counts, usage = _counts(db, [batch.id])[batch.id], _usage(db, [batch.id])[batch.id]
        digests = db.scalars(select(BatchRow.digest).where(BatchRow.batch_id == batch.id).order_by(BatchRow.number))
        begun = usage.orders or None
        return BatchDocument(
            **_summary(batch, counts, usage),
            waiting=counts.waiting,
            open=counts.open,
            succeeded=counts.succeeded,
            failed=counts.failed,
            canceled=counts.canceled,
            refused=counts.refused,
            outcomes=dict(sorted(counts.outcomes.items())),
            verifications=dict(sorted(counts.verifications.items())),
            exit_statuses=dict(sorted(counts.exit_statuses.items())),
            steps=usage.steps,
            cost_mean_usd=usage.cost_usd / begun if begun and usage.cost_usd is not None else None,
            steps_mean=usage.steps / begun if begun else None,
            duration_mean_s=usage.duration_ms / 1000 / begun if begun else None,
            remaining_s=_remaining(db, core, batch, counts),
            fingerprint=fingerprint(digests),
        )


@performs(declared.LIST_ROWS)
def rows(  # noqa: PLR0913 - the filters, as the gateway passes them
    core: Core,
    caller: Caller,
    batch_id: str,
    *,
    state: RowState | None = None,
    after: int = 0,
    patches: bool = False,
    limit: int = 100,
) -> list[BatchRowDocument]:
    """Rows in the order of the file, with their results; with `patches`, at least one and about 8 MB of them.

    Raises as `show`.
    """
    with core.database.read() as db:
        batch = find_batch(db, caller, batch_id)
        wanted = (
            select(BatchRow, Order)
            .outerjoin(Order, Order.id == BatchRow.order_id)
            .where(BatchRow.batch_id == batch.id, BatchRow.number > after)
        )
        if state is not None:
            wanted = wanted.where(_STATES[state])
        found = db.execute(wanted.order_by(BatchRow.number).limit(limit)).all()
        used = totals.of_orders(db, [order.id for _, order in found if order is not None])
        documents: list[BatchRowDocument] = []
        size = 0
        for row, order in found:
            patch = _patch(db, core, order) if patches else None
            size += len(patch or "")
            if documents and size > MAX_PATCHES:
                break
            documents.append(_document(row, order, used[order.id] if order else Stats(), patch))
        return documents


def summaries(db: Db, batches: Sequence[OrderGroup]) -> list[BatchSummary]:
    """The summaries of these batches, in two queries for any number of them."""
    ids = [each.id for each in batches]
    counts, usage = _counts(db, ids), _usage(db, ids)
    return [BatchSummary(**_summary(each, counts[each.id], usage[each.id])) for each in batches]


@dataclass
class _RowCounts:
    """How many rows of a batch are in which state."""

    waiting: int = 0
    open: int = 0
    succeeded: int = 0
    failed: int = 0
    canceled: int = 0
    refused: int = 0
    resolved: int = 0
    outcomes: Counter[OrderOutcome] = field(default_factory=Counter)
    verifications: Counter[str] = field(default_factory=Counter)
    exit_statuses: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.waiting + self.open + self.ended

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed + self.canceled + self.refused

    @property
    def outcome(self) -> OrderOutcome | None:
        """Of all rows together; None until they have ended."""
        left = self.waiting + self.open
        others = {OrderOutcome.FAILED: self.refused, OrderOutcome.CANCELED: self.canceled, None: left}
        return outcome_together([*self.outcomes, *(outcome for outcome, count in others.items() if count)])

    def add(self, state: str, order: tuple[str | None, str | None, str | None], work: EndedWork, count: int) -> None:
        """Count rows in this state, whose order has this status, verification and exit status."""
        status, verification, exit_status = order
        if state != "submitted":
            setattr(self, state, getattr(self, state) + count)
            return
        if status not in {OrderStatus.SUCCEEDED, OrderStatus.FAILED, OrderStatus.CANCELED}:
            self.open += count
            return
        setattr(self, status, getattr(self, status) + count)
        if (outcome := order_outcome(OrderStatus(status), exit_status, work)) is not None:
            self.outcomes[outcome] += count
        self.verifications[verification or Verification.NOT_REACHED.value] += count
        self.exit_statuses[exit_status or str(status)] += count
        if is_resolved(status, verification):
            self.resolved += count


@dataclass(frozen=True)
class _BatchUsage:
    """What the orders of a batch used."""

    orders: int = 0
    """Those that were started."""
    steps: int = 0
    duration_ms: int = 0
    cost_usd: float | None = 0.0


def _counts(db: Db, batch_ids: Sequence[str]) -> dict[str, _RowCounts]:
    found = {batch_id: _RowCounts() for batch_id in batch_ids}
    columns = (BatchRow.batch_id, BatchRow.state, Order.status, Order.verification, Order.exit_status)
    counted = select(*columns, *WORK, func.count()).outerjoin(Order, Order.id == BatchRow.order_id)
    for batch_id, state, status, verification, exit_status, *work, count in db.execute(
        counted.where(BatchRow.batch_id.in_(batch_ids)).group_by(*columns, *WORK)
    ):
        found[batch_id].add(state, (status, verification, exit_status), EndedWork(*map(bool, work)), count)
    return found


def _usage(db: Db, batch_ids: Sequence[str]) -> dict[str, _BatchUsage]:
    summed = (
        select(
            BatchRow.batch_id,
            func.count(Run.order_id.distinct()),
            func.sum(Run.tool_calls),
            func.sum(Run.duration_ms),
            func.sum(Run.cost_usd + Run.assumed_usd),
            func.count() - func.count(Run.cost_usd),
        )
        .join(Run, Run.order_id == BatchRow.order_id)
        .where(BatchRow.batch_id.in_(batch_ids))
        .group_by(BatchRow.batch_id)
    )
    found = {batch_id: _BatchUsage() for batch_id in batch_ids}
    for batch_id, orders, steps, duration, cost, unknown in db.execute(summed):
        # One unknown cost makes the total unknown: a partial sum is not the cost.
        found[batch_id] = _BatchUsage(orders, int(steps), int(duration), float(cost or 0) if not unknown else None)
    return found


def _summary(batch: OrderGroup, counts: _RowCounts, usage: _BatchUsage) -> dict[str, Any]:
    return {
        "id": batch.id,
        "name": batch.name,
        "status": _status(batch, counts),
        "outcome": counts.outcome,
        "parallel": batch.parallel,
        "user": batch.user,
        "created_at": batch.created_at,
        "total": counts.total,
        "ended": counts.ended,
        "resolved": counts.resolved,
        "cost_usd": usage.cost_usd,
    }


def _status(batch: OrderGroup, counts: _RowCounts) -> BatchStatus:
    if batch.canceled_at is not None:
        return "canceling" if counts.open else "canceled"
    if batch.begun_at is None:
        return "loading"
    return "running" if counts.waiting or counts.open else "finished"


def _remaining(db: Db, core: Core, batch: OrderGroup, counts: _RowCounts) -> float | None:
    """Seconds until all rows have ended, if they go on ending as often as the last ones did."""
    left = counts.waiting + counts.open
    if not left or batch.begun_at is None or batch.canceled_at is not None:
        return 0.0 if not left else None
    ended = select(Order.ended_at).where(Order.group_id == batch.id, Order.ended_at >= batch.begun_at)
    times = db.scalars(ended.order_by(Order.ended_at.desc()).limit(_RECENT)).all()
    since = times[-1] if len(times) == _RECENT else batch.begun_at
    if not times or since is None:
        return None
    return left * max(core.clock.now() - since, timedelta(milliseconds=1)).total_seconds() / len(times)


def _document(row: BatchRow, order: Order | None, stats: Stats, patch: str | None) -> BatchRowDocument:
    state = order.status if order is not None and row.state == "submitted" else row.state
    ended = order if order is not None and row.state == "submitted" and order.ended_at is not None else None
    return BatchRowDocument(
        id=row.key,
        number=row.number,
        state=state,
        outcome=outcome_of(ended, may_push=True) if ended is not None else None,
        resolved=ended is not None
        and ended.status == OrderStatus.SUCCEEDED
        and ended.verification == Verification.VERIFIED,
        order=row.order_id,
        reason=row.problem or (order.reason if order is not None and row.state == "submitted" else ""),
        project=row.request["project"],
        model=order.model if order is not None else None,
        verification=ended.verification if ended is not None else None,
        exit_status=ended.exit_status if ended is not None else None,
        base_commit=order.base_commit if order is not None else row.request.get("base"),
        branch=order.branch if order is not None and order.pushed else None,
        cost_usd=stats.cost_usd,
        steps=stats.tool_calls,
        duration_ms=stats.duration_ms,
        patch=patch,
        digest=row.digest,
    )


def _patch(db: Db, core: Core, order: Order | None) -> str | None:
    if order is None or order.result_run_id is None:
        return None
    if order.patch_sha256 is None:
        return ""
    try:
        return blob_of_run(db, core, order.result_run_id, order.patch_sha256).decode("utf-8", "replace")
    except NotFound:
        # The file was lost with its disk; the other rows are still worth having.
        return None
