"""Text that a command receives as a file, through a pipe or as an argument."""

from __future__ import annotations

import locale
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path

from shared.errors import Invalid, NotFound
from shared.foreign_text import decoded


def text_of(file: str, limit: int = -1) -> str:
    """The text of a file, or of stdin for `-`, with its lines ended by line feeds. Raises NotFound, or Invalid if it is
    not text, or has more than `limit` bytes.

    It is UTF-8, in the encoding that its byte order mark names, or in that of the user's locale.
    """
    where = "stdin" if file == "-" else file
    try:
        with sys.stdin.buffer if file == "-" else Path(file).expanduser().open("rb") as opened:
            raw = opened.read(limit if limit < 0 else limit + 1)
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}", code="E-FILE-404", next="ls -l " + file) from None
    if 0 <= limit < len(raw):
        raise Invalid(f"{where} is too large", code="E-FILE-SIZE", why=f"at most {limit:,} bytes can be sent")
    return _text(raw, where).replace("\r\n", "\n").rstrip("\n")


def first_line_of_stdin() -> str:
    """The first line of stdin, without waiting for others; otherwise like `text_of`."""
    line = sys.stdin.buffer.readline()
    if line.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        line += sys.stdin.buffer.read()  # the line feed may have another byte after the one that was found
    return _text(line, "stdin").partition("\n")[0]


def argument_text(argument: str) -> str:
    """The text of an argument, or of stdin for `-`. Raises Invalid if it is not text."""
    if argument == "-":
        return text_of("-")
    try:
        argument.encode()
    except UnicodeEncodeError:  # bytes that the locale's encoding does not have
        return _text(argument.encode("utf-8", "surrogatepass"), "the argument")
    return argument


def _text(raw: bytes, where: str) -> str:
    try:
        return decoded(raw, otherwise=locale.getpreferredencoding(do_setlocale=False))
    except ValueError as error:
        raise Invalid(
            f"{where} {error}",
            code="E-FILE-TEXT",
            why="text is read as UTF-8, in the encoding that its byte order mark names, or in that of your locale",
            next="iconv -f latin1 -t utf-8 FILE        or the encoding it has",
        ) from None
