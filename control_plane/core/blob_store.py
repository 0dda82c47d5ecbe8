"""Files by their SHA-256 on the control plane's disk: patches, bundles, logs."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256 as new_hash
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, TypeVar

from shared.blobs import MAX_BYTES
from shared.errors import FleetFault, Invalid, NotFound, TooLarge

T = TypeVar("T")

_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHUNK = 1 << 20
MAX_SEALED = 64 * 1024 * 1024
"""Maximum bytes of sealed content: it is in memory while it is sealed."""


class BlobStore:
    """`<root>/<first two characters>/<sha256>`. An existing file is complete: it was renamed into place after an fsync.

    A sealed blob is stored in the same directory with the suffix `.sealed`, named after the SHA-256 of its plaintext.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, sha256: str, *, sealed: bool = False) -> Path:
        """The path of the blob, whether it exists or not. Raises Invalid if `sha256` is not a digest."""
        if not _DIGEST.fullmatch(sha256):
            raise Invalid("invalid blob name: expected a SHA-256 in 64 hexadecimal characters", code="E-BLOB-NAME")
        return self.root / sha256[:2] / (f"{sha256}.sealed" if sealed else sha256)

    def has(self, sha256: str) -> bool:
        return self.path(sha256).is_file()

    def store(self, sha256: str, stream: BinaryIO, *, limit: int = MAX_BYTES) -> int:
        """Store the content of `stream` and return its size. Storing the same content again changes nothing.

        Raises Invalid if the content has another digest, TooLarge over `limit`, FleetFault if the disk refuses.
        """
        with self._draft(sha256, self.path(sha256)) as draft:
            return _copy(stream, draft, sha256, limit)

    def store_sealed(self, sha256: str, stream: BinaryIO, seal: Callable[[bytes], bytes]) -> int:
        """As `store`, but writes the result of `seal` to disk; the whole content is in memory meanwhile."""
        content = BytesIO()
        size = _copy(stream, content, sha256, MAX_SEALED)
        with self._draft(sha256, self.path(sha256, sealed=True)) as draft:
            draft.write(seal(content.getvalue()))
        return size

    def read(self, sha256: str) -> bytes:
        """The content. Raises NotFound."""
        return self._read(self.path(sha256))

    def read_sealed(self, sha256: str, unseal: Callable[[bytes], T]) -> T:
        """The result of `unseal` for a sealed blob. Raises NotFound."""
        return unseal(self._read(self.path(sha256, sealed=True)))

    def sealed_names(self) -> Iterator[str]:
        """The SHA-256 of each sealed blob."""
        for path in sorted(self.root.glob("??/*.sealed")):
            yield path.name.removesuffix(".sealed")

    def reseal(self, sha256: str, reseal: Callable[[bytes], bytes]) -> bool:
        """Replace a sealed blob with what `reseal` makes of it; False if that is the same, or if it was deleted.

        It keeps its time, which decides when it may be deleted.
        """
        path = self.path(sha256, sealed=True)
        try:
            sealed, stored = path.read_bytes(), path.stat()
        except FileNotFoundError:
            return False
        resealed = reseal(sealed)
        if resealed == sealed:
            return False
        with self._draft(sha256, path) as draft:
            draft.write(resealed)
            draft.flush()
            os.utime(draft.fileno(), ns=(stored.st_atime_ns, stored.st_mtime_ns))
        return True

    def _read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except FileNotFoundError as error:
            raise NotFound(f"blob {path.name[:12]} not found", code="E-BLOB-404") from error

    @contextmanager
    def _draft(self, sha256: str, path: Path) -> Iterator[BinaryIO]:
        """A file to write to. When the block ends, it is in its place and on disk; if that fails, it is deleted."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".in-", delete=False) as draft:
                try:
                    yield draft.file  # type: ignore[misc]
                    draft.flush()
                    os.fsync(draft.fileno())
                    Path(draft.name).replace(path)
                except BaseException:
                    Path(draft.name).unlink(missing_ok=True)
                    raise
        except OSError as error:
            raise FleetFault(
                f"blob {sha256[:12]} could not be stored in {self.root}",
                code="E-BLOB-DISK",
                why=error.strerror or str(error),
                next="fleet doctor",
            ) from error


def _copy(stream: BinaryIO, target: BinaryIO, sha256: str, limit: int) -> int:
    digest, size = new_hash(), 0
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        if size > limit:
            raise TooLarge(f"the blob is larger than {limit:,} bytes", code="E-BLOB-SIZE")
        digest.update(chunk)
        target.write(chunk)
    if digest.hexdigest() != sha256:
        raise Invalid(
            f"the content does not match its name: its SHA-256 begins with {digest.hexdigest()[:12]}",
            code="E-BLOB-DIGEST",
            next="send it again",
        )
    return size
