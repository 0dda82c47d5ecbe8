"""Names of blobs, and the bounds on them: patch, bundle, log, checkpoint and long history travel by HTTP."""

from __future__ import annotations

from hashlib import sha256

MAX_BYTES = 512 * 1024 * 1024
INLINE_CONTEXT = 64 * 1000
"""A context over this many bytes travels as a blob."""
INLINE_PATCH = 1_000_000
"""A patch over this many bytes is not shown inline."""
MAX_EVENT = 256 * 1000
"""An event's sealed size; what is larger is cut, with its blob beside it."""


def digest(content: bytes) -> str:
    """The blob's name: SHA-256 in hexadecimal."""
    return sha256(content).hexdigest()
