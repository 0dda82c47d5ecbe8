"""Which fleet `fleet flower` shows: the one that the environment names, else the `fleet up` that runs here."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from control_plane.cli.servers import _fleet_to_watch
from control_plane.embedded.data_dir import DataDir
from shared.errors import Precondition


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of `fleet` in an environment without settings."""
    for name in [name for name in os.environ if name.startswith("FLEET_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FLEET_HOME", str(tmp_path))
    return tmp_path


def test_the_local_fleet_is_shown_without_settings_in_the_environment_and_reached_over_tls(home: Path) -> None:
    data = DataDir(home / "data")
    known = replace(data.remembered(), broker_password="secret")
    data.remember(known)
    running = {"data_dir": str(data.root), "broker_url": "rediss://192.0.2.7:6400/0", "ca_file": "/etc/ca.pem"}
    (home / "server.json").write_text(json.dumps(running))

    settings, password = _fleet_to_watch({})

    assert settings.broker_url == "rediss://control:secret@192.0.2.7:6400/0"
    assert settings.ca_file == Path("/etc/ca.pem")
    assert (settings.database_url, settings.blob_dir) == (data.database_url, data.blobs)
    assert password == known.flower_password


def test_the_environment_names_the_fleet_that_is_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = {
        "FLEET_DATABASE_URL": "sqlite:////d",
        "FLEET_BROKER_URL": "redis://b",
        "FLEET_BLOB_DIR": str(home),
        "FLEET_FLOWER_PASSWORD": "word",
    }
    for name, value in named.items():
        monkeypatch.setenv(name, value)

    settings, password = _fleet_to_watch(named)

    assert (settings.broker_url, password) == ("redis://b", "word")


@pytest.mark.usefixtures("home")
def test_without_a_fleet_the_next_command_is_named() -> None:
    with pytest.raises(Precondition, match="Flower requires a broker") as refused:
        _fleet_to_watch({})

    assert refused.value.next.startswith("fleet up")
