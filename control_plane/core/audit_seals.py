"""Seals of the audit log: Ed25519 signatures by the control plane under a place in the chain.

Without the key, which the master key seals, nobody with access to the database can write a chain of their own: its
newest seal would be missing. And a head that was kept elsewhere shows whether its record is still the same.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC
from typing import Literal

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey
from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core.vault import Vault
from control_plane.db.audit import AuditKey, AuditSeal
from shared.clock import Clock
from shared.envelope import key_id
from shared.errors import Precondition

SealKind = Literal["head", "anchor"]


def new_seal(db: Session, vault: Vault, clock: Clock, kind: SealKind, place: tuple[int, str]) -> AuditSeal:
    """A signed seal under the number and hash of a record. The first one creates the key.

    The caller holds the lock of the chain's head, so that there is only one first.
    """
    row = db.scalar(select(AuditKey).where(AuditKey.retired_at.is_(None)).order_by(AuditKey.created_at.desc()))
    if row is None:
        row = _new_key(vault, clock)
        db.add(row)
    key = _opened(vault, row)
    seal = AuditSeal(kind=kind, seq=place[0], hash=place[1], at=clock.now(), key_id=row.id)
    seal.signature = base64.b64encode(key.sign(sealed_text(seal)).signature).decode()
    return seal


def verify_keys(db: Session, vault: Vault) -> dict[str, VerifyKey]:
    """The keys that seals may name.

    One that was not sealed under the master key for this purpose was not made by a control plane.
    """
    found = {}
    for row in db.scalars(select(AuditKey)):
        with suppress(Precondition):
            found[row.id] = _opened(vault, row).verify_key
    return found


def is_genuine(seal: AuditSeal, keys: Mapping[str, VerifyKey]) -> bool:
    """Whether the seal was signed with the key that it names."""
    if seal.key_id not in keys:
        return False
    try:
        keys[seal.key_id].verify(sealed_text(seal), base64.b64decode(seal.signature))
    except (BadSignatureError, ValueError):
        return False
    return True


def sealed_text(seal: AuditSeal) -> bytes:
    """What is signed: JSON with sorted keys and no blanks."""
    fields = {"at": seal.at.astimezone(UTC).isoformat(), "hash": seal.hash, "kind": seal.kind, "seq": seal.seq}
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def _opened(vault: Vault, row: AuditKey) -> SigningKey:
    return SigningKey(base64.b64decode(vault.open_at_rest(row.sealed_private_key, "audit_keys.sealed_private_key")))


def _new_key(vault: Vault, clock: Clock) -> AuditKey:
    key = SigningKey.generate()
    public = bytes(key.verify_key)
    return AuditKey(
        id=key_id(public),
        public_key=base64.b64encode(public).decode(),
        sealed_private_key=vault.seal_at_rest(base64.b64encode(bytes(key)).decode(), "audit_keys.sealed_private_key"),
        created_at=clock.now(),
        retired_at=None,
    )
