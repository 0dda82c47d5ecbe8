"""Text of unknown origin: files of editors and output of other programs, in any of the usual encodings."""

from __future__ import annotations

import codecs

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before that of UTF-16, with which it begins
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8-sig",
}


def decoded(content: bytes, otherwise: str = "utf-8") -> str:
    """Return the text without its byte order mark, which tells its encoding; without one it is UTF-8.

    `otherwise`: the encoding to try if it is not. Raises ValueError whose text continues the source's name (`is not
    UTF-8: byte 7`).
    """
    encoding = encoding_of(content)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        try:
            text = content.decode(otherwise)
        except (UnicodeDecodeError, LookupError):
            raise ValueError(f"is not {encoding.removesuffix('-sig').upper()}: byte {error.start}") from error
    if "\0" in text:
        raise ValueError("is not text: it contains a NUL byte")
    return text


def encoding_of(content: bytes) -> str:
    """The encoding that a byte order mark names, else UTF-8; it takes the mark off."""
    return next((name for mark, name in _MARKS.items() if content.startswith(mark)), "utf-8")
