"""Reads a file of rows, as JSON lines, JSON or CSV, line by line: nothing is read beyond the limits."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal

from shared.errors import Invalid, NotFound, TooLarge

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one line."""
MAX_DOCUMENT = 64 * 1024 * 1024
"""Bytes of a JSON file that is no JSON lines: it must be parsed as a whole."""
Form = Literal["jsonl", "json", "csv"]
_SUFFIXES: dict[str, Form] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
}
_DELIMITERS = ",;\t|"
_BOM = b"\xef\xbb\xbf"
_OTHER_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Record:
    """One row as it is in the file."""

    line: int
    """The number of the line that it begins on; of an element of a JSON list, its number there."""
    fields: dict[str, Any]
    problem: str = ""
    """Why the row cannot be read."""


def read_records(file: str, form: Form | None = None) -> Iterator[Record]:
    """The rows of the file, `-` for stdin; a row that cannot be read has a problem.

    `form`: None for what the file's name or its first character says. Raises NotFound if there is no such file,
    Invalid if it is no file of rows, TooLarge for a line over 16 MB.
    """
    with _opened(file) as source:
        first = source.readline(MAX_LINE + 1)
        if first.startswith(_OTHER_BOMS):
            raise Invalid(
                f"{file} is UTF-16, not UTF-8",
                code="E-FILE-TEXT",
                next=f"iconv -f utf-16 -t utf-8 {file} > rows.csv",
            )
        lines = _lines(file, chain([first.removeprefix(_BOM)], iter(lambda: source.readline(MAX_LINE + 1), b"")))
        form = form or _SUFFIXES.get(Path(file).suffix.lower()) or _guessed(first)
        if form == "jsonl" or (form == "json" and _is_whole_object(first)):
            yield from _from_json_lines(lines)
        elif form == "json":
            yield from _from_json(file, lines)
        else:
            yield from _from_csv(file, lines)


def _opened(file: str) -> AbstractContextManager[BinaryIO]:
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).expanduser().open("rb")
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}", code="E-FILE-404", next=f"ls -l {file}") from None


def _guessed(first: bytes) -> Form:
    begin = first.removeprefix(_BOM).lstrip()[:1]
    return "json" if begin == b"[" else "jsonl" if begin == b"{" else "csv"


def _is_whole_object(line: bytes) -> bool:
    """Whether a `.json` file has an object on each line, as some data sets have."""
    try:
        return isinstance(json.loads(line.removeprefix(_BOM)), dict)
    except (ValueError, RecursionError):
        return False


def _lines(file: str, lines: Iterator[bytes]) -> Iterator[str]:
    """The lines as text; bytes that are no UTF-8 become surrogates, by which `_readable` finds them."""
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            raise TooLarge(
                f"line {number} of {file} is longer than {MAX_LINE // 1024 // 1024} MB",
                code="E-BATCH-SIZE",
                next="put long texts in a file of the repository and refer to that file in the prompt",
            )
        yield line.decode("utf-8", "surrogateescape")


def _readable(line: int, fields: dict[str, Any]) -> Record:
    try:
        json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return Record(line, {}, "is not UTF-8 text")
    return Record(line, fields)


def _from_json_lines(lines: Iterator[str]) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Record(number, {}, f"is not JSON: {error}")
            continue
        yield _readable(number, found) if isinstance(found, dict) else Record(number, {}, "is not a JSON object")


def _from_json(file: str, lines: Iterator[str]) -> Iterator[Record]:
    parts: list[str] = []
    size = 0
    for line in lines:
        size += len(line)
        if size > MAX_DOCUMENT:
            raise TooLarge(
                f"{file} is larger than {MAX_DOCUMENT // 1024 // 1024} MB",
                code="E-BATCH-SIZE",
                why="a JSON document is read as a whole",
                next="write one JSON object on each line, and name the file .jsonl",
            )
        parts.append(line)
    try:
        found = json.loads("".join(parts))
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{file} is not JSON", code="E-BATCH-FILE", why=str(error)[:200]) from None
    if not isinstance(found, list):
        raise Invalid(
            f"{file} is no list of rows", code="E-BATCH-FILE", why="it must be [{…}, {…}], or one object on each line"
        )
    for number, each in enumerate(found, 1):
        yield _readable(number, each) if isinstance(each, dict) else Record(number, {}, "is not a JSON object")


def _from_csv(file: str, lines: Iterator[str]) -> Iterator[Record]:
    """Rows below a line of names, separated by commas, semicolons, tabs or bars; a value in quotes may span lines."""
    head = next((line for line in lines if line.strip()), "")
    csv.field_size_limit(MAX_LINE)
    reader = csv.reader(chain([head], lines), delimiter=_delimiter(head), strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_names(file, names)
        begin = reader.line_num + 1
        for values in reader:
            if values:
                yield _csv_record(begin, names, values)
            begin = reader.line_num + 1
    except csv.Error as error:
        raise Invalid(
            f"{file} is not CSV: line {reader.line_num}: {error}",
            code="E-BATCH-FILE",
            why="a quote may not be closed",
        ) from None


def _csv_record(line: int, names: list[str], values: list[str]) -> Record:
    if len(values) != len(names):
        return Record(line, {}, f"has {len(values)} values for {len(names)} columns")
    return _readable(line, {name: value for name, value in zip(names, values, strict=True) if value != ""})


def _delimiter(head: str) -> str:
    counts = Counter(letter for letter in head if letter in _DELIMITERS)
    return max(_DELIMITERS, key=lambda each: counts[each])


def _check_names(file: str, names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1 or not name]
    if twice:
        raise Invalid(
            f"the first line of {file} names column {twice[0]!r} twice"
            if twice[0]
            else f"a column of {file} has no name",
            code="E-BATCH-FILE",
            why="the first line of a CSV file has the names of the columns",
        )
