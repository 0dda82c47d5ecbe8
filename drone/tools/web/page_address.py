"""The URLs that web_fetch accepts: http and https, without a login, and without a secret."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urljoin, urlsplit

from drone.tools.wrong_use import WrongUse
from shared.redaction import cut_short, known

LONGEST = 2000
"""Characters."""
PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9._:%-]+")
_EXAMPLE = "give a complete one, such as https://example.org/page"
_IN_PATH = "/%:@!$&'()*+,;=~"
_IN_QUERY = f"{_IN_PATH}?[]"
_SHOWN = 200


@dataclass(frozen=True)
class PageAddress:
    """Where a request goes."""

    host: str
    """In ASCII."""
    port: int
    target: str
    """Path and query, as they are sent."""
    encrypted: bool


def address_of(url: str) -> PageAddress:
    """Raises WrongUse for a URL that must not or cannot be requested."""
    if len(url) > LONGEST:
        raise WrongUse(f"the URL has {len(url):,} characters; at most {LONGEST:,} are allowed")
    if not url.isprintable():
        raise WrongUse("the URL contains characters that no URL has; percent-encode or remove them")
    if any(known().has_token(each) for each in (url, unquote(url))):
        # The server would get it, and so would each log on the way there.
        raise WrongUse("the URL contains a key, a token or a password; nothing was requested. Leave it out")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip(".").encode("idna").decode(), parts.port
    except ValueError as error:  # UnicodeError is one
        raise WrongUse(f"{brief(url)!r} is not a valid URL ({error}); {_EXAMPLE}") from error
    if parts.scheme not in PORTS or not _HOST.fullmatch(host):
        raise WrongUse(f"{brief(url)!r} is not a URL of the web; {_EXAMPLE}")
    if parts.username is not None:
        raise WrongUse(f"a URL with a login is not fetched; leave out what stands before the @{host}")
    query = f"?{quote(parts.query, safe=_IN_QUERY)}" if parts.query else ""
    target = quote(parts.path or "/", safe=_IN_PATH) + query
    return PageAddress(host, port or PORTS[parts.scheme], target, parts.scheme == "https")


def joined(url: str, target: str) -> str:
    """The URL that `target` means on the page at `url`. Raises WrongUse."""
    try:
        return urljoin(url, target)
    except ValueError as error:
        raise WrongUse(f"it redirects to {brief(target)!r}, which is not a valid URL; use another source") from error


def brief(url: str) -> str:
    """The URL for messages."""
    return url if len(url) <= _SHOWN else f"{cut_short(url, _SHOWN)}…"
