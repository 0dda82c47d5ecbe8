"""web_fetch: one page of the web as text, in parts that a model can read."""

from __future__ import annotations

import codecs
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from drone.agent.values import ToolResult
from drone.sandbox.network import Gateway
from drone.sandbox.output import SHOWN
from drone.sandbox.protocol import Check
from drone.tools.arguments import WebFetchArguments
from drone.tools.web import converter
from drone.tools.web.page_body import FetchedPage, not_text
from drone.tools.web.page_request import SECONDS, PageRequests
from drone.tools.web.watched import watched
from drone.tools.wrong_use import WrongUse
from shared.redaction import cut_off, cut_short

NAME = "web_fetch"


class WebFetch:
    """Fetches pages for the model. It keeps the last one, of which the model may read on."""

    def __init__(self, gateway: Gateway, check: Check, seconds: float = SECONDS) -> None:
        """`seconds`: the longest that an answer may take, and then its conversion."""
        self._requests = PageRequests(gateway, check, seconds)
        self._check, self._seconds = check, seconds
        self._last = "", ""
        """The URL that was asked for, and its text."""

    def __call__(self, call: WebFetchArguments) -> ToolResult:
        url, text = self._last
        if not call.offset or url != call.url:
            text = self._text(call.url)
            self._last = call.url, text
        return ToolResult(_part(text, call.offset), output_bytes=len(text.encode()))

    def _text(self, url: str) -> str:
        page = self._requests.get(url)
        text = _decoded(page)
        if _is_html(page, text):
            text = _markdown(text, page.url, self._check, self._seconds)
        moved = "" if page.url == url else f"(redirected to {page.url})\n\n"
        return f"{moved}{text}"


def _part(text: str, offset: int) -> str:
    """What is shown of a text: first its head and tail, later the characters from `offset` on."""
    if not text.strip():
        return "(the page has no text)"
    if offset >= len(text):
        raise WrongUse(f"the page has only {len(text):,} characters; use a smaller `offset`")
    if len(text) - offset <= SHOWN:
        return text[offset:]
    if offset:
        part = cut_short(text[offset:], SHOWN)
        return f"{part}\n(more follows; read on with offset {offset + len(part)})"
    head, tail = cut_short(text, SHOWN // 2), cut_off(text, SHOWN // 2)
    elided = len(text) - len(head) - len(tail)
    return f"{head}\n[… {elided:,} characters elided; read on with offset {len(head)} …]\n{tail}"


# --- the text of a page: decoded, and whether it is HTML ------------------------------------------

_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w-]{1,40})", re.IGNORECASE)
_AT_BEGINNING = 2048
_OF_THE_WEB = re.compile(
    r"utf-8(-sig)?|utf-16(-[lb]e)?|ascii|iso8859-\d+|cp(125\d|866|874|932|949)|koi8-[ru]|mac-roman"
    r"|gb(k|2312|18030)|big5(hkscs)?|shift_jis|euc_(jp|kr)|iso2022_jp"
)
"""Python's names of the encodings that browsers know. Of its others, some take forever, and some are no encodings."""
_AS_BROWSERS_READ = {"ascii": "cp1252", "iso8859-1": "cp1252"}
_MOST_UNREADABLE = 0.05
"""Of the characters: more, and it is another encoding or no text."""
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_HTML_BEGINS = re.compile(r"\s{0,99}(<!doctype html|<html)", re.IGNORECASE)


def _decoded(page: FetchedPage) -> str:
    """The text. Raises WrongUse for what cannot be text, or is not in the encoding that it names."""
    text = page.body.decode(_encoding(page), "replace").removeprefix("\ufeff")
    if "\0" in text[:_AT_BEGINNING] or text.count("\ufffd") > _MOST_UNREADABLE * len(text):
        raise not_text(page.url, f"binary, or text in an unknown encoding ({page.kind or 'of no type'})")
    return text.replace("\0", "\N{SYMBOL FOR NULL}").replace("\r\n", "\n")


def _is_html(page: FetchedPage, text: str) -> bool:
    """Whether the page is HTML, by its type or, without one, by its beginning."""
    return page.kind in _HTML or (not page.kind and bool(_HTML_BEGINS.match(text)))


def _encoding(page: FetchedPage) -> str:
    """The first that is known: of the byte order mark, of the server, of the page itself; else UTF-8."""
    marked = [name for bom, name in _BOMS if page.body.startswith(bom)]
    found = _DECLARED.search(page.body[:_AT_BEGINNING])
    declared = [found[1].decode()] if found else []
    return next(filter(None, map(_known, (*marked, page.charset, *declared))), "utf-8")


def _known(name: str) -> str | None:
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):  # ValueError: a name with NUL
        return None
    return _AS_BROWSERS_READ.get(codec, codec) if _OF_THE_WEB.fullmatch(codec) else None


# --- HTML as Markdown -----------------------------------------------------------------------------

_DO_INSTEAD = "use another page"


def _markdown(html: str, url: str, check: Check, seconds: float) -> str:
    """The Markdown of the page at `url`, which a process of its own writes.

    Raises WrongUse if it cannot be converted, and what `check` raises.
    """
    deadline = time.monotonic() + seconds

    def watch() -> None:
        check()
        if time.monotonic() > deadline:
            raise WrongUse(f"the page is too complex: it was not converted within {seconds:g} s; {_DO_INSTEAD}")

    process = subprocess.Popen(
        [sys.executable, "-I", str(Path(converter.__file__)), url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    try:
        # Surrogates, of which a text may have some, are no UTF-8.
        text, _ = watched(partial(process.communicate, html.encode(errors="replace")), watch, discard=lambda _: None)
    finally:
        process.kill()
        process.wait()
    if process.returncode == 0:
        return text.decode()
    why = "nested too deeply" if process.returncode == converter.TOO_DEEP else "too complex"
    raise WrongUse(f"the page is {why} to be converted; {_DO_INSTEAD}")
