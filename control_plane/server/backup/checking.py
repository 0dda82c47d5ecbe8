"""Verify a backup without restoring it: every file is read and compared with what was recorded of it."""

from __future__ import annotations

from pathlib import Path

from control_plane.server.backup.files import compare, lines_of
from control_plane.server.backup.manifest import BLOB_LIST, DATABASE, Manifest, damaged, read_manifest, saved_blobs
from control_plane.server.backup.rows import count_rows


def check_backup(backup: Path) -> Manifest:
    """The manifest of a complete backup.

    Raises Invalid (`E-BACKUP-DAMAGED`) if a part is missing, cut off or changed, Precondition (`E-BACKUP-NEWER`) if a
    newer version made it.
    """
    manifest = read_manifest(backup)
    for required in (DATABASE, BLOB_LIST):
        if required not in manifest.parts:
            raise damaged(backup, f"its manifest does not name {required}")
    for name, part in manifest.parts.items():
        compare(backup, name, part)
    with lines_of(backup / DATABASE) as lines:
        if count_rows(lines) != manifest.rows:
            raise damaged(backup, f"{DATABASE} has other rows than the manifest says")
    for blob in saved_blobs(backup):
        compare(backup, blob.file, blob)
    return manifest
