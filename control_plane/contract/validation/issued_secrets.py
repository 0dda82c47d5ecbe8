"""Secrets that are issued once: generated here, stored only as a hash."""

from __future__ import annotations

import secrets
from hashlib import sha256

ANSWER_PREFIX = "fq"
API_PREFIX = "fa"
DRONE_PREFIX = "fd"
LOGIN_PREFIX = "fl"
SESSION_PREFIX = "fs"


def new_secret(prefix: str = "") -> str:
    """32 random bytes in hexadecimal, after `<prefix>_`: none of the characters needs quoting anywhere."""
    secret = secrets.token_hex(32)
    return f"{prefix}_{secret}" if prefix else secret


def hashed(secret: str) -> str:
    """The stored form of a secret. Plain SHA-256: 256 random bits cannot be guessed, so a slow hash is unnecessary."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
