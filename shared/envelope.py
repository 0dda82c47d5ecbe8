"""Sealing: only the two ends can read or forge messages that pass through Redis.

A NaCl Box (X25519, XSalsa20-Poly1305) from sender to recipient. Values that must not be swapped are bound inside:
direction, drone, order, run, generation and the time of sealing. The key's id is outside, so that a recipient that
rotated its key knows which one to use.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Literal

from nacl.encoding import RawEncoder
from nacl.exceptions import CryptoError
from nacl.public import Box, PrivateKey, PublicKey

from shared.wire import Wire

Direction = Literal["order", "control", "event", "live", "beat", "hello", "key", "credentials"]
_IDS = {"drone_id": "drone", "order_id": "order", "run_id": "run", "generation": "generation"}
"""Fields of messages, and the field of the binding that has the same value."""


class CannotOpen(Exception):
    """The envelope is not for this key, was altered, or is bound to something else."""


class Binding(Wire):
    """What an envelope belongs to. Fields that do not apply are empty."""

    direction: Direction
    drone: str
    order: str = ""
    run: str = ""
    generation: int = 0


class _Sealed(Wire):
    binding: Binding
    issued_at: datetime
    body: str


@dataclass(frozen=True)
class Opened:
    """The content of an envelope, with its sender's binding."""

    binding: Binding
    issued_at: datetime
    body: str


def key_id(public_key: bytes) -> str:
    """Short name of a key: the first 16 hexadecimal characters of its SHA-256; also the fingerprint in a join token."""
    return sha256(public_key).hexdigest()[:16]


def new_private_key() -> bytes:
    return bytes(PrivateKey.generate())


def public_key(private_key: bytes) -> bytes:
    return bytes(PrivateKey(private_key).public_key)


def seal(body: str, binding: Binding, *, sender: bytes, recipient: bytes, issued_at: datetime) -> str:
    """Seal `body` from the private key `sender` to the public key `recipient` (both 32 bytes), as ASCII text."""
    sealed = _Sealed(binding=binding, issued_at=issued_at, body=body).model_dump_json().encode()
    box = Box(PrivateKey(sender), PublicKey(recipient))
    return f"{key_id(recipient)}.{base64.b64encode(bytes(box.encrypt(sealed, encoder=RawEncoder))).decode()}"


def recipient_of(envelope: str) -> str:
    """The id of the key that can open this envelope."""
    return envelope.partition(".")[0]


def open_envelope(envelope: str, *, recipients: Mapping[str, bytes], sender: bytes, expect: Binding) -> Opened:
    """Open an envelope with one of the private keys in `recipients` (by key id), sent by public key `sender`.

    Only non-empty fields of `expect` are compared; direction and drone always are.

    Raises CannotOpen when no key matches, when a byte was changed, or when it is bound to something else.
    """
    name, _, text = envelope.partition(".")
    private = recipients.get(name)
    if private is None:
        raise CannotOpen(f"sealed to key {name[:16]!r}, which is unknown here")
    try:
        plain = Box(PrivateKey(private), PublicKey(sender)).decrypt(base64.b64decode(text, validate=True))
        sealed = _Sealed.model_validate_json(plain)
    except (CryptoError, ValueError) as error:
        raise CannotOpen("altered, or not from the expected sender") from error
    wrong = _differences(sealed.binding, expect)
    if wrong:
        raise CannotOpen(f"bound to another {', '.join(wrong)}")
    return Opened(sealed.binding, sealed.issued_at, sealed.body)


def check_ids(body: Wire, binding: Binding) -> None:
    """Compare the ids that a message contains with those that its envelope is bound to.

    Raises CannotOpen if any of them differs: a sender can write any id into the content.
    """
    present = _IDS.keys() & type(body).model_fields.keys()
    wrong = sorted(name for name in present if getattr(body, name) != getattr(binding, _IDS[name]))
    if wrong:
        raise CannotOpen(f"its content has another {', '.join(wrong)} than its envelope")


def _differences(found: Binding, expect: Binding) -> list[str]:
    return [
        name
        for name, wanted in expect.model_dump().items()
        if (wanted or name in {"direction", "drone"}) and getattr(found, name) != wanted
    ]
