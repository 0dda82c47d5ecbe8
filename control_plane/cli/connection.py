"""Which server `fleet` uses, and as whom: flags, then the environment, the configuration file, the local `fleet up`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from control_plane.cli import config_file
from shared.errors import Unreachable
from shared.terminal.directories import data_home
from shared.trace_context import valid_traceparent

if TYPE_CHECKING:
    from control_plane.contract.client.fleet import FleetClient


def fleet_home() -> Path:
    """`$FLEET_HOME`, else `$XDG_DATA_HOME/dronefleet/fleet`."""
    named = os.environ.get("FLEET_HOME", "")
    return Path(named).expanduser().absolute() if named else data_home() / "dronefleet" / "fleet"


def server_file() -> dict[str, str]:
    """What the `fleet up` of this home wrote about itself; empty if none runs."""
    try:
        return dict(json.loads(_server_path().read_text()))
    except (OSError, ValueError):
        return {}


def _server_path() -> Path:
    return fleet_home() / "server.json"


def client(org: str | None = None) -> FleetClient:
    """A client for the selected server.

    Raises Unreachable if none is selected.
    """
    from control_plane.contract.client.fleet import FleetClient

    server = selected_server()
    return FleetClient(
        server.url,
        server.token,
        organization(org) or "default",
        token_from=_token_from(server.url),
        ca_file=server.ca_file,
        # Not the variable itself: a value that is to be ignored might be no valid header.
        traceparent=valid_traceparent(os.environ.get("TRACEPARENT", "")),
    )


class SelectedServer(NamedTuple):
    """The control plane that `fleet` talks to."""

    url: str
    token: str | None
    ca_file: str = ""
    """Authorities to trust besides the machine's; empty: none."""


def selected_server() -> SelectedServer:
    """The selected server, and the token for it. Raises Unreachable if none is selected."""
    local, configured = server_file(), config_file.settings()
    url = os.environ.get("FLEET_URL") or configured.get("url") or local.get("url")
    if not url:
        raise Unreachable(
            "no control plane configured",
            code="E-SERVER-UNKNOWN",
            why=f"FLEET_URL is not set, {config_file.path()} names no server, and no `fleet up` runs in {fleet_home()}",
            next="fleet up    or   export FLEET_URL=https://fleet.example.org FLEET_API_TOKEN=…",
        )
    # A stored token is for its own server only: it is not sent to another server that FLEET_URL names.
    own = next((each.get("token") for each in (configured, local) if each.get("url") == url), None)
    return SelectedServer(url, os.environ.get("FLEET_API_TOKEN") or own, _ca_file(url))


def _ca_file(url: str) -> str:
    """The authorities to trust besides the machine's for a server; empty if there are none."""
    if own := os.environ.get("FLEET_CA_FILE"):
        return own
    local, configured = server_file(), config_file.settings()
    return configured.get("ca_file") or (local.get("ca_file", "") if local.get("url") == url else "")


def _token_from(url: str) -> str:
    """Where `selected_server` finds the token for a server; empty if there is none."""
    if os.environ.get("FLEET_API_TOKEN"):
        return "FLEET_API_TOKEN"
    files = ((config_file.settings(), config_file.path()), (server_file(), _server_path()))
    return next((str(path) for each, path in files if each.get("url") == url and each.get("token")), "")


def organization(org: str | None) -> str | None:
    """The organization that `--org` or FLEET_ORG names."""
    return org or os.environ.get("FLEET_ORG") or config_file.settings().get("org") or None
