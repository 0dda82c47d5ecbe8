"""Secrets that are handed out once: made here, stored as a hash only."""

from __future__ import annotations

import secrets
from hashlib import sha256

API_PREFIX = "fa"
DRONE_PREFIX = "fd"
LOGIN_PREFIX = "fl"
SESSION_PREFIX = "fs"


def new_secret(prefix: str = "") -> str:
    """32 random bytes in hexadecimal, after `<prefix>_`: no character of it needs quoting anywhere."""
    secret = secrets.token_hex(32)
    return f"{prefix}_{secret}" if prefix else secret


def hashed(secret: str) -> str:
    """What is stored of a secret. Plain SHA-256: 256 random bits leave nothing to guess, so nothing to slow down."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
