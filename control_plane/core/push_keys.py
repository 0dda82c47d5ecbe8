"""The key pair of the installation with which messages to push services are signed (VAPID, RFC 8292)."""

from __future__ import annotations

import base64

from sqlalchemy.orm import Session

from control_plane.core.vault import Vault
from control_plane.db.attention import PushKey
from shared.clock import Clock

_ONE = 1


def ensure_push_key(db: Session, vault: Vault, clock: Clock) -> None:
    """Create the pair if there is none, after `ensure_box_keys` in the same transaction, whose lock it needs.

    It is never replaced: browsers accept messages only from the key that they subscribed with.
    """
    if db.get(PushKey, _ONE) is None:
        db.add(_new_key(vault, clock))


def push_key(db: Session) -> PushKey:
    """The pair; its private key is sealed."""
    return db.get_one(PushKey, _ONE)


def _new_key(vault: Vault, clock: Clock) -> PushKey:
    # Only the first start of an installation needs this import.
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    pair = ec.generate_private_key(ec.SECP256R1())
    point = pair.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return PushKey(
        id=_ONE,
        public_key=base64.urlsafe_b64encode(point).decode().rstrip("="),
        sealed_private_key=vault.seal_at_rest(
            pair.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
            "push_keys.sealed_private_key",
        ),
        created_at=clock.now(),
    )
