"""Secrets at rest, and where the master key comes from."""

from __future__ import annotations

import base64
import stat
from pathlib import Path
from typing import Any

import pytest

from control_plane.core.settings import FleetSettings, is_loopback, read_settings
from control_plane.core.vault import Vault, open_vault
from shared.errors import Invalid, Precondition

KEY = bytes(range(32))
TEXT = base64.b64encode(KEY).decode()


def settings(**fields: Any) -> FleetSettings:
    return FleetSettings(**{"database_url": "sqlite:////x", "broker_url": "redis://x", "blob_dir": "/x", **fields})


def test_what_was_sealed_opens_again_and_cannot_be_read() -> None:
    sealed = Vault(KEY).seal_at_rest("hunter2 ü")
    assert b"hunter2" not in base64.b64decode(sealed)
    assert Vault(KEY).open_at_rest(sealed) == "hunter2 ü"


@pytest.mark.parametrize("sealed", ["", "nonsense", "AAAA", base64.b64encode(b"x" * 60).decode()])
def test_what_was_altered_does_not_open_and_says_what_to_do(sealed: str) -> None:
    with pytest.raises(Precondition) as refusal:
        Vault(KEY).open_at_rest(sealed)
    assert refusal.value.code == "E-VAULT-KEY"


def test_another_master_key_does_not_open_it() -> None:
    with pytest.raises(Precondition, match="cannot be decrypted with this master key"):
        Vault(bytes(32)).open_at_rest(Vault(KEY).seal_at_rest("x"))


def test_a_key_file_that_is_not_there_is_written_for_its_owner_alone_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "master.key"
    sealed = open_vault(settings(master_key_file=path)).seal_at_rest("x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert open_vault(settings(master_key_file=path)).open_at_rest(sealed) == "x"
    assert [each.name for each in path.parent.iterdir()] == ["master.key"]


def test_a_key_in_the_settings_goes_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    sealed = open_vault(settings(master_key=TEXT, master_key_file=path)).seal_at_rest("x")
    assert Vault(KEY).open_at_rest(sealed) == "x"
    assert not path.exists()


def test_without_any_key_the_sentence_names_the_variable() -> None:
    with pytest.raises(Precondition) as refusal:
        open_vault(settings())
    assert "FLEET_MASTER_KEY_FILE" in refusal.value.next


@pytest.mark.parametrize("text", ["", "short", "not base64 at all!", base64.b64encode(b"x" * 31).decode()])
def test_a_file_that_holds_no_key_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "master.key"
    path.write_text(text)
    with pytest.raises(Precondition) as refusal:
        open_vault(settings(master_key_file=path))
    assert refusal.value.what == f"{path} is not a master key: expected 32 bytes in base64"


def test_a_directory_in_the_place_of_the_key_is_told_as_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Precondition, match="cannot be used"):
        open_vault(settings(master_key_file=tmp_path))


# --- settings -----------------------------------------------------------------------------


def test_settings_do_not_show_a_password_or_a_key() -> None:
    made = settings(database_url="postgresql://a:hunter2@h/x", broker_url="redis://a:hunter3@h", master_key=TEXT)
    assert "hunter" not in repr(made)
    assert TEXT not in repr(made)


def test_missing_settings_are_all_named_and_no_value_is_shown() -> None:
    with pytest.raises(Invalid) as refusal:
        read_settings(port="hunter2")
    assert "FLEET_DATABASE_URL" in refusal.value.what
    assert "FLEET_PORT" in refusal.value.what
    assert "hunter2" not in refusal.value.what


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({}, "http://127.0.0.1:8420"),
        ({"host": "::1", "port": 1}, "http://[::1]:1"),
        ({"public_url": "https://fleet.example/"}, "https://fleet.example"),
    ],
)
def test_the_url_is_the_public_one_or_where_it_listens(fields: dict[str, Any], url: str) -> None:
    assert settings(**fields).url == url


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "fleet.example", "127.0.0.1.example", ""])
def test_all_else_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)
    assert not settings(host=host).file_urls_allowed
