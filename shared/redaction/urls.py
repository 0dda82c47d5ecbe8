"""URLs without their secrets."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from shared.redaction.spans import MARK

_USERINFO = re.compile(r"(?<=://)[^\s/@\"'<>]+(?=@)")
_QUERY_SECRET = re.compile(r"(?i)([?&](?:access_token|private_token|token|key|api_key|password|secret)=)[^&#\s]+")

_NO_PASSWORDS = (None, "", "x-oauth-basic")
"""What stands in place of a password beside a user that is a token."""


def redact_url(url: str) -> str:
    """Return a URL that is safe to show: without password, and for http without user, which may be a token.

    Works on any text that contains URLs. `ssh://git@host` keeps its user.
    """
    shown = _USERINFO.sub(lambda match: _shown_user(match.group(), url[: match.start()]), url)
    return _QUERY_SECRET.sub(rf"\1{MARK}", shown)


def login_secrets(url: str) -> set[str]:
    """The secret in a URL's login, as it is written there and as it is sent.

    That is the password; over http without a password, the user, which is then a token.
    """
    if "://" not in url:
        return set()
    parts = urlsplit(url)
    is_token = parts.scheme in {"http", "https"} and parts.password in _NO_PASSWORDS
    secret = (parts.username if is_token else parts.password) or ""
    return {secret, unquote(secret)} - {""}


def _shown_user(userinfo: str, before: str) -> str:
    user, colon, _ = userinfo.partition(":")
    if before.endswith(("http://", "https://")):
        return MARK
    return f"{user}:{MARK}" if colon else user
