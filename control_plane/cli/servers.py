"""`fleet up, serve, flower`: the processes of a control plane."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli import config_file
from control_plane.cli.completion import choices
from control_plane.cli.connection import fleet_home, server_file
from control_plane.cli.local_settings import settings_of
from shared.errors import Invalid, Precondition
from shared.terminal.command_line import examples, say

if TYPE_CHECKING:
    from control_plane.core.settings import FleetSettings
    from control_plane.server.embedded.data_dir import DataDir

PANEL = "Run"
ROLES = ("api", "collector", "supervisor", "all")


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command(
        "up",
        rich_help_panel=PANEL,
        epilog=examples(
            "fleet up", "fleet up --demo", "fleet up --host 192.0.2.7 --tls-cert cert.pem --tls-key key.pem"
        ),
    )(up)
    app.command("serve", rich_help_panel=PANEL, epilog=examples("fleet serve --role all"))(serve)
    app.command("flower", rich_help_panel=PANEL, epilog=examples("fleet flower --port 5555"))(flower)


def up(
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="Data directory.  [$FLEET_HOME/data]")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.  [127.0.0.1]")] = None,
    public_url: Annotated[
        str | None, typer.Option("--public-url", help="Address at which other machines reach it.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="Port of the API and pages (0 = any free port).  [8420]"),
    ] = None,
    drones: Annotated[
        int | None, typer.Option("--drones", min=0, max=64, help="Number of embedded drones.  [1]")
    ] = None,
    flower_port: Annotated[
        int | None,
        typer.Option("--flower-port", min=0, max=65535, help="Port of Flower (0 = any free port).  [5555]"),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option("--tls-cert", metavar="FILE", help="Certificate, to serve over TLS."),
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="The certificate's key.")] = None,
    tls_ca: Annotated[
        Path | None,
        typer.Option("--tls-ca", metavar="FILE", help="The certificate's authority, if this machine does not know it."),
    ] = None,
    no_flower: Annotated[bool, typer.Option("--no-flower", help="Do not start Flower.")] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Add a scripted model and a small project, to try it without a key.")
    ] = False,
) -> int:
    """Start a complete fleet on this machine: broker, database, API, pages, Flower and drones."""
    from control_plane.cli.server_packages import require_server

    require_server("fleet up")
    from control_plane.server.embedded.options import UpOptions
    from control_plane.server.embedded.up import up as run

    given: dict[str, Any] = {
        "data_dir": data_dir,
        "host": host,
        "public_url": public_url,
        "port": port,
        "drones": drones,
        "flower_port": flower_port,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "tls_ca": tls_ca,
        "flower": False if no_flower else None,
        "demo": demo or None,
    }
    home = fleet_home()
    defaults: dict[str, Any] = {**_UP_DEFAULTS, "data_dir": home / "data", **config_file.up_settings()}
    options = {name: defaults[name] if value is None else value for name, value in given.items()}
    paths = {name: Path(options[name]).expanduser().absolute() for name in _UP_PATHS if options[name] is not None}
    return run(UpOptions(**{**options, **paths, "home": home}))


_UP_PATHS = ("data_dir", "tls_cert", "tls_key", "tls_ca")


_UP_DEFAULTS: Mapping[str, Any] = {
    "host": None,
    "public_url": None,
    "tls_cert": None,
    "tls_key": None,
    "tls_ca": None,
    "port": 8420,
    "drones": 1,
    "flower_port": 5555,
    "flower": True,
    "demo": False,
}


def serve(
    role: Annotated[
        str, typer.Option("--role", help="api, collector, supervisor or all.", autocompletion=choices(ROLES))
    ] = "all",
) -> int:
    """Run the control plane with an existing database and Redis (FLEET_DATABASE_URL, FLEET_BROKER_URL)."""
    if role not in ROLES:
        raise Invalid(
            f"unknown role {role[:40]!r}",
            code="E-USAGE",
            why=f"expected one of {', '.join(ROLES)}",
            next="fleet serve --role all",
        )
    from control_plane.cli.server_packages import require_server

    require_server("fleet serve")
    from control_plane.core.settings import read_settings
    from control_plane.server.serve import serve as run

    return int(run(read_settings(), role) or 0)


def flower(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port to listen on.")] = 5555,
    address: Annotated[str, typer.Option("--address", help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Start Flower for this fleet, protected by a password (FLEET_FLOWER_PASSWORD, or a generated one)."""
    from control_plane.cli.server_packages import require_server

    require_server("fleet flower")
    import secrets

    from control_plane.core.flower_address import FLOWER_USER
    from control_plane.telemetry.flower.process import run

    settings, password = _fleet_to_watch(os.environ)
    if not password:
        password = secrets.token_urlsafe(12)
        scheme = "https" if settings.tls_files else "http"
        say(f"Flower on {scheme}://{address}:{port}  user {FLOWER_USER}, password {password}")
    run(settings, address=address, port=port, password=password)


def _fleet_to_watch(environ: Mapping[str, str]) -> tuple[FleetSettings, str]:
    """The settings of the fleet that Flower shows, and Flower's password, empty if none is set.

    Without FLEET_BROKER_URL, this is the `fleet up` that runs here. Raises Precondition if there is none.
    """
    from control_plane.core.settings import read_settings
    from control_plane.telemetry.flower.process import PASSWORD_VARIABLE

    if "FLEET_BROKER_URL" in environ:
        return read_settings(), environ.get(PASSWORD_VARIABLE, "")
    data = _local_data()
    return settings_of(data, environ), environ.get(PASSWORD_VARIABLE, data.remembered().flower_password)


def _local_data() -> DataDir:
    """The data directory of the `fleet up` that runs here. Raises Precondition if none runs."""
    from control_plane.server.embedded.data_dir import DataDir

    local = server_file()
    if not local:
        raise Precondition(
            "Flower requires a broker",
            code="E-FLOWER-BROKER",
            why=f"FLEET_BROKER_URL is not set, and no `fleet up` runs with the home {fleet_home()}",
            next="fleet up    or   export FLEET_BROKER_URL=redis://… FLEET_DATABASE_URL=…",
        )
    return DataDir(Path(local["data_dir"]))
