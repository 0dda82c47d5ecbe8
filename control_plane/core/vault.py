"""Secrets: sealed at rest under the master key, and the control plane's own keys for the drones' envelopes."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from nacl.utils import random
from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core.settings import FleetSettings
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


class Vault:
    """Seals texts under the master key. The database alone is not enough to read them."""

    def __init__(self, master_key: bytes) -> None:
        self._box = SecretBox(master_key)
        self._opened: dict[str, bytes] = {}

    def seal_content(self, content: bytes) -> bytes:
        """A file's content as it may be stored on disk."""
        return bytes(self._box.encrypt(content))

    def open_content(self, sealed: bytes) -> bytes:
        """The unsealed content. Raises Precondition as `open_at_rest`."""
        try:
            return self._box.decrypt(sealed)
        except CryptoError as error:
            raise Precondition(
                "a stored file cannot be decrypted with this master key",
                code="E-VAULT-KEY",
                why="it was sealed under another master key, or modified",
                next="use the master key with which this database was first used (FLEET_MASTER_KEY_FILE)",
            ) from error

    def seal_at_rest(self, text: str) -> str:
        """`text` as it may be stored in the database."""
        return base64.b64encode(bytes(self._box.encrypt(text.encode()))).decode()

    def open_at_rest(self, sealed: str) -> str:
        """The unsealed text. Raises Precondition if it was sealed under another master key, or altered."""
        try:
            return self._box.decrypt(base64.b64decode(sealed, validate=True)).decode()
        except (CryptoError, ValueError) as error:
            raise Precondition(
                "a secret in the database cannot be decrypted with this master key",
                code="E-VAULT-KEY",
                why="it was sealed under another master key, or modified",
                next="use the master key with which this database was first used (FLEET_MASTER_KEY_FILE)",
            ) from error

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
            sealed_private_key=self.seal_at_rest(base64.b64encode(private).decode()),
            created_at=clock.now(),
            retired_at=None,
        )

    def _private_key(self, row: KeyPair) -> bytes:
        if row.id not in self._opened:
            self._opened[row.id] = base64.b64decode(self.open_at_rest(row.sealed_private_key))
        return self._opened[row.id]


def open_vault(settings: FleetSettings) -> Vault:
    """The vault under the master key of the settings; a missing key file is written first (0600).

    Raises Precondition if there is neither key nor file, or if the value is not a key.
    """
    if settings.master_key:
        return Vault(_decoded(settings.master_key, "FLEET_MASTER_KEY"))
    if settings.master_key_file is None:
        raise Precondition(
            "no master key is set",
            code="E-MASTER-KEY",
            why="provider keys and git passwords are encrypted with it",
            next="FLEET_MASTER_KEY_FILE=/path/master.key (created on first use; keep a backup)",
        )
    return Vault(_from_file(settings.master_key_file))


def _from_file(path: Path) -> bytes:
    try:
        if not path.exists():
            _create(path)
        return _decoded(path.read_text(), str(path))
    except OSError as error:
        raise Precondition(
            f"the master key file {path} cannot be used", code="E-MASTER-KEY", why=error.strerror or str(error)
        ) from error


def _create(path: Path) -> None:
    # Written completely to a draft, then linked: another process that starts now sees no file or the whole file. If two
    # processes create it, the second one's link fails and it reads the file of the first one.
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-") as draft:
        draft.write(base64.b64encode(random(SecretBox.KEY_SIZE)).decode() + "\n")
        draft.flush()
        os.fsync(draft.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft.name, path)


def _decoded(text: str, where: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != SecretBox.KEY_SIZE:
        raise Precondition(f"{where} is not a master key: expected 32 bytes in base64", code="E-MASTER-KEY")
    return key
