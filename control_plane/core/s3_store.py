"""Blobs in a bucket of an S3-compatible server.

An object appears when its upload has ended, so one that exists is complete. botocore is imported only if a bucket is
configured. Every request has a time limit; a slow server costs the caller that time, so it should not be asked within
a transaction; an import and the judge of a race still do.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError, NoCredentialsError
from botocore.exceptions import ConnectionError as NoConnection

from control_plane.core.blob_store import (
    MAX_SEALED,
    Content,
    PartlyRead,
    StoredFile,
    copy_checked,
    name_of,
    not_found,
    place_of,
)
from control_plane.core.settings import FleetSettings
from shared.blobs import MAX_BYTES
from shared.errors import FleetFault, NotFound, Unreachable

T = TypeVar("T")
CONNECT_SECONDS = 5.0
READ_SECONDS = 20.0
"""How long the server may say nothing."""
ATTEMPTS = 3
_CHUNK = 1 << 20
_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
_DENIED = frozenset(
    {"401", "403", "AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"}
)


class S3Store:
    """`<prefix>/<first two characters>/<sha256>`, as in a directory; see `BlobStore`."""

    def __init__(self, settings: FleetSettings) -> None:
        bucket, _, prefix = str(settings.blob_store).removeprefix("s3://").partition("/")
        self.bucket, self.prefix = bucket, prefix.strip("/")
        self.shown = f"s3://{self.bucket}/{self.prefix}".rstrip("/")
        self._spool = settings.blob_dir
        self._client = _client(settings)

    @property
    def spool(self) -> Path:
        """The directory of the settings."""
        self._spool.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self._spool

    def check(self) -> None:
        """Ask for the names of the bucket. Raises FleetFault, which says what is wrong."""
        with self._errors():
            self._client.list_objects_v2(Bucket=self.bucket, Prefix=self._key(""), MaxKeys=1)

    def has(self, sha256: str, *, sealed: bool = False) -> bool:
        return self._head(sha256, sealed=sealed) is not None

    def size(self, sha256: str) -> int:
        found = self._head(sha256, sealed=False)
        if found is None:
            raise not_found(sha256)
        return int(found["ContentLength"])

    def store(self, sha256: str, stream: BinaryIO, *, limit: int = MAX_BYTES) -> int:
        with tempfile.TemporaryFile(dir=self.spool) as draft:
            size = copy_checked(stream, cast("BinaryIO", draft), sha256, limit)
            draft.seek(0)
            self._put(sha256, cast("BinaryIO", draft), sealed=False)
        return size

    def store_sealed(self, sha256: str, stream: BinaryIO, seal: Callable[[bytes], bytes]) -> int:
        content = BytesIO()
        size = copy_checked(stream, content, sha256, MAX_SEALED)
        self._put(sha256, BytesIO(seal(content.getvalue())), sealed=True)
        return size

    def read(self, sha256: str) -> bytes:
        return self._read(sha256, sealed=False)

    def read_sealed(self, sha256: str, unseal: Callable[[bytes], T]) -> T:
        return unseal(self._read(sha256, sealed=True))

    @contextmanager
    def stored(self, sha256: str, *, sealed: bool) -> Iterator[BinaryIO]:
        with tempfile.TemporaryFile(dir=self.spool) as copy:
            self._fetch(sha256, cast("BinaryIO", copy), sealed=sealed)
            copy.seek(0)
            yield cast("BinaryIO", copy)

    @contextmanager
    def content(self, sha256: str) -> Iterator[Content]:
        """A request for each slice."""

        def read(start: int, end: int) -> bytes:
            part = BytesIO()
            self._fetch(sha256, part, sealed=False, Range=f"bytes={start}-{end - 1}")
            return part.getvalue()

        yield PartlyRead(self.size(sha256), read)

    def put_back(self, sha256: str, stream: BinaryIO, *, sealed: bool) -> None:
        self._put(sha256, stream, sealed=sealed)

    def remove(self, sha256: str, *, sealed: bool = False, stored_before: datetime) -> bool:
        """As in `BlobStore`, but a server has no lock: between the look at the time and the deletion, some
        milliseconds, an upload of the same content would be lost."""
        found = self._head(sha256, sealed=sealed)
        if found is None or found["LastModified"] >= stored_before:
            return False
        with self._errors():
            self._client.delete_object(Bucket=self.bucket, Key=self._key(place_of(sha256, sealed=sealed)))
        return True

    def files(self) -> Iterator[StoredFile]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self._key(""))
        with self._errors():
            for page in pages:
                for each in page.get("Contents", ()):
                    if (name := name_of(each["Key"].rpartition("/")[2])) is not None:
                        yield StoredFile(*name, each["Size"], each["LastModified"])

    def sealed_names(self) -> Iterator[str]:
        return (each.sha256 for each in self.files() if each.sealed)

    def reseal(self, sha256: str, reseal: Callable[[bytes], bytes]) -> bool:
        """As in `BlobStore`; the object gets a new time, so it is kept for somewhat longer."""
        try:
            sealed = self._read(sha256, sealed=True)
        except NotFound:
            return False
        resealed = reseal(sealed)
        if resealed == sealed:
            return False
        self._put(sha256, BytesIO(resealed), sealed=True)
        return True

    def _key(self, place: str) -> str:
        return f"{self.prefix}/{place}" if self.prefix else place

    def _head(self, sha256: str, *, sealed: bool) -> dict[str, Any] | None:
        with suppress(NotFound), self._errors(sha256):
            key = self._key(place_of(sha256, sealed=sealed))
            return cast("dict[str, Any]", self._client.head_object(Bucket=self.bucket, Key=key))
        return None

    def _put(self, sha256: str, stream: BinaryIO, *, sealed: bool) -> None:
        with self._errors():
            self._client.put_object(Bucket=self.bucket, Key=self._key(place_of(sha256, sealed=sealed)), Body=stream)

    def _read(self, sha256: str, *, sealed: bool) -> bytes:
        content = BytesIO()
        self._fetch(sha256, content, sealed=sealed)
        return content.getvalue()

    def _fetch(self, sha256: str, target: BinaryIO, *, sealed: bool, **part: str) -> None:
        with self._errors(sha256):
            key = self._key(place_of(sha256, sealed=sealed))
            found = self._client.get_object(Bucket=self.bucket, Key=key, **part)
            with found["Body"] as body:
                shutil.copyfileobj(body, target, _CHUNK)

    @contextmanager
    def _errors(self, sha256: str = "") -> Iterator[None]:
        """Translate errors of the client; a missing object is NotFound only where `sha256` names one."""
        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if sha256 and code in _MISSING:
                raise not_found(sha256) from error
            raise self._refusal(code, error) from error
        except NoCredentialsError as error:
            raise self._denied(str(error)) from error
        except (HTTPClientError, IncompleteReadError, NoConnection) as error:
            raise Unreachable(
                f"the blob store {self.shown} does not respond",
                code="E-S3-UNREACHABLE",
                why=_shortened(error),
                next="check FLEET_S3_ENDPOINT, and that the server runs",
            ) from error
        except BotoCoreError as error:
            raise self._refusal("", error) from error

    def _refusal(self, code: str, error: Exception) -> FleetFault:
        if code == "NoSuchBucket" or (code in _MISSING and "Bucket" in str(error)):
            return FleetFault(
                f"the bucket {self.bucket} does not exist",
                code="E-S3-BUCKET",
                why=_shortened(error),
                next="create the bucket, or change FLEET_BLOB_STORE",
            )
        if code in _DENIED:
            return self._denied(_shortened(error))
        return FleetFault(
            f"the blob store {self.shown} refused a request",
            code="E-S3-REFUSED",
            why=_shortened(error),
            next="fleet doctor",
        )

    def _denied(self, why: str) -> FleetFault:
        return FleetFault(
            f"the blob store {self.shown} does not accept our credentials",
            code="E-S3-DENIED",
            why=why,
            next="check FLEET_S3_ACCESS_KEY_ID and FLEET_S3_SECRET_ACCESS_KEY, and the rights of that key",
        )


def _client(settings: FleetSettings) -> Any:
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        s3={"addressing_style": "path" if settings.s3_path_style else "auto"},
        # Servers other than AWS do not know the newer checksums in trailers.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        max_pool_connections=50,
    )
    return boto3.session.Session().client(
        "s3",
        endpoint_url=settings.s3_endpoint,
        region_name=settings.s3_region,
        aws_access_key_id=settings.s3_access_key_id,
        aws_secret_access_key=settings.s3_secret_access_key,
        config=config,
    )


def _shortened(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:300]
