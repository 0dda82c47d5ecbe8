"""Names of blobs, and size limits: patches, bundles, logs, checkpoints and long histories travel by HTTP."""

from __future__ import annotations

import json
from hashlib import sha256

MAX_BYTES = 512 * 1024 * 1024
INLINE_CONTEXT = 64 * 1000
"""A context larger than this many bytes travels as a blob."""
INLINE_PATCH = 1_000_000
"""A patch larger than this many bytes is not shown inline."""
MAX_EVENT = 256 * 1000
"""Maximum sealed size of an event; a larger one is cut, with a blob for the full content."""
ENVELOPE_BYTES = 2_000
"""Room for the binding, the nonce and the key's id."""


def sealed_size(body: str) -> int:
    """Bytes that an event with this JSON body will have in Redis.

    A journal line is a text inside a text in base64, so quotes count twice, and everything grows by a third.
    """
    inside = len(json.dumps(body, ensure_ascii=False).encode())
    return (inside + ENVELOPE_BYTES) * 4 // 3


def digest(content: bytes) -> str:
    """The blob's name: SHA-256 in hexadecimal."""
    return sha256(content).hexdigest()
