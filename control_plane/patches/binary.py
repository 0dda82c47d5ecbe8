"""Sizes of binary files, from the data that git puts into a patch."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

_PART = re.compile(rb"(?m)^(literal|delta) (\d{1,12})\n([^\n]*)")
_LENGTHS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_HEAD = 40
"""Bytes of a delta in which both sizes are found."""


@dataclass(frozen=True)
class BinarySizes:
    """Bytes before and after; None if the patch does not say."""

    old: int | None = None
    new: int | None = None


def binary_sizes(body: bytes) -> BinarySizes:
    """The sizes in the body of a `GIT binary patch`: the way forward, then the way back."""
    forward, backward = [*_sizes(body), None, None][:2]
    if forward is None:
        return BinarySizes()
    old, new = forward
    if old is None and backward is not None:
        old = backward[1]
    return BinarySizes(old, new)


def _sizes(body: bytes) -> Iterator[tuple[int | None, int | None]]:
    """Of each part: the size that it starts from, if it is a delta, and the size that it leads to."""
    for _, found in zip(range(2), _PART.finditer(body), strict=False):
        yield (None, int(found[2])) if found[1] == b"literal" else _delta_sizes(found[3])


def _delta_sizes(line: bytes) -> tuple[int | None, int | None]:
    """A delta begins with both sizes, in 7 bits per byte, after compression and base 85."""
    try:
        length = _LENGTHS.index(line[:1]) + 1
        head = zlib.decompressobj().decompress(base64.b85decode(line[1:])[:length], _HEAD)
        old, rest = _number(head)
        new, _ = _number(rest)
    except (ValueError, IndexError, zlib.error):
        return None, None
    return old, new


def _number(data: bytes) -> tuple[int, bytes]:
    value = 0
    for place, byte in enumerate(data):
        value |= (byte & 0x7F) << (7 * place)
        if not byte & 0x80:
            return value, data[place + 1 :]
    raise ValueError("the number does not end")
