"""A retention that is killed, and uploads at the same time: no row ever names a file that is missing."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from control_plane.core import Caller, Core
from control_plane.core.blob_store import DirectoryStore
from control_plane.db.runs import Blob
from control_plane.lookups.organizations import system_caller
from control_plane.operations.orders.reading import patch_of
from shared.blobs import digest
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.kept import KeptFleet, kept_fleet
from tests.support.made import run_of

REPOSITORY = Path(__file__).parents[3]
KILLED = """
import os, signal, sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from control_plane.core.blob_store import DirectoryStore
from control_plane.operations.retention import keeping, removing
from tests.support.clocks import HandClock
from tests.support.database import core_on

url, directory, now, left = sys.argv[1:]
removing.AT_ONCE = 2


class DyingStore(DirectoryStore):
    left = int(left)

    def remove(self, *given, **named):
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().remove(*given, **named)


core = core_on(url, Path(directory), clock=HandClock(datetime.fromisoformat(now)))
keeping.keep(replace(core, blobs=DyingStore(core.blobs.root)))
"""


@pytest.fixture
def fleet(core: Core, admin: Caller, clock: HandClock) -> KeptFleet:
    return kept_fleet(core, admin, clock)


@pytest.mark.parametrize("files_removed", [0, 4])
def test_a_run_that_is_killed_leaves_rows_and_files_that_agree_and_the_next_one_completes_it(
    fleet: KeptFleet, tmp_path: Path, files_removed: int
) -> None:
    orders = [fleet.play(f"number {number}", pushed=True) for number in range(4)]
    fleet.pass_days(400)
    url, now = fleet.core.settings.database_url, fleet.core.clock.now().isoformat()
    command = [sys.executable, "-c", KILLED, url, str(tmp_path), now, str(files_removed)]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == -9, ended.stderr
    assert (fleet.missing_files(), 0 < fleet.rows(Blob) < 12) == ([], True)
    assert [fleet.show(each).id for each in orders] == orders
    fleet.run()
    assert fleet.rows(Blob) == 0
    fleet.pass_days(7)
    fleet.run()
    assert list(fleet.core.blobs.files()) == []


def test_a_file_that_is_uploaded_again_while_its_last_row_is_removed_stays(
    core_factory: CoreFactory, sqlite_url: str, clock: HandClock
) -> None:
    core = core_factory(sqlite_url, clock=clock)
    fleet = kept_fleet(core, system_caller(core), clock)
    old = fleet.play("old", work=b"the same", pushed=True)
    fleet.pass_days(200)
    young = fleet.order("young")
    run_id = run_of(fleet.core, young)

    class UploadedMeanwhile(DirectoryStore):
        """Between the commit and the deletion of each file, the same content arrives for another run."""

        def remove(self, sha256: str, **named: Any) -> bool:
            if sha256 == digest(b"the same"):
                fleet.put(run_id, b"the same")
            return super().remove(sha256, **named)

    meanwhile = replace(fleet, core=replace(fleet.core, blobs=UploadedMeanwhile(fleet.core.blobs.root)))
    assert meanwhile.run()["work"][0] == 2
    assert (fleet.missing_files(), fleet.show(old).patch) == ([], None)
    fleet.end(young, work=b"the same")
    assert patch_of(fleet.core, fleet.admin, young) == b"the same"


def test_a_blob_is_not_removed_while_a_newer_file_is_put_in_its_place(tmp_path: Path) -> None:
    store, content = DirectoryStore(tmp_path), b"the same"
    name, now = digest(content), datetime.now(UTC)
    store.store(name, BytesIO(content))
    path = store.path(name)
    os.utime(path, (0, 0))
    lock = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    remover = threading.Thread(target=store.remove, args=(name,), kwargs={"stored_before": now})
    remover.start()
    try:
        # As in an upload, which has the lock: without it, the removal would be over by then.
        remover.join(1)
        assert remover.is_alive()
        os.utime(path, (now.timestamp() + 1, now.timestamp() + 1))
    finally:
        os.close(lock)
        remover.join()
    assert store.has(name)


def test_an_upload_waits_for_a_removal(tmp_path: Path) -> None:
    store, content = DirectoryStore(tmp_path), b"the same"
    name = digest(content)
    store.path(name).parent.mkdir(parents=True)
    lock = os.open(store.path(name).parent, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    upload = threading.Thread(target=store.store, args=(name, BytesIO(content)))
    upload.start()
    try:
        upload.join(1)
        assert (upload.is_alive(), store.has(name)) == (True, False)
    finally:
        os.close(lock)
        upload.join()
    assert store.read(name) == content
