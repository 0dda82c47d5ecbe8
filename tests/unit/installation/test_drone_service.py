"""The systemd unit of a drone, as systemd reads it."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading

from drone.installation import settings
from drone.installation.service import unit_text
from tests.support.documents import ROOT

STOPS = ("KillMode=", "ExecStop=", "TimeoutStopSec=")


def unit(home: str = "/d", **variables: str) -> list[str]:
    """The lines of the unit for a drone in `home`."""
    return unit_text(settings.load({"DRONE_HOME": home, **variables})).splitlines()


def test_the_unit_starts_this_drone_and_not_the_one_of_somebody_else() -> None:
    lines = unit("/home/me/my drone")

    assert 'Environment="DRONE_HOME=/home/me/my drone"' in lines
    assert next(line for line in lines if line.startswith("ExecStart=")).endswith('" -P -m drone.cli.main start')
    assert 'Environment="DRONE_HOME=/d/100%%\\"x\\\\y"' in unit('/d/100%"x\\y'), "what systemd would expand is escaped"
    variables = {"DRONE_POLICY": "/etc/policy.toml", "DRONE_METRICS_PORT": "9464"}
    assert {f'Environment="{name}={value}"' for name, value in variables.items()} <= set(unit(**variables))


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


def test_the_unit_in_deploy_stops_as_the_one_that_is_written() -> None:
    shipped = (ROOT / "deploy" / "systemd" / "dronefleet-drone.service").read_text().splitlines()
    written = unit()

    assert [line for line in shipped if line.startswith(STOPS)] == [line for line in written if line.startswith(STOPS)]
