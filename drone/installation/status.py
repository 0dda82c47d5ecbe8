"""What can be seen of this drone from outside its processes: registration, server, runs in hand."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from drone.installation.client import ControlPlane
from drone.installation.home import DroneConfig, DroneHome
from drone.runs.directory import RunDirectory, all_runs
from shared.errors import FleetError, FleetFault, NotFound, Unauthenticated


@dataclass(frozen=True)
class RunInHand:
    """A run that this drone works on now."""

    run: str
    order: str
    since: str
    """ISO 8601, the drone's clock."""


@dataclass(frozen=True)
class Status:
    """One look at the drone."""

    config: DroneConfig
    pid: int | None
    """Of `drone start` in this home; None: it does not run."""
    server_error: str | None
    """Why the control plane cannot be reached; None: it answers."""
    removed: str | None
    """What the control plane says of a drone that it does not know any more; None where it does, or was not asked."""
    runs: tuple[RunInHand, ...]


def look(home: DroneHome) -> Status:
    """See how the drone in `home` does. Raises Precondition where it is not registered."""
    config = home.config()
    pid = home.holder()
    server_error, removed = _asked(config.server_url, home.credentials().api_token)
    return Status(config, pid, server_error, removed, tuple(_runs(home)) if pid is not None else ())


def _asked(url: str, api_token: str) -> tuple[str | None, str | None]:
    """Why the server does not answer, and what it says of this drone where that was removed."""
    try:
        with ControlPlane(url, api_token=api_token) as server:
            server.server_time()
            # One that is older than the question answers with an error too, but not with this one.
            with suppress(NotFound, FleetFault):
                server.confirm_registration()
    except Unauthenticated as error:
        return None, error.what
    except FleetError as error:
        return f"{error.what}: {error.why}" if error.why else error.what, None
    return None, None


def _runs(home: DroneHome) -> list[RunInHand]:
    boot = home.boot_file.read_text().strip() if home.boot_file.exists() else None
    return [found for run in all_runs(home.runs_dir) if (found := _in_hand(run, boot))]


def _in_hand(run: RunDirectory, boot: str | None) -> RunInHand | None:
    meta = run.meta()
    if meta is None or meta.confirmed or meta.boot_id != boot or run.end() is not None:
        return None
    return RunInHand(run.run_id, meta.order_id, meta.claimed_at)
