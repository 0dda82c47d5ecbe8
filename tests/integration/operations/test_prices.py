"""Prices of models, as people set them and as runs are charged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.contract.declarations.prices import PriceDocument, PriceRequest
from control_plane.core import Caller, Core
from control_plane.db.spending import Price
from control_plane.money.spending.prices import prices_of
from control_plane.operations import prices
from shared.budgets import ModelPrice
from tests.support.organizations import add_organization
from tests.support.refusals import code_of

MODEL = "openai/gpt-x"


def set_price(core: Core, caller: Caller, model: str = MODEL, **fields: Any) -> PriceDocument:
    return prices.set_(core, caller, model, PriceRequest(**fields))


def charged(core: Core, caller: Caller, *models: str) -> tuple[ModelPrice, ...]:
    with core.database.read() as db:
        return prices_of(db, caller.organization_id, models)


def test_a_price_comes_back_as_it_was_set_and_runs_are_charged_per_token(core: Core, admin: Caller) -> None:
    fields = {"input_usd": 2.5, "output_usd": 10, "cache_read_usd": 0.25, "discount_percent": 15}
    made = set_price(core, admin, **fields)
    assert made.model_dump(include=set(fields)) == fields
    assert (made.model, made.cache_write_usd, made.set_by) == (MODEL, None, "system")
    assert prices.show(core, admin, MODEL) == made == prices.list_(core, admin)[0]
    one = ModelPrice(model=MODEL, input=2.5e-6, output=1e-5, cache_read=2.5e-7, discount=15)
    assert (charged(core, admin, "openai/other", MODEL), charged(core, admin)) == ((one,), ())
    # A discount alone leaves the prices to the list, and zero is a price.
    set_price(core, admin, discount_percent=100)
    set_price(core, admin, "ollama/local", input_usd=0, output_usd=0)
    assert charged(core, admin, MODEL, "ollama/local") == (
        ModelPrice(model="ollama/local", input=0, output=0),
        ModelPrice(model=MODEL, discount=100),
    )


def test_what_is_no_price_is_refused(core: Core, admin: Caller) -> None:
    refused: tuple[dict[str, Any], ...] = (
        {"input_usd": -1, "output_usd": 1},
        {"input_usd": 1, "output_usd": 10_000.1},
        {"input_usd": 1, "output_usd": 1, "cache_read_usd": -0.1},
        {"discount_percent": 101},
        {"discount_percent": -1},
        {"input_usd": 1},
        {"output_usd": 1, "discount_percent": 5},
        {"cache_write_usd": 1},
        {"discount_percent": 0},
    )
    for fields in refused:
        assert code_of(lambda fields=fields: set_price(core, admin, **fields)) == "E-PRICE", fields
    for model in ("a model", "", "x" * 256):
        assert code_of(lambda model=model: set_price(core, admin, model, input_usd=1, output_usd=1)) != ""
    assert prices.list_(core, admin) == []


def test_a_new_price_ends_the_one_before_which_is_kept_and_a_removed_one_applies_no_more(
    core: Core, admin: Caller
) -> None:
    payments = add_organization(core, admin)
    set_price(core, payments, discount_percent=50)
    first, second = (set_price(core, admin, input_usd=usd, output_usd=usd) for usd in (1, 2))
    assert [each.id for each in prices.list_(core, admin)] == [second.id]
    with core.database.read() as db:
        rows = {row.id: row.removed_at for row in db.scalars(select(Price))}
    assert (rows[first.id], rows[second.id]) == (core.clock.now(), None)
    assert prices.remove(core, admin, MODEL).id == second.id
    assert (prices.list_(core, admin), charged(core, admin, MODEL)) == ([], ())
    assert charged(core, payments, MODEL)[0].discount == 50


@pytest.mark.dialects
def test_several_who_set_a_price_at_once_leave_one(core: Core, admin: Caller) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda usd: set_price(core, admin, input_usd=usd, output_usd=usd), [1, 2, 3, 4]))
    assert len(prices.list_(core, admin)) == 1
