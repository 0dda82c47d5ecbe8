"""Files by their SHA-256 on the control plane's disk: patches, bundles, logs."""

from __future__ import annotations

import os
import re
import tempfile
from hashlib import sha256 as new_hash
from pathlib import Path
from typing import BinaryIO

from shared.blobs import MAX_BYTES
from shared.errors import FleetFault, Invalid, NotFound, TooLarge

_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHUNK = 1 << 20


class BlobStore:
    """`<root>/<first two characters>/<sha256>`. What is there is whole: it was renamed into place after an fsync."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, sha256: str) -> Path:
        """Where the blob lies or would lie. Raises Invalid where `sha256` is not a digest."""
        if not _DIGEST.fullmatch(sha256):
            raise Invalid("the name of a blob is 64 hexadecimal characters: its SHA-256", code="E-BLOB-NAME")
        return self.root / sha256[:2] / sha256

    def has(self, sha256: str) -> bool:
        return self.path(sha256).is_file()

    def store(self, sha256: str, stream: BinaryIO, *, limit: int = MAX_BYTES) -> int:
        """Store what `stream` gives and return its size. Storing the same again changes nothing.

        Raises Invalid where the content has another digest, TooLarge over `limit`, FleetFault where the disk refuses.
        """
        path = self.path(sha256)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".in-", delete=False) as draft:
                try:
                    size = _copy(stream, draft.file, sha256, limit)  # type: ignore[arg-type]
                    os.fsync(draft.fileno())
                    Path(draft.name).replace(path)
                except BaseException:
                    Path(draft.name).unlink(missing_ok=True)
                    raise
        except OSError as error:
            raise FleetFault(
                f"the blob {sha256[:12]} could not be stored in {self.root}",
                code="E-BLOB-DISK",
                why=error.strerror or str(error),
                next="fleet doctor",
            ) from error
        return size

    def read(self, sha256: str) -> bytes:
        """The content. Raises NotFound."""
        try:
            return self.path(sha256).read_bytes()
        except FileNotFoundError as error:
            raise NotFound(f"the blob {sha256[:12]} is not here", code="E-BLOB-404") from error


def _copy(stream: BinaryIO, target: BinaryIO, sha256: str, limit: int) -> int:
    digest, size = new_hash(), 0
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        if size > limit:
            raise TooLarge(f"a blob may have {limit:,} bytes; this one has more", code="E-BLOB-SIZE")
        digest.update(chunk)
        target.write(chunk)
    if digest.hexdigest() != sha256:
        raise Invalid(
            f"the content is not what its name says: its SHA-256 begins with {digest.hexdigest()[:12]}",
            code="E-BLOB-DIGEST",
            next="send it again",
        )
    target.flush()
    return size
