"""Rotating the master key: whatever happens, everything opens, and in the end only with the new key."""

from __future__ import annotations

import base64
import os
import signal
import sys
from io import BytesIO
from pathlib import Path

import pytest
from sqlalchemy import select

from control_plane.contract.declarations.providers import ProviderEdit
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.core.master_key import MasterKeyFile, new_master_key
from control_plane.core.settings import FleetSettings
from control_plane.core.vault import Vault
from control_plane.db.audit import AuditRecord
from control_plane.operations import providers
from control_plane.services.master_key_rotation import ACTION, Rotation, Step, rotate_master_key
from shared.blobs import digest
from shared.errors import Conflict, Precondition
from tests.support import warm_processes
from tests.support.database import CoreFactory
from tests.support.sealed import CHECKPOINT, keys_of, openable, seal_one_of_each, sealed_values

EVERYTHING = 7
"""A secret in each of the five columns, and a checkpoint."""
STEPS: tuple[Step, ...] = ("added", "resealed", "settled", "dropped")


def rotate(core: Core) -> Rotation:
    return rotate_master_key(core, lambda _: None, lambda _: None)


def recorded(core: Core) -> list[str]:
    """The outcomes of all rotations, in order."""
    with core.database.read() as db:
        of_rotations = select(AuditRecord.outcome).where(AuditRecord.action == ACTION)
        return list(db.scalars(of_rotations.order_by(AuditRecord.seq)))


def test_a_rotation_that_fails_has_a_record_of_its_failure_and_a_secret_that_no_key_opens_is_left_as_it_is(
    core: Core, admin: Caller
) -> None:
    seal_one_of_each(core, admin)
    path = core.blobs.path(digest(CHECKPOINT), sealed=True)
    path.write_bytes(b"modified")

    def fails(_step: Step) -> None:
        raise OSError("the disk failed")

    with pytest.raises(OSError, match="the disk failed"):
        rotate_master_key(core, lambda _: None, fails)
    assert recorded(core) == ["began", "failed"]
    assert (rotate(core).unreadable, path.read_bytes()) == (1, b"modified")


def key_file(core: Core) -> Path:
    assert core.settings.master_key_file is not None
    return core.settings.master_key_file


@pytest.mark.dialects
def test_afterwards_the_new_key_alone_opens_everything_and_the_old_one_nothing(
    core_factory: CoreFactory, database_url: str
) -> None:
    core = core_factory(database_url)
    seal_one_of_each(core, system_caller(core))
    old = keys_of(core.settings)
    path = core.blobs.path(digest(CHECKPOINT), sealed=True)
    os.utime(path, (1_000_000, 2_000_000))

    done = rotate(core)

    assert done == Rotation(secrets=7, checkpoints=1, unreadable=0, dropped=1)
    assert openable(core, keys_of(core.settings)) == EVERYTHING
    assert openable(core, old) == 0
    assert len(keys_of(core.settings)) == 1
    assert path.stat().st_mtime == 2_000_000, "it decides when the checkpoint is deleted"


@pytest.mark.parametrize("last", STEPS)
def test_a_rotation_that_is_killed_after_a_step_leaves_everything_readable_and_is_completed_by_the_next(
    core_factory: CoreFactory, sqlite_url: str, tmp_path: Path, last: Step
) -> None:
    core = core_factory(sqlite_url)
    seal_one_of_each(core, system_caller(core))
    old = keys_of(core.settings)

    killed = warm_processes.popen([sys.executable, "-m", "tests.support.sealed", sqlite_url, str(tmp_path), last])

    assert killed.wait(60) == -signal.SIGKILL
    assert openable(core, keys_of(core.settings)) == EVERYTHING
    assert openable(core, core.vault.keys()) == EVERYTHING, "for a process that was running all the time"
    assert recorded(core) == ["began"]
    rotate(core)
    assert recorded(core) == ["began", "began", "changed"]
    assert openable(core, keys_of(core.settings)) == EVERYTHING
    assert openable(core, old) == 0


def test_what_another_process_stores_under_the_old_key_meanwhile_is_sealed_again(core: Core, admin: Caller) -> None:
    seal_one_of_each(core, admin)
    old_keys = core.vault.keys()
    old = Vault(lambda: old_keys)

    def late(_seconds: float) -> None:
        other = Core(**{**vars(core), "vault": old})
        providers.edit(other, admin, "local", ProviderEdit(api_key="sk-late"))
        core.blobs.store_sealed(digest(b"late"), BytesIO(b"late"), old.seal_content)

    done = rotate_master_key(core, late, lambda _: None)

    assert (done.secrets, done.checkpoints) == (8, 2)
    assert openable(core, keys_of(core.settings)) == EVERYTHING + 1


def test_a_process_with_another_file_that_has_the_key_of_another_database_changes_nothing(
    core: Core, admin: Caller, core_factory: CoreFactory, tmp_path: Path
) -> None:
    seal_one_of_each(core, admin)
    url = core.database.url.render_as_string(hide_password=False)
    other = core_factory(url, master_key_file=tmp_path / "other.key")
    before = sealed_values(core)

    with pytest.raises(Precondition) as refused:
        rotate(other)

    assert refused.value.code == "E-VAULT-KEY"
    assert (sealed_values(core), len(keys_of(other.settings))) == (before, 1)


def test_two_rotations_at_once_and_a_file_of_another_user_or_without_a_key_are_refused(
    core: Core, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_one_of_each(core, admin)
    before, keys = sealed_values(core), core.vault.keys()
    with MasterKeyFile(key_file(core)).alone(), pytest.raises(Conflict) as busy:
        rotate(core)
    assert busy.value.code == "E-KEYS-BUSY"
    # That user could not read the new one.
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: key_file(core).stat().st_uid + 1)
        with pytest.raises(Precondition):
            rotate(core)
    assert len(keys_of(core.settings)) == 1
    key_file(core).write_text("half a k")
    with pytest.raises(Precondition) as refused:
        rotate(core)
    assert refused.value.code == "E-MASTER-KEY"
    assert (sealed_values(core), openable(core, keys)) == (before, EVERYTHING)


def test_with_a_variable_its_owner_adds_the_key_and_the_command_seals_everything_under_it(
    core_factory: CoreFactory, sqlite_url: str
) -> None:
    old, new = (base64.b64encode(new_master_key()).decode() for _ in range(2))
    seal_one_of_each(first := core_factory(sqlite_url, master_key=old), system_caller(first))
    with pytest.raises(Precondition) as refused:
        rotate(first)
    assert refused.value.code == "E-KEYS-VARIABLE"
    assert old not in repr(refused.value)

    done = rotate(core_factory(sqlite_url, master_key=f"{new},{old}"))

    assert (done.secrets, done.checkpoints, done.dropped) == (7, 1, 0)
    assert openable(first, keys_of(FleetSettings(**{**first.settings.model_dump(), "master_key": new}))) == EVERYTHING
