"""The blocks of money that runs hold: granted before a call, settled after it, closed when the run has ended.

The rule: for each period of each budget, spent + reserved never exceeds the limit. A block is granted only while this
holds with the whole block, and an honest run spends no more than its blocks; decision 16 has the proof. All changes of
one budget follow each other, under the lock of its row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Protocol, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.orders import Dispatch, Order
from control_plane.db.spending import Budget, SpendingBlock
from control_plane.money.spending.accounts import Account, Change, accounts_of, budgets_of, count, counts_for
from shared.amounts import reserved


class HasLeft(Protocol):
    """Something in which an amount is left."""

    @property
    def left(self) -> int: ...


A = TypeVar("A", bound=HasLeft)
SUMMARY_USD = 5.0
ASKS_WITHIN = timedelta(seconds=10)
"""A run that waits for money asks every second or two, unless it waits for its provider at the same time."""
AMPLE = 4
"""Money for calls to come is granted while this many times as much is left; near the end, for one call at a time."""


@dataclass(frozen=True)
class GrantRequest:
    """What a run asks for. Nanodollars, in total since its beginning."""

    model: str
    spent: int
    least: int
    wanted: int
    keep: int | None = None
    """It gives back what it holds above this."""


@dataclass(frozen=True)
class Granted:
    """What a run may spend in total; if that is less than it needs at least, `short` is the budget that prevents it."""

    total: int
    bounded: bool
    short: Account | None = None
    passing: bool = False
    """Others have reserved what is left, and may return enough of it."""
    claimed: int = 0
    """What goes to runs first that began to wait earlier. Nanodollars."""


def grant(db: Session, core: Core, dispatch: Dispatch, request: GrantRequest) -> Granted:
    """Settle what the run has spent, and grant it as much as its budgets allow.

    The caller holds the order's lock, which recording the end of a run takes too. A repeated request grants nothing
    twice.
    """
    order = db.get_one(Order, dispatch.order_id)
    budgets = budgets_of(db, order, lock=True)
    blocks = _blocks(db, dispatch.id)
    if request.keep is not None:
        _give_back(db, budgets, blocks, max(request.keep, request.spent))
    _settle(db, core, budgets, blocks, request.spent)
    held = sum(block.granted_nusd for block in blocks)
    accounts = accounts_of(db, budgets, core.clock.now())
    needed = request.least - held
    claims = _claims_before(db, core, dispatch) if budgets else []
    left = [Left(each, each.left - sum(claim.of(each.budget) for claim in claims)) for each in accounts]
    more, short = more_for(left, needed, _at_most(order, request.wanted) - held)
    returns = short is not None and short.account.budget.limit_nusd - short.account.spent >= needed
    if needed > 0:
        _note_wait(dispatch, needed if returns else 0, core.clock.now())
    if short is not None:
        claimed = short.account.left - short.left
        return Granted(held, bounded=True, short=short.account, passing=returns, claimed=claimed)
    if more > 0:
        _add_block(db, core, budgets, dispatch, order, request.model, more)
    return Granted(held + more, bounded=bool(budgets))


def settle(db: Session, core: Core, dispatch: Dispatch, spent: int, *, assumed: int = 0) -> None:
    """Record what a run that has ended spent in total; what it did not spend is free.

    `assumed`: how much of it the run did not report. A later, smaller amount corrects that.
    """
    order = db.get_one(Order, dispatch.order_id)
    blocks = _blocks(db, dispatch.id)
    if not blocks and not spent:
        return
    budgets = budgets_of(db, order, lock=True)
    if not blocks:
        # It reserved nothing: what it spent counts all the same.
        blocks = [_add_block(db, core, budgets, dispatch, order, order.model, 0)]
    _settle(db, core, budgets, blocks, spent, assumed=assumed, final=True)


def spent_by(db: Session, run_id: str) -> int:
    """Nanodollars that the run reported in total."""
    return sum(block.reported_nusd for block in _blocks(db, run_id))


def granted_to(db: Session, run_id: str) -> int:
    """Nanodollars that the run was granted in total."""
    return sum(block.granted_nusd for block in _blocks(db, run_id))


def more_for(accounts: Iterable[A], least: int, wanted: int, *, ample: int = AMPLE) -> tuple[int, A | None]:
    """How much to grant; or the account in which not even the least is left."""
    least, wanted = max(least, 0), max(wanted, 0)
    more = wanted
    for account in accounts:
        if least > 0 and account.left < least:
            return 0, account
        enough = account.left >= ample * wanted
        more = min(more, wanted if enough else max(least, min(wanted, account.left // ample)))
    return more, None


def shares(granted: Sequence[int], spent: int) -> list[int]:
    """How much of `spent` each block paid for: the first ones first. What exceeds them all is the last one's."""
    before = [0, *accumulate(granted)]
    paid = [min(own, max(0, spent - earlier)) for own, earlier in zip(granted, before, strict=False)]
    if paid:
        paid[-1] += max(0, spent - before[-1])
    return paid


