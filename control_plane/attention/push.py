"""Messages to browsers through their push services: encrypted for the browser, signed with the server's key (VAPID).

pywebpush encrypts and py-vapid signs. The request goes out like a webhook, because the address comes from a browser:
never to a host inside this network, and without following redirects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

from control_plane.attention.contents import WAITS, MessageContent, one_line
from control_plane.attention.sending import SECONDS, SendResult
from control_plane.automation.webhook_addresses import check_url
from control_plane.automation.webhook_delivery import OutgoingRequest, send
from control_plane.core import Core
from control_plane.core.push_keys import push_key
from control_plane.db.attention import AttentionMessage
from shared.errors import Invalid

TTL_S = 24 * 3600
_SIGNED_FOR_S = 12 * 3600
"""Push services accept signatures for at most a day."""
_ENDED = (404, 410)
_PERMANENT = (400, 403, 413)
MAX_BODY = 300


def check_subscription(core: Core, subscription: Mapping[str, Any]) -> None:
    """Raise Invalid for an address or keys that no message could be sent with."""
    endpoint = str(subscription["endpoint"])
    check_url(endpoint, inside_allowed=core.settings.webhook_private)
    if urlsplit(endpoint).scheme != "https" and not core.settings.webhook_private:
        raise Invalid("invalid push subscription", code="E-PUSH-KEYS", why="its endpoint does not begin with https://")
    try:
        _encrypted(subscription, b"{}")
    # The library raises exceptions of many kinds for wrong keys.
    except Exception as error:
        raise Invalid("invalid push subscription", code="E-PUSH-KEYS", why="its keys cannot be used") from error


def send_push(
    core: Core, message: AttentionMessage, subscription: Mapping[str, Any], content: MessageContent
) -> SendResult:
    """Send the message once. Every failure is reported in the result."""
    endpoint = str(subscription["endpoint"])
    try:
        body = _encrypted(subscription, json.dumps(_payload(message, content)).encode())
        headers = {**_signature(core, endpoint), **_HEADERS, "Topic": message.batch}
    # Foreign code: the libraries raise exceptions of many kinds for what they cannot use.
    except Exception as error:  # noqa: BLE001
        return SendResult(f"the message could not be encrypted or signed: {error}"[:300], final=True)
    request = OutgoingRequest(endpoint, headers, body)
    answer = send(request, inside_allowed=core.settings.webhook_private, seconds=SECONDS)
    return SendResult(answer.error, final=answer.status in _PERMANENT, gone=answer.status in _ENDED)


_HEADERS = {
    "Content-Encoding": "aes128gcm",
    "Content-Type": "application/octet-stream",
    "TTL": str(TTL_S),
    "Urgency": "high",
}


def _payload(message: AttentionMessage, content: MessageContent) -> dict[str, str | bool]:
    """What the service worker shows; small, because push services accept 4 kB."""
    only = content.items[0] if len(content.items) == 1 and not content.left_out else None
    body = only.command or only.text if only else "; ".join(each.title for each in content.items)
    url = only.answer_url or only.url if only else content.inbox_url
    told = {"id": message.batch, "title": content.subject, "body": one_line(body, MAX_BODY), "url": url}
    return {**told, "waits": all(each.kind in WAITS for each in content.items)}


def _encrypted(subscription: Mapping[str, Any], payload: bytes) -> bytes:
    # A quarter of a second to import, so only where something is sent.
    from pywebpush import WebPusher

    encrypted: bytes = WebPusher(subscription).encode(payload, content_encoding="aes128gcm")["body"]
    return encrypted


def _signature(core: Core, endpoint: str) -> dict[str, str]:
    from py_vapid import Vapid02

    with core.database.read() as db:
        key = core.vault.open_at_rest(push_key(db).sealed_private_key, "push_keys.sealed_private_key")
    parts = urlsplit(endpoint)
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": int(core.clock.now().timestamp()) + _SIGNED_FOR_S,
        "sub": _contact(core),
    }
    signed: dict[str, str] = Vapid02.from_pem(key.encode()).sign(claims)
    return {"Authorization": signed["Authorization"]}


def _contact(core: Core) -> str:
    """Whom a push service may ask about these messages."""
    return f"mailto:{parseaddr(core.settings.mail_from)[1]}"
