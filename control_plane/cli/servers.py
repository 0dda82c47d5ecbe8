"""`fleet up, logs, stop, serve, flower`: the processes of a control plane."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli import config_file
from control_plane.cli.completion import choices
from control_plane.cli.connection import fleet_home, server_file
from control_plane.cli.local_settings import DataDirOption, data_directory, settings_of
from shared.errors import FleetFault, Forbidden, Invalid, NotFound, Precondition
from shared.terminal.command_line import examples, put, say

if TYPE_CHECKING:
    from control_plane.core.settings import FleetSettings
    from control_plane.server.embedded.data_dir import DataDir

PANEL = "Run"
ROLES = ("api", "collector", "supervisor", "all")
STOP_SECONDS = 120.0
"""Drones hand back their orders first, and each part has its own time limit."""
_TICK = 0.2


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
    app.command("logs", rich_help_panel=PANEL, epilog=examples("fleet logs", "fleet logs server --follow"))(logs)
    app.command("stop", rich_help_panel=PANEL, epilog=examples("fleet stop"))(stop)


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


def logs(
    part: Annotated[str, typer.Argument(help="broker, server, flower or a drone; default: all parts.")] = "",
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, max=100_000, help="Last lines of each part.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines until Ctrl-C.")] = False,
    data_dir: DataDirOption = None,
) -> None:
    """Print the logs of the `fleet up` on this machine, even after it has ended."""
    from control_plane.server.embedded import logs as files

    data = data_directory(data_dir)
    found = files.logs_of(data)
    if part and part not in found:
        raise NotFound(
            f"no log of part {part[:40]!r} in {data.logs}",
            code="E-LOGS-PART",
            why=f"available: {', '.join(found)}" if found else "no fleet was started with this data directory",
            next="fleet logs    or   fleet up",
        )
    chosen = {part: found[part]} if part else found
    for name, path in chosen.items():
        text = files.last_lines(path, lines)
        put("".join(_labeled(name, text, many=len(chosen) > 1)))
    if follow:
        for name, text in files.new_lines(chosen):
            put("".join(_labeled(name, text, many=len(chosen) > 1)))


def stop(data_dir: DataDirOption = None) -> None:
    """Stop the `fleet up` on this machine, like Ctrl-C in its terminal; drones return their orders."""
    data = data_directory(data_dir)
    pid = data.holder()
    if pid is None:
        say(f"No fleet is running with the data directory {data.root}.")
        return
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError as error:
        raise Forbidden(
            f"the fleet in {data.root} belongs to another user (process {pid})",
            code="E-STOP-USER",
            next="run this command as that user",
        ) from error
    say(f"Stopping the fleet in {data.root} (process {pid})")
    deadline = time.monotonic() + STOP_SECONDS
    while data.holder() == pid:
        if time.monotonic() > deadline:
            raise FleetFault(
                f"the fleet is still stopping after {STOP_SECONDS:.0f} s",
                code="E-STOP-TIMEOUT",
                why=f"process {pid} has not ended",
                next="fleet logs",
            )
        time.sleep(_TICK)
    say("Stopped. Orders and results are kept. Start again: fleet up")


def _labeled(name: str, text: str, *, many: bool) -> list[str]:
    return [f"{name:<10} | {line}\n" if many else f"{line}\n" for line in text.splitlines()]


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
