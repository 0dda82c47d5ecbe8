"""Providers: where models are reached, and with which key; keys are write-only."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from control_plane.contract.declarations.checks import CHECK, CHECK_AGAIN, ProviderCheckDocument
from control_plane.contract.declarations.operation import READS, SETS, About, ByHand, Command, NoDoor, Operation, Tool
from control_plane.contract.documents.base import Document, Request
from shared.work_order import Protocol, RotationOrder, ThinkingLevel

MAX_WINDOW = 1_000_000_000
"""Tokens."""
MAX_RATE = 1_000_000_000
"""Requests or tokens per minute."""
ProviderThinking = Literal["auto", ThinkingLevel]
NAME = About("provider", "The provider's name.", source="providers:name")
MODEL = About("model", "LiteLLM name of the model, such as openai/gpt-x.")
API_BASE = About("api base", "Base URL of the endpoint, including /v1.", absent="the model's default endpoint")
WINDOW = About(
    "context window", "Context window of the model in tokens (0 = automatic).", unit="tokens", absent="automatic"
)
PROTOCOL = About("protocol", "How the model calls tools: auto, tools (natively) or text (in fenced blocks).")
THINKING = About(
    "thinking",
    "How much the model thinks, unless the order says: auto (the model's default), off, minimal, low, medium, high or "
    "xhigh.",
)
PARAMS = About(
    "params", "Model parameter k=v, such as temperature=0.", absent="none", flag="--param", none="--no-params"
)
FALLBACKS = About(
    "fallbacks",
    "Provider to try when this one fails.",
    absent="none",
    source="providers:name",
    flag="--fallback",
    none="--no-fallbacks",
)
ROTATION = About(
    "rotation",
    "How the models of the provider and its fallbacks take turns: off (fallbacks only replace one that fails), "
    "alternate (answer by answer) or random.",
)
RPM = About(
    "rpm",
    "Requests per minute for all runs with its key together (0 = the limit that the endpoint names).",
    unit="requests per minute",
    absent="as the endpoint names it",
)
TPM = About(
    "tpm",
    "Tokens per minute, input and output, for all runs with its key together (0 = the limit that the endpoint names).",
    unit="tokens per minute",
    absent="as the endpoint names it",
)
API_KEY = About("key", "API key of the endpoint.", secret=True)
KEY_VARIABLE = About(
    "key variable", "Keep the key on the drone, in this environment variable.", flag="--key-on-drone", metavar="VAR"
)
NO_KEY = About("no key", "The endpoint requires no key.")


class ProviderRequest(Request):
    name: Annotated[str, NAME]
    model: Annotated[str, MODEL]
    api_base: Annotated[str | None, API_BASE] = None
    context_window: Annotated[int, WINDOW] = Field(0, ge=0, le=MAX_WINDOW)
    protocol: Annotated[Protocol, PROTOCOL] = "auto"
    thinking: Annotated[ProviderThinking, THINKING] = "auto"
    params: Annotated[dict[str, Any], PARAMS] = Field(default_factory=dict)
    fallbacks: Annotated[list[str], FALLBACKS] = Field(default_factory=list)
    rotation: Annotated[RotationOrder, ROTATION] = "off"
    rpm: Annotated[int, RPM] = Field(0, ge=0, le=MAX_RATE)
    tpm: Annotated[int, TPM] = Field(0, ge=0, le=MAX_RATE)
    api_key: Annotated[str | None, API_KEY] = Field(None, repr=False)
    key_variable: Annotated[str | None, KEY_VARIABLE] = None
    no_key: Annotated[bool, NO_KEY] = False
    check: Annotated[bool, CHECK] = False


class ProviderEdit(Request):
    """Only the given fields change."""

    model: Annotated[str | None, MODEL] = None
    api_base: Annotated[str | None, API_BASE] = None
    context_window: Annotated[int | None, WINDOW] = Field(None, ge=0, le=MAX_WINDOW)
    protocol: Annotated[Protocol | None, PROTOCOL] = None
    thinking: Annotated[ProviderThinking | None, THINKING] = None
    params: Annotated[dict[str, Any] | None, PARAMS] = None
    fallbacks: Annotated[list[str] | None, FALLBACKS] = None
    rotation: Annotated[RotationOrder | None, ROTATION] = None
    rpm: Annotated[int | None, RPM] = Field(None, ge=0, le=MAX_RATE)
    tpm: Annotated[int | None, TPM] = Field(None, ge=0, le=MAX_RATE)
    api_key: Annotated[str | None, API_KEY] = Field(None, repr=False)
    key_variable: Annotated[str | None, KEY_VARIABLE] = None
    no_key: Annotated[bool, NO_KEY] = False
    check: Annotated[bool | None, CHECK_AGAIN] = None


class ProviderDocument(Document):
    id: str
    name: Annotated[str, NAME]
    model: Annotated[str, MODEL]
    api_base: Annotated[str | None, API_BASE]
    context_window: Annotated[int, WINDOW]
    protocol: Annotated[str, PROTOCOL]
    thinking: Annotated[str, THINKING]
    params: Annotated[dict[str, Any], PARAMS]
    fallbacks: Annotated[list[str], FALLBACKS]
    rotation: Annotated[str, ROTATION]
    rpm: Annotated[int, RPM]
    tpm: Annotated[int, TPM]
    key: Annotated[str, About("key")]
    """`sealed`, `on drone: VARIABLE` or `none`; never the key."""
    check: Annotated[ProviderCheckDocument, CHECK]
    created_at: datetime


NAMES = {"name": Annotated[str, NAME]}
KEYS_STAY_OUT = NoDoor("a key must not pass through a model's conversation")

ADD = Operation(
    name="add_provider",
    role="admin",
    route="POST /providers",
    status=201,
    errors=(404, 409),
    request=ProviderRequest,
    answer=ProviderDocument,
    summary="Add a provider",
    tool=KEYS_STAY_OUT,
    command=Command(
        "provider add",
        "Add a provider. The key is sealed on arrival and never shown again.",
        "fleet provider add main --model openai/gpt-x --api-key-env OPENAI_API_KEY",
        arguments=("name",),
        defaults={"check": True},
    ),
)
LIST = Operation(
    name="list_providers",
    role="viewer",
    route="GET /providers",
    answer=list[ProviderDocument],
    summary="List providers",
    tool=Tool(
        "list_providers",
        "List providers",
        READS,
        "List the model providers. Other tools take a provider's name as `provider`. Keys are never shown.",
    ),
    command=Command(
        "provider ls",
        "List the providers.",
        "fleet provider ls",
        columns=("name", "check", "model", "api_base", "key", "fallbacks"),
        empty="no providers; fleet provider add creates one",
    ),
)
SHOW = Operation(
    name="show_provider",
    role="viewer",
    route="GET /providers/{name}",
    names=NAMES,
    errors=(404,),
    answer=ProviderDocument,
    summary="Show a provider",
    tool=NoDoor("list_providers returns every field"),
    command=Command("provider show", "Show a provider, without its key.", "fleet provider show NAME"),
)
EDIT = Operation(
    name="edit_provider",
    role="admin",
    route="PATCH /providers/{name}",
    names=NAMES,
    errors=(404,),
    request=ProviderEdit,
    answer=ProviderDocument,
    summary="Change the given fields",
    tool=KEYS_STAY_OUT,
    command=Command(
        "provider edit",
        "Change a provider; only the given options change.",
        "fleet provider edit NAME --param temperature=0",
    ),
)
TEST = Operation(
    name="test_provider",
    role="operator",
    route="POST /providers/{name}/test",
    names=NAMES,
    errors=(404,),
    answer=ProviderDocument,
    summary="Try a provider on a drone that may use its key",
    more="It makes a call of one token and one that has to call a tool. The provider's `check` shows the result.",
    tool=Tool(
        "test_provider",
        "Try a provider",
        SETS,
        "Let a drone try a model provider with two tiny calls. Returns the provider; once its check is ok or failed, "
        "which list_providers shows, the check says whether it works, and if not, why. Requires the operator role.",
    ),
    command=ByHand("provider test", "it waits for the result"),
)
REMOVE = Operation(
    name="remove_provider",
    role="admin",
    route="DELETE /providers/{name}",
    names=NAMES,
    errors=(404, 409),
    answer=ProviderDocument,
    summary="Remove a provider; orders that used it are kept",
    tool=NoDoor("removal is left to people"),
    command=Command(
        "provider rm",
        "Remove a provider; orders that used it are kept.",
        "fleet provider rm NAME",
        confirm="Remove provider {name}?",
        done="provider {name} removed",
    ),
)
