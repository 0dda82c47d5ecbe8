"""The prices that an organization has set, as runs are charged."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from control_plane.core.lookups.providers import model_now
from control_plane.db.orders import Order
from control_plane.db.projects import Provider
from control_plane.db.spending import Price
from shared.budgets import ModelPrice

TOKENS = 1_000_000
"""Rows have the price of so many tokens."""


def prices_of(db: Session, organization_id: str, models: Collection[str]) -> tuple[ModelPrice, ...]:
    """USD per token for those of the models for which the organization has set a price, by model."""
    wanted = living_prices(organization_id).where(Price.model.in_(models)).order_by(Price.model)
    return tuple(_per_token(row) for row in db.scalars(wanted)) if models else ()


def prices_for(db: Session, order: Order) -> tuple[ModelPrice, ...]:
    """The same for the models that the order's runs may use: its own, its reviewer's, and those of the fallbacks."""
    reviewer = db.get_one(Provider, order.reviewer_id) if order.reviewer_id else None
    provider = db.get_one(Provider, order.provider_id)
    fallbacks = select(Provider.model).where(
        Provider.organization_id == order.organization_id,
        Provider.name.in_([*provider.fallbacks, *(reviewer.fallbacks if reviewer else ())]),
        Provider.removed_at.is_(None),
    )
    # A run that has begun keeps its model, and one that is not sent yet gets that of its provider.
    own = {order.model, model_now(db, order), *([reviewer.model] if reviewer else [])}
    return prices_of(db, order.organization_id, own | set(db.scalars(fallbacks)))


def living_prices(organization_id: str) -> Select[Price]:
    return select(Price).where(Price.organization_id == organization_id, Price.removed_at.is_(None))


def _per_token(row: Price) -> ModelPrice:
    amounts = {
        "input": row.input_usd,
        "output": row.output_usd,
        "cache_read": row.cache_read_usd,
        "cache_write": row.cache_write_usd,
    }
    per_token = {name: None if usd is None else usd / TOKENS for name, usd in amounts.items()}
    return ModelPrice(model=row.model, discount=row.discount_percent, **per_token)
