"""The configuration file of `fleet`: what it sets, and what is refused about it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from control_plane.cli import config_file, connection
from control_plane.cli.servers import _fleet_to_watch
from control_plane.server.embedded.data_dir import DataDir
from shared.errors import Invalid, Precondition, Unreachable


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of the file, with a home in which no fleet runs."""
    for variable in ("FLEET_URL", "FLEET_API_TOKEN", "FLEET_ORG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("FLEET_HOME", str(tmp_path / "fleet"))
    found = config_file.path()
    found.parent.mkdir(parents=True)
    return found


def written(file: Path, text: str, mode: int = 0o600) -> None:
    file.write_text(text)
    file.chmod(mode)


def test_the_file_says_which_server_and_the_environment_takes_precedence(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (config_file.settings(), config_file.up_settings()) == ({}, {})
    with pytest.raises(Unreachable):
        connection.selected_server()
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / "server.json").write_text('{"url": "http://127.0.0.1:8420", "token": "local"}')
    assert connection.selected_server()[:2] == ("http://127.0.0.1:8420", "local")
    # The running fleet counts only if the file names no server.
    written(file, 'url = "https://fleet.example.org"\n[up]\nport = 9000\nflower = false\ndata_dir = "/srv/fleet"\n')
    assert connection.selected_server()[:2] == ("https://fleet.example.org", None)
    assert config_file.up_settings() == {"port": 9000, "flower": False, "data_dir": "/srv/fleet"}

    written(file, 'version = 1\nurl = "https://fleet.example.org"\ntoken = "t1"\norg = "payments"\n')
    assert connection.selected_server()[:2] == ("https://fleet.example.org", "t1")
    assert (connection.organization(None), connection.organization("named")) == ("payments", "named")
    monkeypatch.setenv("FLEET_ORG", "platform")
    monkeypatch.setenv("FLEET_URL", "https://other.example.org")
    assert connection.organization(None) == "platform"
    # The token in the file is for the server in the file.
    assert connection.selected_server()[:2] == ("https://other.example.org", None)
    monkeypatch.setenv("FLEET_API_TOKEN", "t2")
    assert connection.selected_server()[:2] == ("https://other.example.org", "t2")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("url = ", "invalid TOML"),
        ("\0", "invalid TOML"),
        (b"\xff\xfe\0", ""),
        ("version = 2", "version 2 is newer"),
        ('ulr = "https://x"', "did you mean url?"),
        ("[up]\nprot = 1", "did you mean up.port?"),
        ("up = 3", "`up` must be a section"),
        ("url = 3", "url must be a quoted string"),
        ("[up]\nport = true", "up.port must be a number"),
        ("[up]\nport = 70000", "up.port must be 0 to 65535"),
        ("[up]\nflower = 1", "up.flower must be true or false"),
        ('token = "t"', "`token` requires `url`"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_reason(file: Path, text: str | bytes, why: str) -> None:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    file.chmod(0o600)
    with pytest.raises(Invalid) as refused:
        config_file.settings()
    assert (refused.value.code, refused.value.next) == ("E-CONFIG", "fleet help config")
    assert (why in refused.value.why, str(file) in refused.value.what) == (True, True)


def test_a_directory_in_its_place_is_refused(file: Path) -> None:
    file.mkdir()
    with pytest.raises(Invalid):
        config_file.settings()


def test_a_token_that_others_can_read_is_refused_and_the_way_out_named(file: Path) -> None:
    for mode in (0o644, 0o640, 0o604):
        written(file, 'url = "https://x"\ntoken = "t"\n', mode)
        with pytest.raises(Precondition) as refused:
            config_file.settings()
        assert (refused.value.code, refused.value.next) == ("E-CONFIG-MODE", f"chmod 600 {file}"), mode
        written(file, 'url = "https://x"\n', mode)
        assert config_file.settings() == {"url": "https://x"}, mode


def test_flower_shows_the_local_fleet_over_tls_unless_the_environment_names_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("FLEET_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FLEET_HOME", str(tmp_path))
    with pytest.raises(Precondition, match="Flower requires a broker"):
        _fleet_to_watch({})
    data = DataDir(tmp_path / "data")
    known = replace(data.remembered(), broker_password="secret")
    data.remember(known)
    running = {"data_dir": str(data.root), "broker_url": "rediss://192.0.2.7:6400/0", "ca_file": "/etc/ca.pem"}
    (tmp_path / "server.json").write_text(json.dumps(running))
    settings, password = _fleet_to_watch({})
    assert settings.broker_url == "rediss://control:secret@192.0.2.7:6400/0"
    assert (settings.ca_file, password) == (Path("/etc/ca.pem"), known.flower_password)
    assert (settings.database_url, settings.blob_dir) == (data.database_url, data.blobs)

    named = {"FLEET_DATABASE_URL": "sqlite:////d", "FLEET_BROKER_URL": "redis://b", "FLEET_BLOB_DIR": str(tmp_path)}
    named["FLEET_FLOWER_PASSWORD"] = "word"
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    settings, password = _fleet_to_watch(named)
    assert (settings.broker_url, password) == ("redis://b", "word")
