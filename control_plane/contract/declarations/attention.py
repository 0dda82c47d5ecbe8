"""Attention: how a user is told of what waits for them while none of the pages is in front."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, get_args

from pydantic import Field

from control_plane.contract.declarations.operation import About, Command, NoDoor, Operation
from control_plane.contract.documents.base import Document, Request

AttentionKind = Literal["approvals", "questions", "tasks", "checks", "orders", "budgets", "drones"]
KINDS: tuple[AttentionKind, ...] = get_args(AttentionKind)
DEFAULT_KINDS: tuple[AttentionKind, ...] = ("approvals", "questions", "tasks")
Concern = Literal["own", "all"]
MAX_BROWSER_NAME = 64

EMAIL = About("e-mail", "Send e-mail to your address.", flag="--email/--no-email")
WEBHOOK_URL = About(
    "webhook",
    "URL of your own that receives signed messages (http or https).",
    absent="no webhook",
    flag="--webhook",
    none="none",
)
WEBHOOK_SECRET = About(
    "secret",
    "Signing secret of the webhook: whsec_ followed by base64.",
    absent="generated for a new URL",
    secret=True,
    input="stdin",
)
KINDS_FIELD = About("kinds", "What to tell you about.", absent="every kind", flag="--kind", none="--no-kinds")
ABOUT = About("about", "own: your orders, tasks and drones; all: everything in the organization.")
BROWSER = About("browser", "Name of this browser.")
BROWSER_ID = About("id", "Id of the browser, as in: fleet attention show.")
NO_TOOL = NoDoor("how a user is told is for the user to choose")
ONLY_A_BROWSER = NoDoor("only a browser can subscribe itself")


class AttentionEdit(Request):
    """Only the fields that are set change."""

    email: Annotated[bool | None, EMAIL] = None
    webhook_url: Annotated[str | None, WEBHOOK_URL] = None
    webhook_secret: Annotated[str | None, WEBHOOK_SECRET] = Field(None, repr=False)
    kinds: Annotated[list[AttentionKind] | None, KINDS_FIELD] = None
    about: Annotated[Concern | None, ABOUT] = None


class PushRequest(Request):
    """A subscription as a browser returns it."""

    name: Annotated[str, BROWSER] = Field(min_length=1, max_length=MAX_BROWSER_NAME)
    endpoint: Annotated[str, About("endpoint", "Address at the browser's push service.")] = Field(
        max_length=2048, repr=False
    )
    p256dh: Annotated[str, About("key", "The browser's public key.")] = Field(max_length=200, repr=False)
    auth: Annotated[str, About("auth", "The browser's authentication secret.", secret=True)] = Field(
        max_length=100, repr=False
    )


class BrowserDocument(Document):
    id: Annotated[str, BROWSER_ID]
    name: Annotated[str, BROWSER]
    last_at: Annotated[datetime | None, About("last message")]
    last_error: Annotated[str, About("last error")]
    created_at: datetime


class AttentionDocument(Document):
    email: Annotated[bool, EMAIL]
    email_address: Annotated[str, About("address")]
    email_available: Annotated[bool, About("mail server")]
    """Whether this server can send e-mail (`FLEET_SMTP_URL`)."""
    email_error: Annotated[str, About("e-mail error")]
    webhook_url: Annotated[str | None, WEBHOOK_URL]
    secret: Annotated[str | None, About("secret")] = Field(None, repr=False)
    """Of the webhook. Shown once, when it is generated."""
    webhook_error: Annotated[str, About("webhook error")]
    browsers: Annotated[list[BrowserDocument], About("browsers", shows="id name last_at last_error")]
    push_key: str
    """The server's public key, with which a browser subscribes."""
    kinds: Annotated[list[str], KINDS_FIELD]
    about: Annotated[str, ABOUT]
    waiting: Annotated[int, About("pending", unit="messages")]
    """Messages that were not accepted yet."""


SHOW = Operation(
    name="show_attention",
    role="viewer",
    route="GET /attention",
    answer=AttentionDocument,
    summary="Show how you are notified",
    tool=NO_TOOL,
    command=Command(
        "attention show", "Show through which channels you are notified, and of what.", "fleet attention show"
    ),
)
EDIT = Operation(
    name="edit_attention",
    role="viewer",
    route="PATCH /attention",
    errors=(409, 413),
    request=AttentionEdit,
    answer=AttentionDocument,
    summary="Change how you are notified",
    more="The answer contains the webhook's secret if it was generated; it is shown only once.",
    tool=NO_TOOL,
    command=Command(
        "attention edit",
        "Change through which channels you are notified, and of what. Browsers are added on the page Settings.",
        "fleet attention edit --email --kind approvals --kind questions",
    ),
)
TEST = Operation(
    name="test_attention",
    role="viewer",
    route="POST /attention/test",
    errors=(409,),
    answer=AttentionDocument,
    summary="Send yourself a test message",
    more="It goes through every channel that you chose, at once, even while a page is in front.",
    tool=NO_TOOL,
    command=Command("attention test", "Send yourself a test message through every channel.", "fleet attention test"),
)
SUBSCRIBE = Operation(
    name="subscribe_browser",
    role="viewer",
    route="POST /attention/browsers",
    status=201,
    errors=(409,),
    request=PushRequest,
    answer=BrowserDocument,
    summary="Add a browser that shows notifications",
    more="The same browser again replaces its earlier subscription.",
    tool=NO_TOOL,
    command=ONLY_A_BROWSER,
)
UNSUBSCRIBE = Operation(
    name="unsubscribe_browser",
    role="viewer",
    route="DELETE /attention/browsers/{browser}",
    names={"browser": Annotated[str, BROWSER_ID]},
    errors=(404,),
    answer=BrowserDocument,
    summary="Remove a browser",
    tool=NO_TOOL,
    command=Command(
        "attention remove",
        "Remove a browser: it shows no more notifications.",
        "fleet attention remove 4f1c2a9be07d",
        done="{name} removed",
    ),
)
