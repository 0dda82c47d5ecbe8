"""The spellings in which a secret must be found."""

from __future__ import annotations

import base64
import gzip
import html
import json
import shlex
import textwrap
from collections.abc import Callable
from urllib.parse import quote


def utf16(encoding: str) -> Callable[[str], str]:
    return lambda secret: secret.encode(encoding).decode("utf-8", "replace")


def units(text: str) -> list[int]:
    """As JavaScript counts characters."""
    raw = text.encode("utf-16-be")
    return [int.from_bytes(raw[at : at + 2]) for at in range(0, len(raw), 2)]


def between(separator: str) -> Callable[[str], str]:
    return separator.join


def wrapped(text: str, width: int = 16) -> str:
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False))


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "base64 at 0": lambda s: base64.b64encode(s.encode()).decode(),
    "base64 at 1": lambda s: base64.b64encode(b"x" + s.encode() + b"yz").decode(),
    "base64 at 2": lambda s: base64.b64encode(b"xy" + s.encode() + b"z").decode(),
    "base64url": lambda s: base64.urlsafe_b64encode(s.encode()).decode(),
    "base64 in lines": lambda s: wrapped(base64.b64encode(s.encode()).decode()),
    "base32": lambda s: base64.b32encode(s.encode()).decode(),
    "base32 at 3": lambda s: base64.b32encode(b"abc" + s.encode() + b"d").decode(),
    "hex": lambda s: s.encode().hex(),
    "HEX": lambda s: s.encode().hex().upper(),
    "hex of xxd": lambda s: s.encode().hex(" ", 2),
    "hex with colons": lambda s: s.encode().hex(":"),
    "\\x": lambda s: "".join(f"\\x{c:02x}" for c in s.encode()),
    "url": lambda s: quote(s, safe=""),
    "percent all": lambda s: "".join(f"%{c:02X}" for c in s.encode()),
    "percent all, small": lambda s: "".join(f"%{c:02x}" for c in s.encode()),
    "json": lambda s: json.dumps(s)[1:-1],
    "\\u": lambda s: "".join(f"\\u{c:04x}" for c in units(s)),
    "\\U": lambda s: "".join(f"\\u{c:04X}" for c in units(s)),
    "xml": html.escape,
    "&#n;": lambda s: "".join(f"&#{ord(c)};" for c in s),
    "&#xn;": lambda s: "".join(f"&#x{ord(c):x};" for c in s),
    "shell": shlex.quote,
    "utf-16-le": utf16("utf-16-le"),
    "utf-16-be": utf16("utf-16-be"),
    "reversed": lambda s: s[::-1],
    "spaced": between(" "),
    "a line for each": between("\n"),
    "zero-width": between("\u200b"),
    "in two lines": lambda s: f"{s[:11]}\n    {s[11:]}",
    "gzip": lambda s: base64.b64encode(gzip.compress(f"KEY={s}\n".encode())).decode(),
    "gzip in lines": lambda s: wrapped(base64.b64encode(gzip.compress(f"KEY={s}\n".encode())).decode(), 40),
}
BYTES_AS_TEXT = {"utf-16-le", "utf-16-be"}
"""Spellings that text can only have for ASCII."""
