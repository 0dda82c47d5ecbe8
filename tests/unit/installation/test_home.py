"""The drone's home: where it is, what it keeps and how, and that one drone at a time runs in it."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from drone.installation.home import DroneConfig, DroneHome
from shared.errors import Conflict, Precondition
from shared.registration import Credentials

CONFIG = DroneConfig(
    drone_id="0123456789ab",
    name="oka",
    server_url="http://127.0.0.1:8420",
    control_plane_public_key="AAAA",
    labels={"gpu": "yes"},
    concurrency=2,
    workspace="/w",
    machine_id="m",
)
CREDENTIALS = Credentials(broker_url="redis://u:secret@h:1/0", api_token="fd_secret")


@pytest.fixture
def home(tmp_path: Path) -> DroneHome:
    return DroneHome(tmp_path / "my home")


@pytest.fixture
def registered(home: DroneHome) -> DroneHome:
    home.make_private_key()
    home.save(CONFIG, CREDENTIALS)
    return home


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_home_is_where_the_variable_says_or_below_the_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    monkeypatch.setenv("HOME", "/h")

    assert DroneHome.locate({}).path == Path("/h/.local/share/dronefleet/drone"), "it is relative, and does not count"
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert DroneHome.locate({}).path == Path("/data/dronefleet/drone")
    assert DroneHome.locate({"DRONE_HOME": "/x/y"}).path == Path("/x/y")


def test_a_registration_is_read_back_as_it_was_saved(registered: DroneHome) -> None:
    assert registered.registered
    assert registered.config() == CONFIG
    assert registered.credentials() == CREDENTIALS
    assert len(registered.private_key()) == 32
    assert registered.make_private_key() == registered.private_key(), "it is made once"
    assert sorted(path.name for path in registered.path.iterdir()) == ["credentials.json", "drone.json", "key"]
    assert registered.new_boot() != registered.new_boot()
    assert registered.machine_id() == registered.machine_id() != ""


def test_secrets_are_readable_by_their_owner_alone(registered: DroneHome) -> None:
    assert mode(registered.path) == 0o700
    assert mode(registered.credentials_file) == 0o600
    assert mode(registered.key_file) == 0o600
    assert registered.loosely_kept() == []
    assert "secret" not in registered.config_file.read_text()
    registered.key_file.chmod(0o644)
    assert registered.loosely_kept() == [registered.key_file]


def test_without_a_registration_the_next_command_is_told(home: DroneHome) -> None:
    with pytest.raises(Precondition, match="not registered") as told:
        home.config()

    assert "drone register" in told.value.next


def test_a_damaged_file_is_told_without_its_content(registered: DroneHome) -> None:
    registered.credentials_file.write_text('{"broker_url": "redis://u:secret@h"}')

    with pytest.raises(Precondition) as told:
        registered.credentials()

    assert str(registered.credentials_file) in told.value.what
    assert "secret" not in f"{told.value.what} {told.value.why}"
    for text in ("", "not base64!", "AAAA"):
        registered.key_file.write_text(text)
        with pytest.raises(Precondition):
            registered.private_key()


def test_forgetting_removes_the_registration_and_leaves_the_work(registered: DroneHome) -> None:
    registered.run_dir("0123456789ab").mkdir(parents=True)

    registered.forget()

    assert not registered.registered
    assert [path.name for path in registered.path.iterdir()] == ["runs"]


def test_a_home_has_one_holder_and_says_which(home: DroneHome) -> None:
    assert home.holder() is None

    with home.lock():
        assert home.holder() == os.getpid()
        with pytest.raises(Conflict, match="already running") as told, home.lock():
            pass

    assert f"process {os.getpid()}" in told.value.why
    assert home.holder() is None


def test_the_lock_ends_with_its_process(home: DroneHome) -> None:
    script = f"import os; from pathlib import Path; from drone.installation.home import DroneHome\n" \
        f"with DroneHome(Path({str(home.path)!r})).lock(): os.kill(os.getpid(), 9)"  # fmt: skip
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9

    with home.lock():
        assert home.holder() == os.getpid()


def test_looking_who_holds_the_home_does_not_keep_a_drone_from_starting(home: DroneHome) -> None:
    with home.lock():
        pass
    look = home.lock_file.open()
    fcntl.flock(look, fcntl.LOCK_SH)  # as `holder` does, for an instant
    end_of_look = threading.Timer(0.05, look.close)
    end_of_look.start()

    with home.lock():
        assert home.holder() == os.getpid()
    end_of_look.join()
