"""Files by their SHA-256: patches, bundles, logs. What every store offers, and the one in a directory."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256 as new_hash
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from shared.blobs import MAX_BYTES
from shared.errors import FleetFault, Invalid, NotFound, TooLarge

T = TypeVar("T")

_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHUNK = 1 << 20
_SEALED = ".sealed"
MAX_SEALED = 64 * 1024 * 1024
"""Maximum bytes of sealed content: it is in memory while it is sealed."""


@dataclass(frozen=True)
class StoredFile:
    """A blob on disk."""

    sha256: str
    sealed: bool
    size: int
    since: datetime
    """When it was put there."""


class Content(Protocol):
    """Bytes of which a slice can be had without the rest; `bytes` is one."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> bytes: ...


@dataclass(frozen=True)
class PartlyRead:
    """A `Content` whose slices are read when they are asked for."""

    size: int
    read: Callable[[int, int], bytes]
    """The bytes from a place up to another, which is later."""

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice, /) -> bytes:
        start, end, _ = part.indices(self.size)
        return self.read(start, end) if start < end else b""


class BlobStore(Protocol):
    """Blobs by the SHA-256 of their content before it is sealed. One that exists is complete.

    A sealed blob and one that is not may have the same name. Every method may raise FleetFault: the store is full, away
    or refuses us; nothing was changed then, and drones try again.
    """

    shown: str
    """Where it is, without secrets."""

    @property
    def spool(self) -> Path:
        """A directory for temporary files, on a disk that can hold large ones; created if it is missing."""

    def check(self) -> None:
        """Return if the store can be used. Raises FleetFault, which says what is wrong."""

    def has(self, sha256: str, *, sealed: bool = False) -> bool: ...

    def size(self, sha256: str) -> int:
        """Bytes of a blob that is not sealed. Raises NotFound."""

    def store(self, sha256: str, stream: BinaryIO, *, limit: int = MAX_BYTES) -> int:
        """Store the content of `stream` and return its size. Storing the same content again changes nothing.

        Raises Invalid if the content has another digest, TooLarge over `limit`.
        """

    def store_sealed(self, sha256: str, stream: BinaryIO, seal: Callable[[bytes], bytes]) -> int:
        """As `store`, but stores the result of `seal`; the whole content is in memory meanwhile."""

    def read(self, sha256: str) -> bytes:
        """The content. Raises NotFound."""

    def read_sealed(self, sha256: str, unseal: Callable[[bytes], T]) -> T:
        """The result of `unseal` for a sealed blob. Raises NotFound."""

    def stored(self, sha256: str, *, sealed: bool) -> AbstractContextManager[BinaryIO]:
        """The blob as it is stored, open for reading. Raises NotFound."""

    def content(self, sha256: str) -> AbstractContextManager[Content]:
        """A blob that is not sealed, of which only the parts that are asked for are read. Raises NotFound."""

    def put_back(self, sha256: str, stream: BinaryIO, *, sealed: bool) -> None:
        """Store a blob as `stored` gave it."""

    def remove(self, sha256: str, *, sealed: bool = False, stored_before: datetime) -> bool:
        """Delete a blob and return whether it was there; one that was stored since `stored_before` stays."""

    def files(self) -> Iterator[StoredFile]:
        """Every blob."""

    def sealed_names(self) -> Iterator[str]:
        """The SHA-256 of each sealed blob."""

    def reseal(self, sha256: str, reseal: Callable[[bytes], bytes]) -> bool:
        """Replace a sealed blob with what `reseal` makes of it; False if that is the same, or if it was deleted."""


