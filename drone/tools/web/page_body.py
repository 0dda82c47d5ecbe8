"""The body of an HTTP answer: bounded, unpacked, and only if it may be text."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from http.client import HTTPResponse, IncompleteRead

from drone.tools.web.page_address import brief
from drone.tools.wrong_use import WrongUse

MOST_BYTES = 5 * 1000 * 1000
"""Of a body, as it arrives and as it is unpacked."""
_PIECE = 64 * 1024
_WORDS = 800
"""Bytes of an error's body."""
_MEDIA = re.compile(r"image/(?!svg)|audio/|video/|font/|application/(pdf|zip|gzip|x-tar|wasm|vnd\.(ms-|openxml))")
_CHARSET = re.compile(r"charset\s{0,9}=\s{0,9}[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})
_DOWNLOAD = "if you can run commands, download it with one"


@dataclass(frozen=True)
class FetchedPage:
    """A page, as a server sent it."""

    url: str
    """After redirects."""
    kind: str
    """The media type in lower case; empty if the server named none."""
    charset: str
    """As the server named it; empty if it did not."""
    body: bytes


def page_of(url: str, response: HTTPResponse) -> FetchedPage:
    """Read the page.

    Raises WrongUse for a page that is too large or no text, and HTTPException, OSError or zlib.error for one that is
    broken.
    """
    kind = _kind(response)
    if _MEDIA.match(kind):
        raise not_text(url, kind)
    coding = response.getheader("Content-Encoding", "identity").strip().lower()
    if coding not in {*_PACKED, "identity", ""}:
        raise WrongUse(f"{brief(url)} is compressed in a way that web_fetch does not know ({coding[:40]}); {_DOWNLOAD}")
    body = _PackedBody(url) if coding in _PACKED else _PlainBody(url)
    if (response.length or 0) > MOST_BYTES:
        raise too_large(url)
    while piece := response.read(_PIECE):
        body.add(piece)
    if response.length:
        raise IncompleteRead(b"", response.length)
    named = _CHARSET.search(response.getheader("Content-Type", ""))
    return FetchedPage(url, kind, named[1] if named else "", body.whole())


def words_of(response: HTTPResponse) -> str:
    """The beginning of an error's body in one line, if it is plain text or JSON."""
    if _kind(response) not in {"text/plain", "application/json", "application/problem+json"}:
        return ""
    return " ".join(response.read(_WORDS).decode(errors="replace").split()).replace("\0", "")


def not_text(url: str, kind: str) -> WrongUse:
    """The error for a page that is binary."""
    return WrongUse(f"{brief(url)} is {kind or 'binary'}, not text; {_DOWNLOAD}")


def too_large(url: str) -> WrongUse:
    """The error for a page over the limit."""
    return WrongUse(f"{brief(url)} is larger than {MOST_BYTES // 1_000_000} MB; fetch a smaller page, or {_DOWNLOAD}")


def _kind(response: HTTPResponse) -> str:
    # `get_content_type` would call a missing type text/plain.
    return response.getheader("Content-Type", "").partition(";")[0].strip().lower()[:100]


class _PlainBody:
    def __init__(self, url: str) -> None:
        self._url = url
        self._content = bytearray()

    def add(self, piece: bytes) -> None:
        self._content += piece
        if len(self._content) > MOST_BYTES:
            raise too_large(self._url)

    def whole(self) -> bytes:
        return bytes(self._content)


class _PackedBody(_PlainBody):
    """Unpacks no more than the limit, however much a piece would become."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._arrived = 0
        self._inflate = _inflate()

    def add(self, piece: bytes) -> None:
        self._arrived += len(piece)
        if self._arrived > MOST_BYTES:
            raise too_large(self._url)
        while piece:
            # Gzip may consist of several parts.
            if self._inflate.eof:
                self._inflate = _inflate()
            super().add(self._inflate.decompress(piece, MOST_BYTES + 1 - len(self._content)))
            piece = self._inflate.unused_data

    def whole(self) -> bytes:
        if self._arrived and not self._inflate.eof:
            raise zlib.error("it ends in the middle")
        return super().whole()


def _inflate() -> zlib._Decompress:
    return zlib.decompressobj(wbits=47)  # gzip or zlib, as the data says