@dataclass(frozen=True)
class Left:
    """What is left in an account for one run."""

    account: Account
    left: int


@dataclass(frozen=True)
class Claim:
    """What a run needs that waits for money. Nanodollars."""

    order: Order
    needed: int

    def of(self, budget: Budget) -> int:
        """What it needs of this budget."""
        return self.needed if counts_for(budget, self.order) else 0


def _claims_before(db: Session, core: Core, dispatch: Dispatch) -> list[Claim]:
    """What the runs of the organization need that began to wait before this one: it goes to them.

    One that has stopped asking, since it waits for something else by now, keeps its place and claims nothing.
    """
    waiting = (
        Dispatch.organization_id == dispatch.organization_id,
        Dispatch.closed_at.is_(None),
        Dispatch.money_asked_at > core.clock.now() - ASKS_WITHIN,
        Dispatch.id != dispatch.id,
    )
    since = dispatch.money_awaited_since
    before = Dispatch.money_awaited_since < since if since is not None else Dispatch.money_awaited_since.is_not(None)
    found = db.execute(select(Order, Dispatch.money_awaited_nusd).join(Order).where(*waiting, before))
    return [Claim(order, needed) for order, needed in found]


def _note_wait(dispatch: Dispatch, needed: int, now: datetime) -> None:
    """The run waits for so much; 0: it does not wait."""
    dispatch.money_awaited_since = (dispatch.money_awaited_since or now) if needed else None
    dispatch.money_asked_at = now if needed else None
    dispatch.money_awaited_nusd = needed


def _at_most(order: Order, wanted: int) -> int:
    """No run needs much more than its order may cost: else, one drone could reserve all that others need."""
    limit = float(order.limits.get("cost_limit", 0.0))
    # More than the limit, because a person may let it write a summary beyond it.
    return min(wanted, reserved(2 * limit + SUMMARY_USD)) if limit else wanted


def _give_back(db: Session, budgets: Sequence[Budget], blocks: Sequence[SpendingBlock], keep: int) -> None:
    """Shrink the last blocks until the run holds no more than `keep` in total."""
    changes = []
    surplus = sum(block.granted_nusd for block in blocks) - keep
    for block in reversed(blocks):
        back = min(surplus, _reserved(block))
        if back > 0:
            block.granted_nusd -= back
            surplus -= back
            changes.append(Change(block.granted_at, -back, 0))
    db.flush()
    count(db, budgets, changes)


def _settle(  # noqa: PLR0913 - all of one change
    db: Session,
    core: Core,
    budgets: Sequence[Budget],
    blocks: Sequence[SpendingBlock],
    spent: int,
    *,
    assumed: int = 0,
    final: bool = False,
) -> None:
    now = core.clock.now()
    changes = []
    granted = [each.granted_nusd for each in blocks]
    _report(blocks, shares(granted, spent - assumed))
    for block, paid in zip(blocks, shares(granted, spent), strict=True):
        reserved, before = _reserved(block), block.spent_nusd
        block.spent_nusd = paid
        if block.closed_at is None and (final or paid >= block.granted_nusd):
            block.closed_at = now
        if (reserved, before) != (_reserved(block), paid):
            changes.append(Change(block.granted_at, _reserved(block) - reserved, paid - before))
    db.flush()
    count(db, budgets, changes)


def _report(blocks: Sequence[SpendingBlock], told: Sequence[int]) -> None:
    """Add what the run had not reported before. No block's part falls, also if a later block pays for some of it."""
    new = max(0, sum(told) - sum(block.reported_nusd for block in blocks))
    for block, paid in zip(blocks, told, strict=True):
        more = min(new, max(0, paid - block.reported_nusd))
        block.reported_nusd += more
        new -= more


def _add_block(  # noqa: PLR0913, PLR0917 - all of one row
    db: Session, core: Core, budgets: Sequence[Budget], dispatch: Dispatch, order: Order, model: str, amount: int
) -> SpendingBlock:
    block = SpendingBlock(
        organization_id=order.organization_id,
        run_id=dispatch.id,
        order_id=order.id,
        project_id=order.project_id,
        session_id=order.session_id,
        agent_id=order.agent_id,
        user_id=order.user_id,
        drone_id=dispatch.drone_id,
        model=model,
        granted_at=core.clock.now(),
        granted_nusd=amount,
        spent_nusd=0,
        reported_nusd=0,
        closed_at=None,
    )
    db.add(block)
    db.flush()
    count(db, budgets, [Change(block.granted_at, amount, 0)] if amount else [])
    return block


def _blocks(db: Session, run_id: str) -> list[SpendingBlock]:
    db.flush()
    wanted = select(SpendingBlock).where(SpendingBlock.run_id == run_id).order_by(SpendingBlock.id)
    return list(db.scalars(wanted.execution_options(populate_existing=True)))


def _reserved(block: SpendingBlock) -> int:
    return block.granted_nusd - block.spent_nusd if block.closed_at is None else 0
