"""The binary frames of Amazon's event streams.

Written from "Event stream encoding" (https://docs.aws.amazon.com/lexv2/latest/dg/event-stream-encoding.html): lengths
and their CRC, headers of type string, the payload, and the CRC of everything before it; all numbers big-endian.
"""

from __future__ import annotations

import json
from binascii import crc32
from collections.abc import Mapping
from struct import pack
from typing import Any

_STRING = 7


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One frame."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    prelude = pack("!II", 16 + len(head) + len(payload), len(head))
    checked = prelude + pack("!I", crc32(prelude)) + head + payload
    return checked + pack("!I", crc32(checked))


def event(kind: str, document: Any) -> bytes:
    """A frame with an event of this type."""
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, json.dumps(document).encode())


def exception(kind: str, message: str) -> bytes:
    """A frame that ends the stream with an error."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json.dumps({"message": message}).encode())


def _header(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + bytes([_STRING]) + pack("!H", len(value)) + value.encode()
