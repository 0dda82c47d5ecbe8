"""Webhooks: addresses that receive signed messages about what people wait for."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from control_plane.declarations.operation import READS, About, ByHand, Command, NoDoor, Operation, Tool
from control_plane.documents.base import Document, Request

MAX_LISTED = 1000
NAME = About("webhook", "The name of the webhook.", source="webhooks:name")
URL = About("url", "Where messages go: an http or https address.")
SECRET = About(
    "secret",
    "The signing secret: whsec_ and base64.",
    absent="one is made",
    secret=True,
    reader="typed_values:or_stdin",
)
EVENTS = About(
    "events",
    "What it is told of, such as order.failed or task.waiting.",
    absent="every event",
    flag="--event",
    none="--every-event",
)
ENABLED = About("state", "Switch it on, or off.", flag="--on/--off")
MESSAGE = About("message", "The id of a message.")
LAST_ERROR = About("last error")


class WebhookRequest(Request):
    name: Annotated[str, NAME]
    url: Annotated[str, URL]
    secret: Annotated[str | None, SECRET] = Field(None, repr=False)
    events: Annotated[list[str], EVENTS] = Field(default_factory=list)


class WebhookEdit(Request):
    """Only the fields that are set change."""

    url: Annotated[str | None, URL] = None
    secret: Annotated[str | None, SECRET] = Field(None, repr=False)
    events: Annotated[list[str] | None, EVENTS] = None
    enabled: Annotated[bool | None, ENABLED] = None


class DeliveryFilter(Request):
    limit: Annotated[int, About("limit", "At most so many, the newest first.")] = Field(100, ge=1, le=MAX_LISTED)


class WebhookDocument(Document):
    id: str
    name: Annotated[str, NAME]
    url: Annotated[str, URL]
    secret: Annotated[str | None, About("secret")]
    """Shown once, when it is generated."""
    events: Annotated[list[str], EVENTS]
    enabled: Annotated[bool, ENABLED]
    failing_since: Annotated[datetime | None, About("failing since")]
    waiting: Annotated[int, About("waiting", unit="messages")]
    """Messages that were not accepted yet."""
    last_at: Annotated[datetime | None, About("last")]
    last_error: Annotated[str, LAST_ERROR]
    created_at: datetime


class WebhookDeliveryDocument(Document):
    id: Annotated[str, MESSAGE]
    event: Annotated[str, About("event")]
    attempts: Annotated[int, About("attempts")]
    status_code: Annotated[int | None, About("answer")]
    error: Annotated[str, About("error")]
    created_at: Annotated[datetime, About("at")]
    next_at: Annotated[datetime | None, About("next")]
    done_at: Annotated[datetime | None, About("done")]


NAMES = {"name": Annotated[str, NAME]}
SENDS_OUT = NoDoor("it decides what leaves the fleet, and where it goes: a person does that")

ADD = Operation(
    name="create_webhook",
    role="admin",
    route="POST /webhooks",
    status=201,
    errors=(409, 413),
    run="automation.webhooks:create",
    request=WebhookRequest,
    answer=WebhookDocument,
    summary="Add a webhook",
    more="The answer has the secret; it is shown this once.",
    tool=SENDS_OUT,
    command=Command(
        "webhook add",
        "Add a webhook. Messages are signed as Standard Webhooks says; the secret is shown this once.",
        "fleet webhook add chat --url https://chat.example.org/fleet --event task.waiting",
        arguments=("name",),
        then="Give the receiver this secret; it is not shown again.\n  next  fleet webhook test {name}",
    ),
)
LIST = Operation(
    name="list_webhooks",
    role="viewer",
    route="GET /webhooks",
    run="automation.webhooks:list_",
    answer=list[WebhookDocument],
    summary="All webhooks",
    tool=Tool(
        "list_webhooks",
        "List webhooks",
        READS,
        "The webhooks: addresses outside that are told of events. waiting counts messages that were not taken yet, "
        "last_error says why the last one failed; list_webhook_deliveries has single messages. Secrets are not shown.",
    ),
    command=Command(
        "webhook ls",
        "List the webhooks.",
        "fleet webhook ls",
        columns=("name", "enabled", "url", "waiting", "last_at", "last_error"),
        empty="no webhooks; fleet webhook add makes one",
    ),
)
SHOW = Operation(
    name="show_webhook",
    role="viewer",
    route="GET /webhooks/{name}",
    names=NAMES,
    errors=(404,),
    run="automation.webhooks:show",
    answer=WebhookDocument,
    summary="One webhook",
    tool=NoDoor("list_webhooks has every field of each"),
    command=Command("webhook show", "Show a webhook.", "fleet webhook show chat"),
)
EDIT = Operation(
    name="edit_webhook",
    role="admin",
    route="PATCH /webhooks/{name}",
    names=NAMES,
    errors=(404, 413),
    run="automation.webhooks:edit",
    request=WebhookEdit,
    answer=WebhookDocument,
    summary="Change the fields that are given",
    tool=SENDS_OUT,
    command=Command("webhook edit", "Change a webhook; only what is named changes.", "fleet webhook edit chat --on"),
)
TEST = Operation(
    name="test_webhook",
    role="admin",
    route="POST /webhooks/{name}/test",
    names=NAMES,
    errors=(404,),
    run="automation.webhooks:test",
    answer=WebhookDeliveryDocument,
    summary="Send fleet.test now, once",
    more="Takes as long as the receiver does, up to 15 s.",
    tool=SENDS_OUT,
    command=ByHand("webhook test", "its exit code says whether the receiver took the message"),
)
DELIVERIES = Operation(
    name="list_deliveries",
    role="viewer",
    route="GET /webhooks/{name}/deliveries",
    names=NAMES,
    errors=(404,),
    run="automation.webhooks:deliveries",
    request=DeliveryFilter,
    answer=list[WebhookDeliveryDocument],
    summary="The newest messages to it",
    tool=Tool(
        "list_webhook_deliveries",
        "List a webhook's messages",
        READS,
        "The newest messages to a webhook, with what became of each: done_at is set once it was taken or given up, "
        "error says why it was not taken, next_at when it is sent again. list_webhooks has the names.",
        about={"limit": "How many messages, the newest first. Default: 20."},
        defaults={"limit": 20},
    ),
    command=Command(
        "webhook deliveries",
        "List the messages to a webhook: those that were taken, those that wait, those that were given up.",
        "fleet webhook deliveries chat",
        defaults={"limit": 20},
        text="webhooks:deliveries_table",
    ),
)
RESEND = Operation(
    name="resend_delivery",
    role="admin",
    route="POST /webhooks/{name}/deliveries/{message}/resend",
    names={**NAMES, "message": Annotated[str, MESSAGE]},
    errors=(404, 409),
    run="automation.webhooks:resend",
    answer=WebhookDeliveryDocument,
    summary="Send a message again",
    more="It keeps its id, so that the receiver recognizes a repetition, and has all its attempts again.",
    tool=SENDS_OUT,
    command=Command(
        "webhook resend",
        "Send a message again, with the same id; `fleet webhook deliveries` lists the messages.",
        "fleet webhook resend chat MESSAGE",
    ),
)
REMOVE = Operation(
    name="remove_webhook",
    role="admin",
    route="DELETE /webhooks/{name}",
    names=NAMES,
    errors=(404,),
    run="automation.webhooks:remove",
    answer=WebhookDocument,
    summary="Remove a webhook",
    tool=NoDoor("what a person set up is removed by a person"),
    command=Command(
        "webhook rm",
        "Remove a webhook; what waits for it is not sent any more.",
        "fleet webhook rm chat",
        confirm="Remove webhook {name}?",
        done="webhook {name} is removed",
    ),
)
