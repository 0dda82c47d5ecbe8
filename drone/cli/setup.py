"""How a machine becomes a drone and ceases to be one: `drone register`, `install-service` and `unregister`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from shared.terminal.command_line import JsonFlag, confirmed, paint, parse_labels, print_json, put, read_secret, say

if TYPE_CHECKING:
    from drone.installation.home import DroneConfig, DroneHome

REGISTER_EXAMPLES = (
    "drone register --url https://fleet.example.org --token fj_...",
    "fleet token add | drone register --url http://127.0.0.1:8420 --token - --label gpu=yes",
)


def register_drone(
    url: Annotated[str, typer.Option("--url", metavar="URL", help="The control plane's URL.")],
    token: Annotated[
        str,
        typer.Option("--token", metavar="TOKEN|-", envvar="DRONE_TOKEN", help="The join token; - reads it from stdin."),
    ],
    name: Annotated[str | None, typer.Option("--name", help="The drone's name (default: the host name).")] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="K=V", help="Label that orders can require; repeats.")
    ] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, max=64, help="Maximum concurrent orders.")] = 1,
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", metavar="DIR", help="A new or empty directory (default: in the drone's home)."),
    ] = None,
    sandbox: Annotated[
        Literal["auto", "bwrap", "docker", "none"], typer.Option("--sandbox", help="Sandbox for the model's commands.")
    ] = "auto",
    allow_http: Annotated[
        bool, typer.Option("--allow-http", envvar="DRONE_ALLOW_HTTP", help="Allow plain http to another machine.")
    ] = False,
    ca: Annotated[
        Path | None,
        typer.Option(
            "--ca", metavar="FILE", help="Certificates of authorities to trust, in addition to the machine's."
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Register this machine as a drone of a fleet."""
    from drone.installation import settings
    from drone.installation.registration import Wishes, register
    from drone.workspace import copy_owner_config

    chosen = settings.load()
    home = chosen.home
    config = register(
        home,
        Wishes(
            url=url,
            token=read_secret(token, "join token"),
            name=name,
            labels=parse_labels(label or ()),
            concurrency=concurrency,
            workspace=workspace,
            sandbox=sandbox,
            allow_http=allow_http,
            ca_file=ca,
        ),
        chosen.environ,
    )
    copy_owner_config(home.git_config_file, chosen.environ)
    _warn_of_http(config.server_url)
    if as_json:
        print_json(_registration_document(config, home))
    else:
        _print_registration(config, home)


def _warn_of_http(url: str) -> None:
    from shared.loopback import is_loopback

    if url.startswith("http://") and not is_loopback(url):
        warning = paint("WARNING", "red", sys.stderr)
        say(f"{warning}: {url} is not encrypted: anyone on the network path can read this drone's keys.")


def _registration_document(config: DroneConfig, home: DroneHome) -> dict[str, object]:
    return {
        "id": config.drone_id,
        "name": config.name,
        "url": config.server_url,
        "labels": config.labels,
        "concurrency": config.concurrency,
        "sandbox": config.sandbox,
        "workspace": config.workspace,
        "home": str(home.path),
    }


def _print_registration(config: DroneConfig, home: DroneHome) -> None:
    labels = ", ".join(f"{key}={value}" for key, value in sorted(config.labels.items()))
    put(
        f"registered as {config.name} ({config.drone_id}) with {config.server_url}\n"
        f"  labels     {labels or '-'}\n"
        f"  capacity   {config.concurrency}, sandbox {config.sandbox}\n"
        f"  workspace  {config.workspace}\n"
        f"  home       {home.path}\n"
        "\nnext\n"
        "  drone start              take orders until Ctrl-C\n"
        "  drone doctor             check that everything works\n"
        "  drone install-service    run the drone as a systemd service\n"
    )


# --- install-service --------------------------------------------------------------

INSTALL_SERVICE_EXAMPLES = ("drone install-service",)

_NEXT = (
    "systemctl --user daemon-reload",
    "systemctl --user enable --now dronefleet-drone",
    "loginctl enable-linger    # keep running while you are logged out",
)


def install_service(as_json: JsonFlag = False) -> None:
    """Write a systemd user unit for this drone and show the next commands; without systemd, print the unit."""
    from drone.installation import settings
    from drone.installation.service import unit_text, write_unit

    chosen = settings.load()
    chosen.home.config()  # fails if not registered: the service could not start
    path = write_unit(chosen) if shutil.which("systemctl") else None
    if as_json:
        print_json({"path": str(path) if path else None, "unit": unit_text(chosen), "next": list(_NEXT)})
    elif path is None:
        put(unit_text(chosen))
        say("systemd not found: copy this unit to where it is needed, or run `drone start` yourself")
    else:
        put(f"wrote {path}\n\nnext\n" + "".join(f"  {line}\n" for line in _NEXT))


# --- unregister -------------------------------------------------------------------

UNREGISTER_EXAMPLES = ("drone unregister", "drone unregister --yes")


def unregister_drone(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Leave the fleet: revoke and delete the drone's keys; workspaces, runs and logs are kept."""
    from drone.installation import settings
    from drone.installation.registration import unregister

    home = settings.load().home
    name = home.config().name
    confirmed(f"Unregister drone {name}?", yes=yes)
    config = unregister(home)
    if as_json:
        print_json({"id": config.drone_id, "name": config.name, "url": config.server_url, "home": str(home.path)})
    else:
        put(f"unregistered {config.name} from {config.server_url}; its work is kept in {config.workspace}\n")
