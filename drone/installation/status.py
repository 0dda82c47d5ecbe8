"""The drone as seen from outside its processes: its registration, its server, and whether it runs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from drone.installation.client import ControlPlane
from drone.installation.home import DroneConfig, DroneHome
from shared.errors import FleetError, FleetFault, NotFound, Unauthenticated


@dataclass(frozen=True)
class Status:
    """The drone's status at one moment."""

    config: DroneConfig
    pid: int | None
    """Of `drone start` in this home; None: it is not running."""
    server_error: str | None
    """Why the control plane cannot be reached; None: it answers."""
    removed: str | None
    """The control plane's message for a drone that it no longer knows; None if it knows it, or was not asked."""


def status_of(home: DroneHome) -> Status:
    """The status of the drone in `home`. Raises Precondition if it is not registered."""
    config = home.config()
    server_error, removed = _asked(config, home.credentials().api_token)
    return Status(config, home.holder(), server_error, removed)


def _asked(config: DroneConfig, api_token: str) -> tuple[str | None, str | None]:
    """Why the server does not answer, and its message if this drone was removed."""
    try:
        with ControlPlane(config.server_url, api_token=api_token, ca_file=config.ca_file) as server:
            server.server_time()
            # A control plane without this endpoint also answers with an error, but not with Unauthenticated.
            with suppress(NotFound, FleetFault):
                server.confirm_registration()
    except Unauthenticated as error:
        return None, error.what
    except FleetError as error:
        return f"{error.what}: {error.why}" if error.why else error.what, None
    return None, None
