"""Prices: what models cost in the organization, in place of LiteLLM's list."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from control_plane.contract.declarations.operation import READS, About, Command, NoDoor, Operation, Tool
from control_plane.contract.documents.base import Document, Request

MODEL = About(
    "model", "LiteLLM name of the model, as in its provider, such as openai/gpt-x.", source="prices:model", slashes=True
)
LISTED = "as in LiteLLM's list"
INPUT = About("input", "Price of a million input tokens.", unit="USD", absent=LISTED, flag="--input")
OUTPUT = About("output", "Price of a million output tokens.", unit="USD", absent=LISTED, flag="--output")
CACHE_READ = About(
    "cache read", "Price of a million tokens read from a cache.", unit="USD", absent=LISTED, flag="--cache-read"
)
CACHE_WRITE = About(
    "cache write",
    "Price of a million tokens written to a cache.",
    unit="USD",
    absent=LISTED,
    flag="--cache-write",
)
DISCOUNT = About("discount", "Discount on all of the model's prices, in percent.", unit="%", flag="--discount")
NUMBER = Field(None, allow_inf_nan=False)


class PriceRequest(Request):
    """Both the input and the output price, or only a discount on those of LiteLLM's list."""

    input_usd: Annotated[float | None, INPUT] = NUMBER
    output_usd: Annotated[float | None, OUTPUT] = NUMBER
    cache_read_usd: Annotated[float | None, CACHE_READ] = NUMBER
    cache_write_usd: Annotated[float | None, CACHE_WRITE] = NUMBER
    discount_percent: Annotated[float, DISCOUNT] = Field(0.0, allow_inf_nan=False)


class PriceDocument(Document):
    """USD per million tokens."""

    id: str
    model: Annotated[str, MODEL]
    input_usd: Annotated[float | None, INPUT]
    output_usd: Annotated[float | None, OUTPUT]
    cache_read_usd: Annotated[float | None, CACHE_READ]
    cache_write_usd: Annotated[float | None, CACHE_WRITE]
    discount_percent: Annotated[float, DISCOUNT]
    set_by: Annotated[str, About("set by")]
    created_at: Annotated[datetime, About("since")]


ONE = "/prices/{model}"
NAMES = {"model": Annotated[str, Field(max_length=255), MODEL]}
PEOPLE_DECIDE = NoDoor("prices decide what may be spent, which is left to people")

SET = Operation(
    name="set_price",
    role="admin",
    route=f"PUT {ONE}",
    names=NAMES,
    request=PriceRequest,
    answer=PriceDocument,
    summary="Set the price of a model, in USD per million tokens",
    more="Applies to the next model calls. What was already spent stays as it was charged.",
    tool=PEOPLE_DECIDE,
    command=Command(
        "price set",
        "Set the price of a model, in USD per million tokens; 0 for a model on your own machine.",
        "fleet price set openai/gpt-x --input 2.5 --output 10 --cache-read 0.25",
    ),
)
LIST = Operation(
    name="list_prices",
    role="viewer",
    route="GET /prices",
    answer=list[PriceDocument],
    summary="List the prices that differ from LiteLLM's list",
    tool=Tool(
        "list_prices",
        "List prices",
        READS,
        "List the prices of models that people set for this organization, in USD per million tokens; null means: as in "
        "LiteLLM's public list, which also applies to all other models. discount_percent is taken off each price.",
    ),
    command=Command(
        "price ls",
        "List the prices that differ from LiteLLM's list, in USD per million tokens.",
        "fleet price ls",
        columns=("model", "input_usd", "output_usd", "cache_read_usd", "cache_write_usd", "discount_percent"),
        empty="no prices set: those of LiteLLM's list apply",
    ),
)
SHOW = Operation(
    name="show_price",
    role="viewer",
    route=f"GET {ONE}",
    names=NAMES,
    errors=(404,),
    answer=PriceDocument,
    summary="Show the price that was set for a model",
    tool=NoDoor("list_prices returns every field"),
    command=Command("price show", "Show the price that was set for a model.", "fleet price show openai/gpt-x"),
)
REMOVE = Operation(
    name="remove_price",
    role="admin",
    route=f"DELETE {ONE}",
    names=NAMES,
    errors=(404,),
    answer=PriceDocument,
    summary="Remove the price that was set for a model",
    tool=PEOPLE_DECIDE,
    command=Command(
        "price rm",
        "Remove the price that was set for a model; that of LiteLLM's list applies again.",
        "fleet price rm openai/gpt-x",
        confirm="Remove the price of {model}?",
        done="price of {model} removed; that of LiteLLM's list applies again",
    ),
)
