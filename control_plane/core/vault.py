"""Secrets: sealed at rest under the master key, and the control plane's own keys for the drones' envelopes."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
from dataclasses import dataclass
from typing import Literal

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core.master_key import MasterKeys
from control_plane.db.installation import KeyPair, Organization
from shared.clock import Clock
from shared.envelope import key_id, new_private_key, public_key
from shared.errors import Precondition


@dataclass(frozen=True)
class BoxKeys:
    """The control plane's X25519 keys, unsealed. The newest that is not retired seals; all of them open."""

    current_id: str
    pairs: dict[str, bytes]
    """Private keys by `shared.envelope.key_id` of their public keys."""

    def current_private_key(self) -> bytes:
        return self.pairs[self.current_id]

    def current_public_key(self) -> bytes:
        return public_key(self.current_private_key())

    def private_keys(self) -> dict[str, bytes]:
        """All keys that envelopes may still be sealed to, as `open_envelope(recipients=…)` takes them."""
        return dict(self.pairs)


Purpose = Literal[
    "providers.sealed_key",
    "projects.sealed_git_url",
    "webhooks.sealed_secret",
    "triggers.sealed_secret",
    "host_links.sealed_secret",
    "attention_choices.sealed_webhook_secret",
    "push_subscriptions.sealed_subscription",
    "key_pairs.sealed_private_key",
    "push_keys.sealed_private_key",
    "audit_keys.sealed_private_key",
    "login cookie",
    "checkpoint",
]
"""What a text is sealed for: the column where it is stored, or another place. It opens for nothing else, so a sealed
text that is copied to another place is worth nothing there."""


class Vault:
    """Seals texts under the master key, each for one purpose. The database alone is not enough to read them."""

    def __init__(self, keys: MasterKeys) -> None:
        self.keys = keys
        self._private_keys: dict[str, bytes] = {}

    def seal_content(self, content: bytes, purpose: Purpose = "checkpoint") -> bytes:
        """A file's content as it may be stored on disk."""
        return bytes(SecretBox(_key_for(self.keys()[0], purpose)).encrypt(content))

    def open_content(self, sealed: bytes, purpose: Purpose = "checkpoint") -> bytes:
        """The unsealed content. Raises Precondition as `open_at_rest`."""
        return self._open(sealed, purpose).content

    def reseal_content(self, sealed: bytes, purpose: Purpose = "checkpoint") -> bytes:
        """The content under the key that seals now: `sealed` itself, if it is. Raises Precondition."""
        found = self._open(sealed, purpose)
        return sealed if found.key == self.keys()[0] else self.seal_content(found.content, purpose)

    def seal_at_rest(self, text: str, purpose: Purpose) -> str:
        """`text` as it may be stored in the database."""
        return base64.b64encode(self.seal_content(text.encode(), purpose)).decode()

    def open_at_rest(self, sealed: str, purpose: Purpose) -> str:
        """The unsealed text.

        Raises Precondition if it was sealed under another master key or for another purpose, or altered.
        """
        return self.open_content(_decoded(sealed), purpose).decode()

    def reseal_at_rest(self, sealed: str, purpose: Purpose) -> str:
        """The text under the key that seals now: `sealed` itself, if it is. Raises Precondition."""
        content = _decoded(sealed)
        resealed = self.reseal_content(content, purpose)
        return sealed if resealed == content else base64.b64encode(resealed).decode()

    def key_of(self, sealed: bytes, purpose: Purpose = "checkpoint") -> bytes | None:
        """The master key that opens this content; None if no valid key does."""
        try:
            return self._open(sealed, purpose).key
        except Precondition:
            return None

    def key_at_rest(self, sealed: str, purpose: Purpose) -> bytes | None:
        """The master key that opens this text of the database; None if no valid key does."""
        return self.key_of(_decoded(sealed), purpose)

    def _open(self, sealed: bytes, purpose: Purpose) -> _Opened:
        for key in self.keys():
            with contextlib.suppress(CryptoError, ValueError):
                return _Opened(key, SecretBox(_key_for(key, purpose)).decrypt(sealed))
        raise Precondition(
            "a stored secret cannot be decrypted with this master key",
            code="E-VAULT-KEY",
            why="it was sealed under another master key or for another purpose, or modified",
            next="use the current master key of this database (FLEET_MASTER_KEY_FILE)",
        )

    def box_keys(self, db: Session) -> BoxKeys:
        """The keys for the drones' envelopes; unsealed keys are cached, because every event needs them."""
        rows = db.scalars(select(KeyPair).order_by(KeyPair.created_at, KeyPair.id)).all()
        current = [row.id for row in rows if row.retired_at is None]
        if not current:
            raise Precondition("the control plane has no key yet", code="E-VAULT-EMPTY", next="fleet db upgrade")
        return BoxKeys(current[-1], {row.id: self._private_key(row) for row in rows})

    def ensure_box_keys(self, db: Session, clock: Clock) -> None:
        """Create the first key pair if there is none; call it inside a writing transaction.

        Two control planes that start at the same time must agree on one, because its fingerprint goes into join tokens:
        the row of the first organization is locked meanwhile (SQLite needs no such lock: its transaction began
        immediate).
        """
        db.execute(select(Organization.id).order_by(Organization.created_at).limit(1).with_for_update())
        if db.scalar(select(KeyPair.id).where(KeyPair.retired_at.is_(None)).limit(1)) is None:
            db.add(self._new_pair(clock))

    def _new_pair(self, clock: Clock) -> KeyPair:
        private = new_private_key()
        public = public_key(private)
        return KeyPair(
            id=key_id(public),
            public_key=base64.b64encode(public).decode(),
            sealed_private_key=self.seal_at_rest(base64.b64encode(private).decode(), "key_pairs.sealed_private_key"),
            created_at=clock.now(),
            retired_at=None,
        )

    def _private_key(self, row: KeyPair) -> bytes:
        if row.id not in self._private_keys:
            opened = self.open_at_rest(row.sealed_private_key, "key_pairs.sealed_private_key")
            self._private_keys[row.id] = base64.b64decode(opened)
        return self._private_keys[row.id]


@dataclass(frozen=True)
class _Opened:
    key: bytes
    """The master key."""
    content: bytes


def _key_for(master_key: bytes, purpose: Purpose) -> bytes:
    return hmac.digest(master_key, b"dronefleet sealed " + purpose.encode(), hashlib.sha256)


def _decoded(sealed: str) -> bytes:
    """The bytes of a stored text; empty, which no key opens, if it was modified."""
    try:
        return base64.b64decode(sealed, validate=True)
    except ValueError:
        return b""
