"""The settings of a control plane on this machine, for commands that work on its files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from control_plane.cli import config_file
from control_plane.cli.connection import fleet_home, server_file
from shared.errors import Precondition

if TYPE_CHECKING:
    from control_plane.core.settings import FleetSettings
    from control_plane.server.embedded.data_dir import DataDir

DataDirOption = Annotated[
    Path | None, typer.Option("--data-dir", help="The data directory of that fleet.  [$FLEET_HOME/data]")
]


def data_directory(chosen: Path | None) -> DataDir:
    """The chosen data directory, else that of the running fleet, of the configuration file, and the default one."""
    from control_plane.server.embedded.data_dir import DataDir

    configured = config_file.up_settings().get("data_dir")
    return DataDir(chosen or Path(server_file().get("data_dir") or configured or fleet_home() / "data"))


def settings_of(data: DataDir, environ: Mapping[str, str]) -> FleetSettings:
    """The settings of the `fleet up` with this data directory."""
    from control_plane.core.settings import read_settings
    from control_plane.server.embedded.plan import LOOPBACK, with_login

    known, running = data.remembered(), server_file()
    if running.get("data_dir") != str(data.root):
        running = {}
    broker_url = running.get("broker_url") or f"redis://{LOOPBACK}:{known.broker_port}/0"
    local = {
        "database_url": data.database_url,
        "broker_url": with_login(broker_url, known.broker_password),
        **({"ca_file": running["ca_file"]} if "ca_file" in running else {}),
    }
    # For these two, the environment takes precedence over the local fleet.
    own = {"master_key_file": data.master_key, "blob_dir": data.blobs}
    local |= {name: str(path) for name, path in own.items() if f"FLEET_{name.upper()}" not in environ}
    return read_settings(**local)


def own_settings(data_dir: Path | None) -> FleetSettings:
    """Those of the environment, else of the `fleet up` of this machine, whether it is running or not.

    Raises Precondition if there is neither.
    """
    from control_plane.core.settings import read_settings

    if data_dir is None and "FLEET_DATABASE_URL" in os.environ:
        return read_settings()
    data = data_directory(data_dir)
    if not data.master_key.exists():
        raise no_fleet(data)
    return settings_of(data, os.environ)


def no_fleet(data: DataDir) -> Precondition:
    """The error for a data directory without a fleet."""
    return Precondition(
        f"there is no control plane in {data.root}",
        code="E-KEYS-FLEET",
        why="this command needs the data of the control plane, so it runs where the control plane runs",
        next="repeat with --data-dir DIRECTORY, or with the variables of fleet serve: FLEET_DATABASE_URL, …",
    )
