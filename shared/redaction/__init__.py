"""Removes secrets from text before it leaves a machine: known values in all their spellings, and well-known shapes.

Known values (keys, passwords) are found by one pass of an automaton, regardless of their number; shapes (`sk-…`,
`ghp_…`, a password in a URL) by regular expressions that run only if a cheap check shows that they might match. In a
stream, secrets are found regardless of how the text is split. `shortened` redacts before it cuts: half a secret would
not be recognized afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from shared.redaction.redactor import MARK, Redactor
from shared.redaction.spellings import SHORTEST
from shared.redaction.stream import StreamRedactor

__all__ = [
    "MARK",
    "SHORTEST",
    "Redactor",
    "StreamRedactor",
    "cut_off",
    "cut_short",
    "know",
    "known",
    "last_part",
    "login_secrets",
    "redact_url",
    "shortened",
]


# --- foreign text made shorter: secrets go first, because half of one would not be recognized -----

_MARGIN = 4096
"""Characters beside a cut in which the rest of a secret is looked for."""
_OF_PROCESS = [Redactor()]


def know(secrets: Iterable[str]) -> Redactor:
    """Make these the known secrets of this process, once at its start: errors are shortened wherever they occur."""
    _OF_PROCESS[0] = Redactor(secrets)
    return _OF_PROCESS[0]


def known() -> Redactor:
    """The redactor of this process; before `know`, it finds well-known shapes alone."""
    return _OF_PROCESS[0]


def shortened(text: str, length: int, *, end: str = "") -> str:
    """The beginning of the text without secrets; `end` follows if the text was longer, and counts."""
    shown = known().text(text)
    return shown if len(shown) <= length else shown[: length - len(end)] + end


def cut_short(text: str, length: int) -> str:
    """The beginning of the text as it is; shorter by a secret that the cut would divide."""
    divided = [start for start, end in known().spans(text[: length + _MARGIN]) if start < length < end]
    return text[: min([length, *divided])]


def cut_off(text: str, length: int) -> str:
    """The end of the text as it is; shorter by a secret that the cut would divide."""
    first, margin = max(0, len(text) - length), max(0, len(text) - length - _MARGIN)
    divided = [margin + end for start, end in known().spans(text[margin:]) if margin + start < first < margin + end]
    return text[max([first, *divided]) :]


def last_part(text: str, length: int) -> str:
    """The end of the text without secrets."""
    return known().text(text)[-length:]


# --- URLs without their secrets -------------------------------------------------------------------

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
