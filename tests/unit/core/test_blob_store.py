"""Files by their digest: whole or not there."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from control_plane.core.blob_store import DirectoryStore
from shared.blobs import digest
from shared.errors import FleetFault, Invalid, NotFound, TooLarge

CONTENT = b"diff --git a/x b/x\n" * 1000
NAME = digest(CONTENT)


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "blobs")


def files(store: DirectoryStore) -> list[str]:
    """The names of all files, drafts too."""
    return [each.name for each in store.root.rglob("*") if each.is_file()]


def test_a_blob_comes_back_as_it_was_stored_however_often(store: DirectoryStore) -> None:
    assert store.store(NAME, io.BytesIO(CONTENT)) == len(CONTENT)
    store.store(NAME, io.BytesIO(CONTENT))
    assert store.read(NAME) == CONTENT
    assert (files(store), store.path(NAME)) == ([NAME], store.root / NAME[:2] / NAME)
    assert store.store(digest(b""), io.BytesIO(b"")) == 0
    assert store.has(digest(b""))


def test_content_with_another_digest_name_or_over_the_limit_is_refused_and_leaves_nothing(
    store: DirectoryStore,
) -> None:
    with pytest.raises(Invalid) as refusal:
        store.store(NAME, io.BytesIO(CONTENT[:-1]))
    with pytest.raises(TooLarge):
        store.store(NAME, io.BytesIO(CONTENT), limit=len(CONTENT) - 1)
    assert (refusal.value.code, files(store)) == ("E-BLOB-DIGEST", [])
    with pytest.raises(NotFound):
        store.read(NAME)
    # What is no digest never becomes a path.
    for name in ("", "../../etc/passwd", "x" * 64, NAME.upper(), NAME + "\n", NAME[:-1]):
        with pytest.raises(Invalid) as refusal:
            store.path(name)
        assert (name, refusal.value.code) == (name, "E-BLOB-NAME")


def test_a_stream_that_breaks_or_a_disk_that_refuses_leaves_nothing(store: DirectoryStore, tmp_path: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise ConnectionResetError

    with pytest.raises(FleetFault):
        store.store(NAME, Broken())
    assert files(store) == []
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FleetFault) as failure:
        DirectoryStore(tmp_path / "file").store(NAME, io.BytesIO(CONTENT))
    assert failure.value.code == "E-BLOB-DISK"