class DirectoryStore:
    """`<root>/<first two characters>/<sha256>`. An existing file is complete: it was renamed into place after an fsync.

    A sealed blob is stored in the same directory with the suffix `.sealed`, named after the SHA-256 of its plaintext.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.shown = str(root)

    @property
    def spool(self) -> Path:
        """The root: its disk holds blobs anyway, while that of /tmp may be in memory."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.root

    def check(self) -> None:
        """Raises FleetFault if the directory cannot be created."""
        try:
            self.spool.stat()
        except OSError as error:
            raise FleetFault(
                f"the blob directory {self.root} cannot be used",
                code="E-BLOB-DISK",
                why=error.strerror or str(error),
                next="check FLEET_BLOB_DIR and its owner",
            ) from error

    def path(self, sha256: str, *, sealed: bool = False) -> Path:
        """The path of the blob, whether it exists or not. Raises Invalid if `sha256` is not a digest."""
        return self.root / place_of(sha256, sealed=sealed)

    def has(self, sha256: str, *, sealed: bool = False) -> bool:
        return self.path(sha256, sealed=sealed).is_file()

    def size(self, sha256: str) -> int:
        """Bytes of a blob that is not sealed. Raises NotFound."""
        with self.content(sha256) as content:
            return len(content)

    @contextmanager
    def content(self, sha256: str) -> Iterator[Content]:
        """The blob, read from its file part by part. Raises NotFound."""
        with self.stored(sha256, sealed=False) as file:
            yield PartlyRead(
                os.fstat(file.fileno()).st_size, lambda start, end: os.pread(file.fileno(), end - start, start)
            )

    def store(self, sha256: str, stream: BinaryIO, *, limit: int = MAX_BYTES) -> int:
        """Store the content of `stream` and return its size. Storing the same content again changes nothing.

        Raises Invalid if the content has another digest, TooLarge over `limit`, FleetFault if the disk refuses.
        """
        with self._draft(sha256, self.path(sha256)) as draft:
            return copy_checked(stream, draft, sha256, limit)

    def store_sealed(self, sha256: str, stream: BinaryIO, seal: Callable[[bytes], bytes]) -> int:
        """As `store`, but writes the result of `seal` to disk; the whole content is in memory meanwhile."""
        content = BytesIO()
        size = copy_checked(stream, content, sha256, MAX_SEALED)
        with self._draft(sha256, self.path(sha256, sealed=True)) as draft:
            draft.write(seal(content.getvalue()))
        return size

    def read(self, sha256: str) -> bytes:
        """The content. Raises NotFound."""
        return self._read(self.path(sha256))

    def read_sealed(self, sha256: str, unseal: Callable[[bytes], T]) -> T:
        """The result of `unseal` for a sealed blob. Raises NotFound."""
        return unseal(self._read(self.path(sha256, sealed=True)))

    @contextmanager
    def stored(self, sha256: str, *, sealed: bool) -> Iterator[BinaryIO]:
        """The blob as it is on disk, open for reading. Raises NotFound."""
        path = self.path(sha256, sealed=sealed)
        try:
            with path.open("rb") as file:
                yield file
        except FileNotFoundError as error:
            raise not_found(path.name) from error

    def put_back(self, sha256: str, stream: BinaryIO, *, sealed: bool) -> None:
        """Store a blob as `stored` gave it. Raises FleetFault if the disk refuses."""
        with self._draft(sha256, self.path(sha256, sealed=sealed)) as draft:
            shutil.copyfileobj(stream, draft, _CHUNK)

    def remove(self, sha256: str, *, sealed: bool = False, stored_before: datetime) -> bool:
        """Delete a blob and return whether it was there; one that was stored since `stored_before` stays.

        An upload of the same content at the same time is never lost: its file is newer, and it is put in its place
        under the lock that this holds.
        """
        path = self.path(sha256, sealed=sealed)
        try:
            with _held(path.parent):
                if path.stat().st_mtime >= stored_before.timestamp():
                    return False
                path.unlink()
        except FileNotFoundError:
            return False
        return True

    def files(self) -> Iterator[StoredFile]:
        """Every blob on disk."""
        for path in self.root.glob("??/*"):
            if (found_name := name_of(path.name)) is not None:
                with suppress(FileNotFoundError):
                    found = path.stat()
                    # A copied file has the time of its original, but the copy changed its inode.
                    since = max(found.st_mtime, found.st_ctime)
                    yield StoredFile(*found_name, found.st_size, datetime.fromtimestamp(since, UTC))

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
            raise not_found(path.name) from error

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
                    with _held(path.parent):
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


@contextmanager
def _held(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory of blobs: none of them is replaced and deleted at the same time."""
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def place_of(sha256: str, *, sealed: bool) -> str:
    """The blob's place below the root of a store. Raises Invalid if `sha256` is not a digest."""
    if not _DIGEST.fullmatch(sha256):
        raise Invalid("invalid blob name: expected a SHA-256 in 64 hexadecimal characters", code="E-BLOB-NAME")
    return f"{sha256[:2]}/{sha256}{_SEALED if sealed else ''}"


def name_of(file: str) -> tuple[str, bool] | None:
    """The SHA-256 in the name of a file, and whether the blob is sealed; None if it is no blob."""
    name, sealed = file.removesuffix(_SEALED), file.endswith(_SEALED)
    return (name, sealed) if _DIGEST.fullmatch(name) else None


def not_found(sha256: str) -> NotFound:
    """The error for a blob that is not in its store."""
    return NotFound(f"blob {sha256[:12]} not found", code="E-BLOB-404")


def copy_checked(stream: BinaryIO, target: BinaryIO, sha256: str, limit: int) -> int:
    """Copy a content and return its size. Raises Invalid if it has another digest, TooLarge over `limit`."""
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
