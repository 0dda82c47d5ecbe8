"""Budgets: set, read and removed by people; the ledger keeps runs within them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.contract.declarations import budgets as declared
from control_plane.contract.declarations.budgets import BudgetDocument, BudgetRequest, BudgetsDocument
from control_plane.contract.validation.checks import shown
from control_plane.contract.validation.time_zones import check_zone
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import in_organization
from control_plane.db.spending import Budget
from control_plane.money.spending.budget_amounts import check_limit
from control_plane.money.spending.figures import Figures, figures_of
from control_plane.money.spending.setting import BudgetTarget, Terms, budgets_for, remove_budgets, set_budget
from control_plane.money.spending.targets import KINDS, check_kind, find_target, target_names
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of
from shared.amounts import dollars
from shared.errors import NotFound
from shared.terminal.doctor import OK, WARN, Check

T = TypeVar("T")
_NAMED = 5
"""Budgets that a check names."""


@performs(declared.SET)
def set_(core: Core, caller: Caller, kind: str, name: str, request: BudgetRequest) -> BudgetDocument:
    """Set a budget, and count what was already spent in its current period.

    Raises NotFound with similar names, Invalid for an invalid amount, kind or zone.
    """
    caller = _entered(core, caller, kind, name)
    zone = check_zone(request.zone) if request.zone is not None else None
    terms = Terms(request.per, check_limit(request.usd), zone, caller.user)

    def work(db: Session) -> BudgetDocument:
        account = set_budget(db, core, find_target(db, caller, kind, name), terms)
        return _documents(db, core, [account.budget])[0]

    return transacted(core, work)


@performs(declared.LIST)
def list_(core: Core, caller: Caller) -> list[BudgetDocument]:
    """The budgets of the organization, by kind, name and period."""
    wanted = select(Budget).where(Budget.organization_id == caller.organization_id, Budget.removed_at.is_(None))
    with core.database.read() as db:
        found = _documents(db, core, db.scalars(wanted.order_by(Budget.id)).all())
    return sorted(found, key=lambda each: (KINDS.index(each.kind), each.name, each.per))


@performs(declared.SHOW)
def show(core: Core, caller: Caller, kind: str, name: str) -> BudgetsDocument:
    """The budgets of one target. Raises NotFound for an unknown target with similar names, and if it has none."""
    caller = _entered(core, caller, kind, name)
    with core.database.read() as db:
        target = find_target(db, caller, kind, name)
        return _of_target(db, core, target, budgets_for(db, target), name)


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, kind: str, name: str, per: str | None = None) -> BudgetsDocument:
    """Remove the budgets of one target, or the one per this period; returns them as they were.

    Raises NotFound if there is none.
    """
    caller = _entered(core, caller, kind, name)

    def work(db: Session) -> BudgetsDocument:
        target = find_target(db, caller, kind, name)
        before = [budget for budget in budgets_for(db, target) if per in {None, budget.per}]
        document = _of_target(db, core, target, before, name, per)
        remove_budgets(db, core, target, *(budget.per for budget in before))
        return document

    return core.database.transact(work)


def pressing(core: Core, organization_id: str) -> list[BudgetDocument]:
    """The budgets of which little or nothing is left, the exhausted ones first."""
    wanted = select(Budget).where(Budget.organization_id == organization_id, Budget.removed_at.is_(None))
    with core.database.read() as db:
        near = [each for each in figures_of(db, db.scalars(wanted).all(), core.clock.now()) if each.state != "ok"]
        names = target_names(db, [each.budget for each in near])
    found = [budget_document(each, names[each.budget.kind, each.budget.target_id]) for each in near]
    return sorted(found, key=lambda each: (each.state, -each.percent, each.name))


def check(core: Core, organization_id: str) -> Check:
    """Whether enough is left of each budget, for `fleet doctor` and the inbox."""
    near = pressing(core, organization_id)
    if not near:
        return Check("D-BUDGETS", OK, "budgets", "enough is left of each")
    named = [f"{each.kind} {each.name} {period(each.per)}: {each.state}, {each.percent:g} % spent" for each in near]
    more = f"; and {len(near) - _NAMED} more" if len(near) > _NAMED else ""
    fix = "fleet budget ls    then: fleet budget set KIND NAME USD --per PERIOD"
    return Check("D-BUDGETS", WARN, "budgets", "; ".join(named[:_NAMED]) + more, fix=fix)


def period(per: str) -> str:
    """`per day`, or `in total`."""
    return "in total" if per == "total" else f"per {per}"


def transacted(core: Core, work: Callable[[Session], T]) -> T:
    """The result of a transaction that sets a budget, repeated if another one created the same budget meanwhile."""
    try:
        return core.database.transact(work)
    except IntegrityError:
        return core.database.transact(work)


def _entered(core: Core, caller: Caller, kind: str, name: str) -> Caller:
    """The caller; for the budget of an organization, acting there. Raises Invalid for an unknown kind, NotFound."""
    return in_organization(core, caller, name) if check_kind(kind) == "organization" else caller


def _of_target(  # noqa: PLR0913, PLR0917 - what the error for no budget names
    db: Session, core: Core, target: BudgetTarget, budgets: Sequence[Budget], name: str, per: str | None = None
) -> BudgetsDocument:
    if not budgets:
        which = f"budget {period(per)}" if per else "budget"
        raise NotFound(
            f"{target.kind} {shown(name)} has no {which}",
            code="E-BUDGET-404",
            next=f"fleet budget ls    or set one: fleet budget set {target.kind} {name} USD --per {per or 'day'}",
        )
    documents = _documents(db, core, budgets)
    return BudgetsDocument(kind=target.kind, name=documents[0].name, budgets=documents)


def _documents(db: Session, core: Core, budgets: Iterable[Budget]) -> list[BudgetDocument]:
    rows = list(budgets)
    names = target_names(db, rows)
    found = figures_of(db, rows, core.clock.now())
    return [budget_document(each, names[each.budget.kind, each.budget.target_id]) for each in found]


def budget_document(figures: Figures, name: str) -> BudgetDocument:
    """The budget as people and scripts see it."""
    forecast = figures.forecast
    return document_of(
        BudgetDocument,
        figures.budget,
        name=name,
        limit_usd=dollars(figures.budget.limit_nusd),
        spent_usd=dollars(figures.spent),
        reserved_usd=dollars(figures.reserved),
        left_usd=dollars(figures.left),
        percent=figures.percent,
        forecast_usd=None if forecast is None else dollars(forecast),
        state=figures.state,
        refuses=figures.refuses,
        period_begins_at=figures.begins_at,
        period_ends_at=figures.ends_at,
    )
