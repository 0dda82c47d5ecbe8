"""What a backup is: a directory whose manifest, written last, names each part with its size and SHA-256.

`manifest.json`, `database.jsonl.gz`, `blobs.jsonl` (one line for each file in `blobs/`), and `master.key` on request.
A backup without a manifest was cut off.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from control_plane.db.upgrade import known_revisions, require_released
from shared.errors import Invalid, Precondition
from shared.terminal.boundary import version

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "database.jsonl.gz"
BLOB_LIST = "blobs.jsonl"
BLOBS = "blobs"
MASTER_KEY = "master.key"
_DIGEST = "sha256"


class BackupPart(BaseModel):
    """A file of the backup."""

    model_config = ConfigDict(frozen=True)

    size: int
    """Bytes."""
    sha256: str


class SavedBlob(BackupPart):
    """A blob as it is stored: one line of the list of blobs."""

    name: str
    """The SHA-256 of its content before it was sealed, under which the database knows it."""
    sealed: bool

    @property
    def file(self) -> Path:
        """Its place below the backup."""
        return Path(BLOBS, self.name[:2], f"{self.name}.sealed" if self.sealed else self.name)


class LocalFleet(BaseModel):
    """What a `fleet up` remembers outside its database."""

    model_config = ConfigDict(frozen=True)

    ports: dict[str, int]
    """Drones know these from their registration."""
    drone_ids: tuple[str, ...] = ()
    """Its embedded drones, whose homes are not in the backup."""


class Manifest(BaseModel):
    """The manifest of a backup."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    program: str
    """The version of Dronefleet that made it."""
    revision: str
    """Of the database."""
    made_at: datetime
    parts: dict[str, BackupPart]
    rows: dict[str, int]
    """By table."""
    rows_bytes: int
    """Of the rows before compression."""
    blobs: int
    blobs_bytes: int
    missing_blobs: tuple[str, ...]
    """Blobs that rows name but that could not be read; at most 100 of them."""
    master_keys: tuple[str, ...]
    """Fingerprints of the master keys without which its secrets cannot be read."""
    local_fleet: LocalFleet | None = None

    @property
    def with_keys(self) -> bool:
        return MASTER_KEY in self.parts

    @property
    def size(self) -> int:
        """Bytes of the whole backup."""
        return self.blobs_bytes + sum(part.size for part in self.parts.values())


def manifest_text(manifest: Manifest) -> str:
    """The content of the manifest's file, with its own digest."""
    document = manifest.model_dump(mode="json")
    return json.dumps({**document, _DIGEST: _digest(document)}, indent=2)


def read_manifest(backup: Path) -> Manifest:
    """The manifest of the backup in this directory.

    Raises Invalid if it is missing, cut off or changed, Precondition if a newer version made the backup, or one
    from before the first release.
    """
    try:
        document = json.loads((backup / MANIFEST).read_text())
    except (OSError, ValueError) as error:
        why = "its manifest is missing, so it was cut off, or it is something else"
        raise damaged(backup, why if isinstance(error, OSError) else f"{MANIFEST} is not JSON") from error
    if not isinstance(document, dict):
        raise damaged(backup, f"{MANIFEST} is not an object")
    _require_known(backup, document)
    given = document.pop(_DIGEST, None)
    try:
        manifest = Manifest.model_validate(document)
    except ValidationError as error:
        raise damaged(backup, f"{MANIFEST} lacks fields or has others") from error
    if given != _digest(document):
        raise damaged(backup, f"{MANIFEST} was changed")
    return manifest


def saved_blobs(backup: Path) -> Iterator[SavedBlob]:
    """Each line of the list of blobs."""
    with (backup / BLOB_LIST).open(encoding="utf-8") as lines:
        for line in lines:
            yield SavedBlob.model_validate_json(line)


def damaged(backup: Path, why: str) -> Invalid:
    """The error for a backup that cannot be used."""
    return Invalid(
        f"{backup} is not a complete backup",
        code="E-BACKUP-DAMAGED",
        why=why,
        next="use another backup, or copy this one again from where it was made",
    )


def _require_known(backup: Path, document: dict[str, Any]) -> None:
    made_by, revision = str(document.get("program"))[:40], str(document.get("revision"))[:40]
    if document.get("format") == FORMAT and revision in known_revisions():
        return
    require_released(revision, f"the database in {backup}")
    raise Precondition(
        f"{backup} was made by Dronefleet {made_by} with revision {revision} of the database",
        code="E-BACKUP-NEWER",
        why=f"this is Dronefleet {version()}, which knows revisions up to {known_revisions()[-1]}",
        next=f"install Dronefleet {made_by} or newer, and repeat the command",
    )


def _digest(document: dict[str, Any]) -> str:
    return sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
