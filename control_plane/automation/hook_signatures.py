"""Signatures of code hosts' requests: the secrets, and whether a request is signed with one."""

from __future__ import annotations

import hmac
import re
import secrets
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import parse_qs

from standardwebhooks import Webhook, WebhookVerificationError

from shared.errors import Invalid

WHSEC = "whsec_"


_FORM = "application/x-www-form-urlencoded"


_SECRET = re.compile(r"[!-~]{12,256}")


def is_signed(kind: str, secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether whoever sent this knows the secret. `headers` have names in lower case."""
    match kind:
        case "github":
            return _same(_hub_signature(secret, body), headers.get("x-hub-signature-256", ""))
        case "gitea":
            # A form is signed by what is in it, not by how it is written down.
            signed = {body, form_payload(headers, body)}
            return any(_is_signed_by_gitea(secret, headers, each) for each in signed)
        case "gitlab":
            if "webhook-signature" in headers:
                return _is_standard(secret, headers, body)
            return _same(secret, headers.get("x-gitlab-token", ""))
        case _:
            return _is_standard(secret, headers, body)


def new_hook_secret(kind: str) -> str:
    """A secret of 256 bits in the form that such a host takes."""
    if kind in {"github", "gitea"}:
        return secrets.token_hex(32)
    return WHSEC + b64encode(secrets.token_bytes(32)).decode()


def check_hook_secret(kind: str, secret: str) -> str:
    """A secret that somebody brings, as it is. Raises Invalid without repeating it."""
    if not _SECRET.fullmatch(secret):
        raise Invalid(
            "the secret is not possible",
            code="E-TRIGGER-SECRET",
            next="12 to 256 characters of ASCII without spaces; without one given, one is made",
        )
    return check_signing_secret(secret) if kind == "standard" else secret


def check_signing_secret(secret: str) -> str:
    """A secret of Standard Webhooks, as it is. Raises Invalid without repeating it."""
    key = secret.removeprefix(WHSEC)
    if secret == key or not re.fullmatch(r"[A-Za-z0-9+/]{32,88}={0,2}", key):
        raise Invalid(
            "the secret is none of Standard Webhooks",
            code="E-WEBHOOK-SECRET",
            next="whsec_ and 24 to 64 bytes in base64; without one given, one is made",
        )
    return secret


def _hub_signature(secret: str, content: bytes) -> str:
    return f"sha256={_hmac(secret, content)}"


def _is_signed_by_gitea(secret: str, headers: Mapping[str, str], content: bytes) -> bool:
    own, hub = headers.get("x-gitea-signature", ""), headers.get("x-hub-signature-256", "")
    return _same(_hmac(secret, content), own) or _same(_hub_signature(secret, content), hub)


def _is_standard(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """By the library of Standard Webhooks, which also refuses what is older or newer than five minutes."""
    if not secret.startswith(WHSEC):
        return False
    try:
        Webhook(secret).verify(body, dict(headers), json_parse=False)
    # Beside its own error, what decoding makes of a signature, a secret or a body that is none.
    except (WebhookVerificationError, ValueError, RuntimeError):
        return False
    return True


def _hmac(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, sha256).hexdigest()


def _same(expected: str, given: str) -> bool:
    """In a time that does not tell how much of it was right."""
    return hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace"))


def form_payload(headers: Mapping[str, str], body: bytes) -> bytes:
    """The JSON in the body, also where it was sent as the field `payload` of a form."""
    if not headers.get("content-type", "").lower().startswith(_FORM):
        return body
    try:
        return parse_qs(body.decode(), max_num_fields=10).get("payload", [""])[0].encode()
    except ValueError:
        return b""
