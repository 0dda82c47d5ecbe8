"""Webhooks: addresses that receive signed messages about what people wait for."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from control_plane.contract.declarations.operation import READS, About, ByHand, Command, NoDoor, Operation, Tool
from control_plane.contract.documents.base import Document, Request

MAX_LISTED = 1000
NAME = About("webhook", "Name of the webhook.", source="webhooks:name")
URL = About("url", "URL that receives the messages (http or https).")
SECRET = About(
    "secret",
    "Signing secret: whsec_ followed by base64.",
    absent="generated",
    secret=True,
    input="stdin",
)
EVENTS = About(
    "events",
    "Events to send, such as order.failed or task.waiting.",
    absent="every event",
    flag="--event",
    none="--every-event",
)
ENABLED = About("state", "Enable or disable it.", flag="--on/--off")
MESSAGE = About("message", "Id of the message.")
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
    limit: Annotated[int, About("limit", "Maximum number of results, newest first.")] = Field(100, ge=1, le=MAX_LISTED)


class WebhookDocument(Document):
    id: str
    name: Annotated[str, NAME]
    url: Annotated[str, URL]
    secret: Annotated[str | None, About("secret")]
    """Shown once, when it is generated."""
    events: Annotated[list[str], EVENTS]
    enabled: Annotated[bool, ENABLED]
    failing_since: Annotated[datetime | None, About("failing since")]
    waiting: Annotated[int, About("pending", unit="messages")]
    """Messages that were not accepted yet."""
    last_at: Annotated[datetime | None, About("last attempt")]
    last_error: Annotated[str, LAST_ERROR]
    created_at: datetime


class WebhookDeliveryDocument(Document):
    id: Annotated[str, MESSAGE]
    event: Annotated[str, About("event")]
    attempts: Annotated[int, About("attempts")]
    status_code: Annotated[int | None, About("status code")]
    error: Annotated[str, About("error")]
    created_at: Annotated[datetime, About("created")]
    next_at: Annotated[datetime | None, About("next attempt")]
    done_at: Annotated[datetime | None, About("finished")]


NAMES = {"name": Annotated[str, NAME]}
SENDS_OUT = NoDoor("it sends data out of the fleet, so only people set it up")

ADD = Operation(
    name="create_webhook",
    role="admin",
    route="POST /webhooks",
    status=201,
    errors=(409, 413),
    request=WebhookRequest,
    answer=WebhookDocument,
    summary="Add a webhook",
    more="The answer contains the secret, which is shown only once.",
    tool=SENDS_OUT,
    command=Command(
        "webhook add",
        "Add a webhook. Messages are signed as specified by Standard Webhooks; the secret is shown only once.",
        "fleet webhook add chat --url https://chat.example.org/fleet --event task.waiting",
        arguments=("name",),
        then="Give this secret to the receiver; it is not shown again.\n  next  fleet webhook test {name}",
    ),
)
LIST = Operation(
    name="list_webhooks",
    role="viewer",
    route="GET /webhooks",
    answer=list[WebhookDocument],
    summary="List webhooks",
    tool=Tool(
        "list_webhooks",
        "List webhooks",
        READS,
        "List the webhooks: external URLs that receive events. waiting counts the messages not delivered yet, "
        "last_error says why the last attempt failed. list_webhook_deliveries lists the messages of one webhook. "
        "Secrets are not shown.",
    ),
    command=Command(
        "webhook ls",
        "List the webhooks.",
        "fleet webhook ls",
        columns=("name", "enabled", "url", "waiting", "last_at", "last_error"),
        empty="no webhooks; fleet webhook add creates one",
    ),
)
SHOW = Operation(
    name="show_webhook",
    role="viewer",
    route="GET /webhooks/{name}",
    names=NAMES,
    errors=(404,),
    answer=WebhookDocument,
    summary="Show a webhook",
    tool=NoDoor("list_webhooks returns every field"),
    command=Command("webhook show", "Show a webhook.", "fleet webhook show chat"),
)
EDIT = Operation(
    name="edit_webhook",
    role="admin",
    route="PATCH /webhooks/{name}",
    names=NAMES,
    errors=(404, 413),
    request=WebhookEdit,
    answer=WebhookDocument,
    summary="Change the given fields",
    tool=SENDS_OUT,
    command=Command("webhook edit", "Change a webhook; only the given options change.", "fleet webhook edit chat --on"),
)
TEST = Operation(
    name="test_webhook",
    role="admin",
    route="POST /webhooks/{name}/test",
    names=NAMES,
    errors=(404,),
    answer=WebhookDeliveryDocument,
    summary="Send a test message (fleet.test) now, once",
    more="Waits for the receiver's answer, up to 15 s.",
    tool=SENDS_OUT,
    command=ByHand("webhook test", "its exit code says whether the receiver accepted the message"),
)
DELIVERIES = Operation(
    name="list_deliveries",
    role="viewer",
    route="GET /webhooks/{name}/deliveries",
    names=NAMES,
    errors=(404,),
    request=DeliveryFilter,
    answer=list[WebhookDeliveryDocument],
    summary="List the messages to a webhook, newest first",
    tool=Tool(
        "list_webhook_deliveries",
        "List a webhook's messages",
        READS,
        "List the messages to a webhook, newest first, with their results: done_at is set once a message was delivered "
        "or abandoned, error says why an attempt failed, next_at is the time of the next attempt. list_webhooks has "
        "the names.",
        defaults={"limit": 20},
    ),
    command=Command(
        "webhook deliveries",
        "List the messages to a webhook: delivered, pending and abandoned ones.",
        "fleet webhook deliveries chat",
        defaults={"limit": 20},
    ),
)
RESEND = Operation(
    name="resend_delivery",
    role="admin",
    route="POST /webhooks/{name}/deliveries/{message}/resend",
    names={**NAMES, "message": Annotated[str, MESSAGE]},
    errors=(404, 409),
    answer=WebhookDeliveryDocument,
    summary="Send a message again",
    more="It keeps its id, so that the receiver can recognize the duplicate, and gets all its attempts again.",
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
    answer=WebhookDocument,
    summary="Remove a webhook",
    tool=NoDoor("removal is left to people"),
    command=Command(
        "webhook rm",
        "Remove a webhook; its pending messages are not sent.",
        "fleet webhook rm chat",
        confirm="Remove webhook {name}?",
        done="webhook {name} removed",
    ),
)
