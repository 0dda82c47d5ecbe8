"""Prices of models, set by people over LiteLLM's list. A new price ends the previous one, which is kept as history."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.contract.declarations import prices as declared
from control_plane.contract.declarations.prices import PriceDocument, PriceRequest
from control_plane.contract.validation.checks import unknown
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import locked_organization
from control_plane.db.spending import Price
from control_plane.money.spending.prices import living_prices
from control_plane.operations.gateway import performs
from control_plane.operations.providers import check_model
from control_plane.operations.row_documents import document_of
from shared.errors import Invalid
from shared.names import new_id

MAX_USD = 10_000
"""Per million tokens."""
_NAMES = {
    "input_usd": "the input price",
    "output_usd": "the output price",
    "cache_read_usd": "the price of cache reads",
    "cache_write_usd": "the price of cache writes",
}


@performs(declared.SET)
def set_(core: Core, caller: Caller, model: str, request: PriceRequest) -> PriceDocument:
    """Set the price of a model; it applies to the next model calls. Raises Invalid for an invalid price."""
    check_price(model, request)

    def work(db: Session) -> PriceDocument:
        # One after the other: each ends the price before it.
        locked_organization(db, caller.organization_id)
        now = core.clock.now()
        before = db.scalar(living_prices(caller.organization_id).where(Price.model == model))
        if before is not None:
            before.removed_at = now
            db.flush()
        row = Price(
            id=new_id(),
            organization_id=caller.organization_id,
            model=model,
            set_by=caller.user,
            created_at=now,
            removed_at=None,
            **request.model_dump(),
        )
        db.add(row)
        db.flush()
        return document_of(PriceDocument, row)

    return core.database.transact(work)


@performs(declared.LIST)
def list_(core: Core, caller: Caller) -> list[PriceDocument]:
    """The prices that were set, by model."""
    with core.database.read() as db:
        rows = db.scalars(living_prices(caller.organization_id).order_by(Price.model))
        return [document_of(PriceDocument, row) for row in rows]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, model: str) -> PriceDocument:
    """The price that was set for a model. Raises NotFound with similar names."""
    with core.database.read() as db:
        return document_of(PriceDocument, _find(db, caller, model))


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, model: str) -> PriceDocument:
    """Remove the price that was set for a model. Raises NotFound with similar names."""
    with core.database.write() as db:
        row = _find(db, caller, model)
        row.removed_at = core.clock.now()
        return document_of(PriceDocument, row)


def _find(db: Session, caller: Caller, model: str) -> Price:
    row = db.scalar(living_prices(caller.organization_id).where(Price.model == model))
    if row is None:
        known = [each.model for each in db.scalars(living_prices(caller.organization_id))]
        raise unknown("price", model, known, "fleet price ls")
    return row


def check_price(model: str, request: PriceRequest) -> None:
    """Raise Invalid unless these are a complete price of a model, or only a discount."""
    check_model(model)
    for field, what in _NAMES.items():
        usd = getattr(request, field)
        if usd is not None and not 0 <= usd <= MAX_USD:
            raise Invalid(
                f"{what} must be between 0 and {MAX_USD:,} USD per million tokens: {usd:g} given",
                code="E-PRICE",
                next=f"for example: fleet price set {model} --input 2.5 --output 10",
            )
    if not 0 <= request.discount_percent <= 100:
        raise Invalid(
            f"a discount must be between 0 and 100 %: {request.discount_percent:g} given",
            code="E-PRICE",
            next=f"for example: fleet price set {model} --discount 15",
        )
    given = {field for field in _NAMES if getattr(request, field) is not None}
    if not {"input_usd", "output_usd"} <= given and (given or not request.discount_percent):
        missing = [what for field, what in _NAMES.items() if field in {"input_usd", "output_usd"} - given]
        raise Invalid(
            f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} missing",
            code="E-PRICE",
            why="a price has both; a discount alone applies to the prices of LiteLLM's list",
            next=f"fleet price set {model} --input USD --output USD    or: fleet price set {model} --discount PERCENT",
        )
