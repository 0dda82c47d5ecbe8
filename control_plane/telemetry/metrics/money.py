"""Figures of money: what models have cost, and the budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime

from prometheus_client.core import Metric
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.db.orders import Order
from control_plane.db.projects import Provider
from control_plane.db.spending import Budget, SpendingBlock
from control_plane.money.spending.figures import Figures, figures_of
from control_plane.money.spending.targets import target_names
from control_plane.telemetry.metrics.families import counter, gauge
from shared.amounts import dollars

MODELS = 100
"""Pairs of a provider and a model with a series of their own; a drone reports names of models."""
BUDGETS = 100
"""Those of which most is used. Budgets of sessions have no series: there is no end of sessions."""
OTHER = "other"


def cost_metrics(db: Session, names: Mapping[str, str]) -> Iterator[Metric]:
    """`names`: of the organizations, by id."""
    labels = ("organization", "provider", "model")
    yield counter("dronefleet_cost_usd", "What model calls cost, in USD.", labels, _costs(db, names))


def budget_metrics(db: Session, names: Mapping[str, str], now: datetime) -> Iterator[Metric]:
    """`names`: of the organizations, by id. Each budget counts in the period that contains `now`."""
    which = Budget.removed_at.is_(None), Budget.kind != "session"
    alive = db.scalars(select(Budget).where(*which).order_by(Budget.id)).all()
    found = sorted(figures_of(db, alive, now), key=_used, reverse=True)[:BUDGETS]
    called = target_names(db, [each.budget for each in found if each.budget.kind != "user"])
    amounts: dict[str, dict[tuple[str, str, str, str], float]] = {"limit": {}, "spent": {}, "reserved": {}}
    for each in found:
        budget = each.budget
        # The id of users, whose addresses are personal, and of the second of two things of one name: one is removed.
        target = called.get((budget.kind, budget.target_id), budget.target_id)
        key = (names[budget.organization_id], budget.kind, target, budget.per)
        if key in amounts["limit"]:
            key = (*key[:2], budget.target_id, budget.per)
        for what, amount in zip(amounts, (budget.limit_nusd, each.spent, each.reserved), strict=True):
            amounts[what][key] = dollars(amount)
    labels = ("organization", "kind", "target", "per")
    yield gauge("dronefleet_budget_limit_usd", "A budget's limit, in USD.", labels, amounts["limit"].items())
    yield gauge("dronefleet_budget_spent_usd", "Spent in its current period, in USD.", labels, amounts["spent"].items())
    yield gauge("dronefleet_budget_reserved_usd", "Reserved for runs, in USD.", labels, amounts["reserved"].items())


def _costs(db: Session, names: Mapping[str, str]) -> Iterator[tuple[tuple[str, str, str], float]]:
    """The oldest pairs have a series each, so that none of them is ever moved to `other`.

    What a lost run may have spent is left out: Prometheus takes a counter that shrinks for one that began anew.
    """
    by = (SpendingBlock.organization_id, Order.provider_id, SpendingBlock.model)
    summed = select(*by, func.sum(SpendingBlock.reported_nusd)).join(Order, Order.id == SpendingBlock.order_id)
    rows = db.execute(summed.group_by(*by).order_by(func.min(SpendingBlock.id))).all()
    providers = {id_: name for id_, name in db.execute(select(Provider.id, Provider.name))}
    found: Counter[tuple[str, str, str]] = Counter()
    for position, (organization, provider, model, spent) in enumerate(rows):
        own = (providers[provider], model) if position < MODELS else (OTHER, OTHER)
        found[names[organization], *own] += int(spent)
    for key, spent in found.items():
        yield key, dollars(spent)


def _used(figures: Figures) -> float:
    return (figures.spent + figures.reserved) / figures.budget.limit_nusd
