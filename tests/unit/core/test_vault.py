"""Secrets at rest, and where the master key comes from."""

from __future__ import annotations

import base64
import stat
from pathlib import Path
from typing import Any, get_args

import pytest

from control_plane.core.master_key import MasterKeyFile, master_keys
from control_plane.core.settings import FleetSettings, is_loopback, read_settings
from control_plane.core.vault import Purpose, Vault
from control_plane.db.metadata import METADATA
from shared.errors import Conflict, Invalid, Precondition

KEY = bytes(range(32))
PURPOSE: Purpose = "providers.sealed_key"
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
TEXT = base64.b64encode(KEY).decode()


def settings(**fields: Any) -> FleetSettings:
    return FleetSettings(**{"database_url": "sqlite:////x", "broker_url": "redis://x", "blob_dir": "/x", **fields})


def under(*keys: bytes) -> Vault:
    return Vault(lambda: keys)


def vault_of(found: FleetSettings) -> Vault:
    return Vault(master_keys(found))


def test_what_was_sealed_opens_again_but_not_where_it_was_altered_or_with_another_key() -> None:
    sealed = under(KEY).seal_at_rest("hunter2 ü", PURPOSE)
    assert b"hunter2" not in base64.b64decode(sealed)
    assert under(KEY).open_at_rest(sealed, PURPOSE) == "hunter2 ü"
    altered = (
        "",
        "nonsense",
        "AAAA",
        base64.b64encode(b"x" * 60).decode(),
        under(bytes(32)).seal_at_rest("x", PURPOSE),
    )
    for sealed in altered:
        with pytest.raises(Precondition) as refusal:
            under(KEY).open_at_rest(sealed, PURPOSE)
        assert (sealed, refusal.value.code) == (sealed, "E-VAULT-KEY")


def test_a_key_file_that_is_not_there_is_written_for_its_owner_alone_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "master.key"
    sealed = vault_of(settings(master_key_file=path)).seal_at_rest("x", PURPOSE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert vault_of(settings(master_key_file=path)).open_at_rest(sealed, PURPOSE) == "x"
    assert [each.name for each in path.parent.iterdir()] == ["master.key"]


def test_keys_in_the_settings_go_before_the_file_and_the_first_one_seals(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    both = vault_of(settings(master_key=f"{TEXT},{base64.b64encode(NEW).decode()}", master_key_file=path))
    assert under(KEY).open_at_rest(both.seal_at_rest("x", PURPOSE), PURPOSE) == "x"
    assert both.open_at_rest(under(NEW).seal_at_rest("x", PURPOSE), PURPOSE) == "x"
    assert not path.exists()


def test_a_file_that_holds_no_key_is_refused_without_showing_it(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    for text in ("", "short", "not base64 at all!", base64.b64encode(b"x" * 31).decode()):
        path.write_text(text)
        with pytest.raises(Precondition) as refusal:
            vault_of(settings(master_key_file=path))
        assert text == "" or text not in str(refusal.value)
    for given in (settings(master_key_file=tmp_path), settings()):
        with pytest.raises(Precondition):
            vault_of(given)


# --- purposes --------------------------------------------------------------------------------


def test_what_is_sealed_for_one_purpose_opens_for_no_other() -> None:
    vault = under(KEY)
    sealed = {purpose: vault.seal_at_rest("x", purpose) for purpose in PURPOSES}
    opened = {(of, to) for of in PURPOSES for to in PURPOSES if vault.key_at_rest(sealed[of], to)}
    assert opened == {(purpose, purpose) for purpose in PURPOSES}


def test_every_sealed_column_is_a_purpose_of_its_own() -> None:
    columns = (column for table in METADATA.sorted_tables for column in table.columns)
    sealed = {str(column) for column in columns if column.name.startswith("sealed_")}
    assert {*PURPOSES} == sealed | {"login cookie", "checkpoint"}


# --- several keys ----------------------------------------------------------------------------


NEW = bytes(reversed(range(32)))


def test_what_is_sealed_again_opens_with_the_new_key_alone_and_is_left_alone_afterwards() -> None:
    resealed = under(NEW, KEY).reseal_at_rest(under(KEY).seal_at_rest("x", PURPOSE), PURPOSE)
    assert under(NEW).open_at_rest(resealed, PURPOSE) == "x"
    assert under(NEW, KEY).reseal_at_rest(resealed, PURPOSE) == resealed
    with pytest.raises(Precondition):
        under(KEY).open_at_rest(resealed, PURPOSE)


def test_a_running_process_takes_new_keys_from_the_file_and_keeps_the_last_valid_ones(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    path.write_text(TEXT)
    keys = MasterKeyFile(path)
    path.write_text(f"{base64.b64encode(NEW).decode()}\n\n{TEXT}\n")
    assert keys() == (NEW, KEY)
    path.write_text("half a k")
    assert keys() == (NEW, KEY)
    path.unlink()
    assert keys() == (NEW, KEY)


def test_a_written_key_file_keeps_its_mode_its_link_and_nothing_that_a_killed_process_left(tmp_path: Path) -> None:
    path, link, left = tmp_path / "kept" / "key", tmp_path / "master.key", tmp_path / "kept" / ".key-left"
    path.parent.mkdir()
    path.write_text(TEXT)
    path.chmod(0o640)
    left.write_text(TEXT)
    link.symlink_to(path)
    file = MasterKeyFile(link)
    with file.alone():
        file.replace([NEW])
        # One process changes it at a time.
        with pytest.raises(Conflict) as refused, MasterKeyFile(link).alone():
            pass
    assert (MasterKeyFile(path)(), stat.S_IMODE(path.stat().st_mode), link.is_symlink()) == ((NEW,), 0o640, True)
    assert ([each.name for each in path.parent.iterdir()], refused.value.code) == (["key"], "E-KEYS-BUSY")


# --- settings -----------------------------------------------------------------------------


def test_no_settings_show_a_password_or_a_key_and_missing_ones_are_all_named() -> None:
    made = settings(database_url="postgresql://a:hunter2@h/x", broker_url="redis://a:hunter3@h", master_key=TEXT)
    assert ("hunter" in repr(made), TEXT in repr(made)) == (False, False)
    with pytest.raises(Invalid) as refusal:
        read_settings(port="hunter2")
    assert ("FLEET_DATABASE_URL" in refusal.value.what, "FLEET_PORT" in refusal.value.what) == (True, True)
    assert "hunter2" not in refusal.value.what


def test_loopback_is_known_and_only_there_files_are_allowed() -> None:
    hosts = dict.fromkeys(("localhost", "127.0.0.1", "127.9.9.9", "::1"), True)
    hosts |= dict.fromkeys(("0.0.0.0", "::", "10.0.0.1", "fleet.example", "127.0.0.1.example", ""), False)
    assert {host: is_loopback(host) for host in hosts} == hosts
    assert {host: settings(host=host).file_urls_allowed for host in hosts if not hosts[host]} == dict.fromkeys(
        (host for host in hosts if not hosts[host]), False
    )
