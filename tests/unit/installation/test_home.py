"""The drone's home and its systemd unit: what is kept and how, that one drone runs in it, and how it stops."""

from __future__ import annotations

import fcntl
import os
import shlex
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from drone.installation import settings
from drone.installation.home import DroneConfig, DroneHome
from drone.installation.service import unit_text
from shared.errors import Conflict, Precondition
from shared.registration import Credentials
from tests.support.documents import ROOT

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


def test_a_registration_is_read_back_as_it_was_saved_readable_by_its_owner_alone_until_it_is_forgotten(
    registered: DroneHome,
) -> None:
    assert (registered.config(), registered.credentials()) == (CONFIG, CREDENTIALS)
    assert len(registered.private_key()) == 32
    assert registered.make_private_key() == registered.private_key(), "it is made once"
    assert sorted(path.name for path in registered.path.iterdir()) == ["credentials.json", "drone.json", "key"]
    assert registered.new_boot() != registered.new_boot()
    assert registered.machine_id() == registered.machine_id() != ""

    modes = [mode(path) for path in (registered.path, registered.credentials_file, registered.key_file)]
    assert (modes, registered.loosely_kept()) == ([0o700, 0o600, 0o600], [])
    assert "secret" not in registered.config_file.read_text()
    registered.key_file.chmod(0o644)
    assert registered.loosely_kept() == [registered.key_file]

    registered.run_dir("0123456789ab").mkdir(parents=True)
    registered.forget()
    assert sorted(path.name for path in registered.path.iterdir()) == ["boot", "runs"]
    with pytest.raises(Precondition, match="not registered") as told:
        registered.config()
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


def test_a_home_has_one_holder_and_says_which_until_its_process_ends(home: DroneHome) -> None:
    assert home.holder() is None
    with home.lock():
        assert home.holder() == os.getpid()
        with pytest.raises(Conflict, match="already running") as told, home.lock():
            pass
    assert f"process {os.getpid()}" in told.value.why
    assert home.holder() is None

    code = "import os, sys; from pathlib import Path; from drone.installation.home import DroneHome\n"
    killed = f"{code}with DroneHome(Path(sys.argv[1])).lock(): os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", killed, home.path], check=False).returncode == -9
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


STOPS = ("Restart", "KillMode=", "ExecStop=", "TimeoutStopSec=")


def unit(home: str = "/d", **variables: str) -> list[str]:
    """The lines of the unit for a drone in `home`."""
    return unit_text(settings.load({"DRONE_HOME": home, **variables})).splitlines()


def test_the_unit_starts_this_drone_and_not_the_one_of_somebody_else() -> None:
    lines = unit("/home/me/my drone")

    assert 'Environment="DRONE_HOME=/home/me/my drone"' in lines
    assert next(line for line in lines if line.startswith("ExecStart=")).endswith('" -P -m drone.cli.main start')
    assert 'Environment="DRONE_HOME=/d/100%%\\"x\\\\y"' in unit('/d/100%"x\\y'), "what systemd would expand is escaped"
    variables = {"DRONE_POLICY": "/etc/policy.toml", "DRONE_METRICS_PORT": "9464", "XDG_CONFIG_HOME": "/c"}
    assert {f'Environment="{name}={value}"' for name, value in variables.items()} <= set(unit(**variables))
    relative = unit(DRONE_POLICY="policy.toml", DRONE_HIDDEN="keys:/etc/keys")
    absolute = {"DRONE_POLICY": f"{Path.cwd()}/policy.toml", "DRONE_HIDDEN": f"{Path.cwd()}/keys:/etc/keys"}
    assert {f'Environment="{name}={value}"' for name, value in absolute.items()} <= set(relative)


def test_stopping_the_service_lets_runs_end_and_the_signal_after_that_gives_them_back() -> None:
    lines = unit()
    stop = next(line.removeprefix("ExecStop=") for line in lines if line.startswith("ExecStop="))

    with subprocess.Popen(["sleep", "600"]) as drone:
        # As systemd does, which collects the process as soon as it has ended.
        threading.Thread(target=drone.wait, daemon=True).start()
        # As systemd does it: quotes taken off, `$$` made `$`, and the main process named in the environment.
        command = [word.replace("$$", "$") for word in shlex.split(stop)]
        done = subprocess.run(command, env={**os.environ, "MAINPID": str(drone.pid)}, timeout=60, check=False)

    assert done.returncode == 0
    assert "KillMode=mixed" in lines
    shipped = (ROOT / "deploy" / "systemd" / "dronefleet-drone.service").read_text().splitlines()
    assert [line for line in shipped if line.startswith(STOPS)] == [line for line in lines if line.startswith(STOPS)]
