"""The text of a page: decoded, and as Markdown where it is HTML."""

from __future__ import annotations

import codecs
import re

from drone.tools.web.page_body import FetchedPage, not_text

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


def decoded(page: FetchedPage) -> str:
    """The text. Raises WrongUse for what cannot be text, or is not in the encoding that it names."""
    text = page.body.decode(_encoding(page), "replace").removeprefix("\ufeff")
    if "\0" in text[:_AT_BEGINNING] or text.count("\ufffd") > _MOST_UNREADABLE * len(text):
        raise not_text(page.url, f"binary, or text in an unknown encoding ({page.kind or 'of no type'})")
    return text.replace("\0", "\N{SYMBOL FOR NULL}").replace("\r\n", "\n")


def is_html(page: FetchedPage, text: str) -> bool:
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
