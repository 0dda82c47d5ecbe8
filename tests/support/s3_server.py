"""An S3 server as a process of its own: moto's, which is a stand-in; its objects are in its memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from tests.support import free_port, wait_until

BUCKET = "fleet-blobs"
KEY, SECRET = "AKIAFLEETTESTS000000", "a secret that only tests know"


class S3Server:
    """One server with one bucket."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = directory / "s3.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a control plane that keeps its blobs here."""
        return {
            "blob_store": f"s3://{BUCKET}/of/a-fleet",
            "s3_endpoint": self.url,
            "s3_region": "us-east-1",
            "s3_access_key_id": KEY,
            "s3_secret_access_key": SECRET,
            "s3_path_style": True,
        }

    @property
    def client(self) -> Any:
        names = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
        return boto3.session.Session().client("s3", endpoint_url=self.url, **names)

    def start(self) -> None:
        """Start it, with an empty bucket."""
        with self.log.open("ab") as log:
            program = ["-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
            self._process = subprocess.Popen([sys.executable, *program], stdout=log, stderr=log)
        wait_until(self._answers, seconds=60)
        self.client.create_bucket(Bucket=BUCKET)

    @contextmanager
    def checking_credentials(self) -> Iterator[None]:
        """In the block, only keys that it knows are accepted; it knows none."""
        httpx.post(f"{self.url}/moto-api/reset-auth", content=b"0").raise_for_status()
        yield
        httpx.post(f"{self.url}/moto-api/reset-auth", content=b"inf").raise_for_status()

    def empty(self) -> None:
        """Delete all objects."""
        for key in self.keys():
            self.client.delete_object(Bucket=BUCKET, Key=key)

    def keys(self, prefix: str = "") -> list[str]:
        """The keys of the objects in the bucket."""
        found = self.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return [each["Key"] for each in found.get("Contents", ())]

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/moto-api/").is_success
        except httpx.HTTPError:
            return False


@contextmanager
def running(directory: Path) -> Iterator[S3Server]:
    """A running server with an empty bucket."""
    server = S3Server(directory)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def s3_server(tmp_path: Path) -> Iterator[S3Server]:
    with running(tmp_path) as server:
        yield server
