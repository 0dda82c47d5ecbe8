"""The addresses to which the owner's policy allows a key to be sent."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

ANY = "*"
"""The rule that allows every address, also without encryption."""
_PORTS = {"https": 443, "http": 80}


def is_key_address(rule: str) -> bool:
    """Whether a rule can be understood: `host`, `host:port`, `scheme://host[:port]`, or `*`."""
    return rule == ANY or _rule(rule) is not None


def may_go(url: str | None, rules: Iterable[str]) -> bool:
    """Whether a rule allows the URL: scheme, host and port must be the same; without a URL, only `*` does."""
    target = _place(url) if url else None
    return any(rule == ANY or (target is not None and _rule(rule) == target) for rule in rules)


def shown(url: str | None) -> str:
    """The shortest rule that allows the URL."""
    place = _place(url) if url else None
    if place is None:
        return ANY
    scheme, host, port = place
    name = f"[{host}]" if ":" in host else host
    return f"{'' if scheme == 'https' else 'http://'}{name}{'' if port == _PORTS[scheme] else f':{port}'}"


def _rule(text: str) -> tuple[str, str, int] | None:
    place = text if "://" in text else f"https://{text}"
    try:
        parts = urlsplit(place)
    except ValueError:
        return None
    # A path or a login in a rule would suggest that it is compared.
    return None if parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc else _place(place)


def _place(url: str) -> tuple[str, str, int] | None:
    if not url.isprintable() or any(mark in url for mark in "\\ ") or url.count("@") > 1:
        return None  # programs differ in which part of it they take for the host
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in _PORTS or not host or "*" in host:
        return None
    return parts.scheme, host, _PORTS[parts.scheme] if port is None else port
