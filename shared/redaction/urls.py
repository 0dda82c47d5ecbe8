"""URLs without their secrets."""

from __future__ import annotations

import re

from shared.redaction.spans import MARK

_USERINFO = re.compile(r"(?<=://)[^\s/@\"'<>]+(?=@)")
_QUERY_SECRET = re.compile(r"(?i)([?&](?:access_token|private_token|token|key|api_key|password|secret)=)[^&#\s]+")


def redact_url(url: str) -> str:
    """Return a URL that is safe to show: without password, and for http without user, which may be a token.

    Works on any text that contains URLs. `ssh://git@host` keeps its user.
    """
    shown = _USERINFO.sub(lambda match: _shown_user(match.group(), url[: match.start()]), url)
    return _QUERY_SECRET.sub(rf"\1{MARK}", shown)


def _shown_user(userinfo: str, before: str) -> str:
    user, colon, _ = userinfo.partition(":")
    if before.endswith(("http://", "https://")):
        return MARK
    return f"{user}:{MARK}" if colon else user
