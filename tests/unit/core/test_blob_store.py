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


def test_a_blob_comes_back_as_it_was_stored(store: DirectoryStore) -> None:
    assert store.store(NAME, io.BytesIO(CONTENT)) == len(CONTENT)
    assert store.read(NAME) == CONTENT
    assert store.path(NAME) == store.root / NAME[:2] / NAME


def test_storing_it_again_changes_nothing(store: DirectoryStore) -> None:
    store.store(NAME, io.BytesIO(CONTENT))
    store.store(NAME, io.BytesIO(CONTENT))
    assert files(store) == [NAME]


def test_an_empty_blob_is_one_too(store: DirectoryStore) -> None:
    assert store.store(digest(b""), io.BytesIO(b"")) == 0
    assert store.has(digest(b""))


def test_content_with_another_digest_is_refused_and_leaves_nothing(store: DirectoryStore) -> None:
    with pytest.raises(Invalid) as refusal:
        store.store(NAME, io.BytesIO(CONTENT[:-1]))
    assert refusal.value.code == "E-BLOB-DIGEST"
    assert files(store) == []


def test_content_over_the_limit_is_refused_and_leaves_nothing(store: DirectoryStore) -> None:
    with pytest.raises(TooLarge):
        store.store(NAME, io.BytesIO(CONTENT), limit=len(CONTENT) - 1)
    assert files(store) == []


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "x" * 64, NAME.upper(), NAME + "\n", NAME[:-1]])
def test_a_name_that_is_no_digest_never_becomes_a_path(store: DirectoryStore, name: str) -> None:
    with pytest.raises(Invalid) as refusal:
        store.path(name)
    assert refusal.value.code == "E-BLOB-NAME"


def test_a_blob_that_is_not_there_is_not_found(store: DirectoryStore) -> None:
    with pytest.raises(NotFound):
        store.read(NAME)


def test_a_stream_that_breaks_leaves_nothing(store: DirectoryStore) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise ConnectionResetError

    with pytest.raises(FleetFault):
        store.store(NAME, Broken())
    assert files(store) == []


def test_a_disk_that_refuses_is_told_as_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FleetFault) as failure:
        DirectoryStore(tmp_path / "file").store(NAME, io.BytesIO(CONTENT))
    assert failure.value.code == "E-BLOB-DISK"
