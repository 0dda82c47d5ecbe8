"""Signatures of code hosts' requests: creating and checking secrets, and verifying signatures."""

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
    """Whether the sender knows the secret. Header names are in lower case."""
    match kind:
        case "github":
            return _same(_hub_signature(secret, body), headers.get("x-hub-signature-256", ""))
        case "gitea":
            # For a form, the signature may cover the payload in it instead of the encoded body.
            signed = {body, form_payload(headers, body)}
            return any(_is_signed_by_gitea(secret, headers, each) for each in signed)
        case "gitlab":
            if "webhook-signature" in headers:
                return _is_standard(secret, headers, body)
            return _same(secret, headers.get("x-gitlab-token", ""))
        case _:
            return _is_standard(secret, headers, body)


def new_hook_secret(kind: str) -> str:
    """A new 256-bit secret in the format for this kind of host."""
    if kind in {"github", "gitea"}:
        return secrets.token_hex(32)
    return WHSEC + b64encode(secrets.token_bytes(32)).decode()


def check_hook_secret(kind: str, secret: str) -> str:
    """Return a user-supplied secret unchanged. Raises Invalid without repeating it."""
    if not _SECRET.fullmatch(secret):
        raise Invalid(
            "the secret is invalid",
            code="E-TRIGGER-SECRET",
            next="12 to 256 ASCII characters without spaces; omit it to generate one",
        )
    return check_signing_secret(secret) if kind == "standard" else secret


def check_signing_secret(secret: str) -> str:
    """Return a Standard Webhooks secret unchanged. Raises Invalid without repeating it."""
    key = secret.removeprefix(WHSEC)
    if secret == key or not re.fullmatch(r"[A-Za-z0-9+/]{32,88}={0,2}", key):
        raise Invalid(
            "the secret is not a Standard Webhooks secret",
            code="E-WEBHOOK-SECRET",
            next="whsec_ followed by 24 to 64 bytes in base64; omit it to generate one",
        )
    return secret


def _hub_signature(secret: str, content: bytes) -> str:
    return f"sha256={_hmac(secret, content)}"


def _is_signed_by_gitea(secret: str, headers: Mapping[str, str], content: bytes) -> bool:
    own, hub = headers.get("x-gitea-signature", ""), headers.get("x-hub-signature-256", "")
    return _same(_hmac(secret, content), own) or _same(_hub_signature(secret, content), hub)


def _is_standard(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Verify with the Standard Webhooks library, which also rejects timestamps more than five minutes off."""
    if not secret.startswith(WHSEC):
        return False
    try:
        Webhook(secret).verify(body, dict(headers), json_parse=False)
    # Besides its own error, decoding an invalid signature, secret or body raises these.
    except (WebhookVerificationError, ValueError, RuntimeError):
        return False
    return True


def _hmac(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, sha256).hexdigest()


def _same(expected: str, given: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace"))


def form_payload(headers: Mapping[str, str], body: bytes) -> bytes:
    """The JSON in the body, even if it was sent as the field `payload` of a form."""
    if not headers.get("content-type", "").lower().startswith(_FORM):
        return body
    try:
        return parse_qs(body.decode(), max_num_fields=10).get("payload", [""])[0].encode()
    except ValueError:
        return b""
