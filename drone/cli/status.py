"""`drone status`: this drone's registration, state and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from shared.terminal.command_line import JsonFlag, print_json, put

if TYPE_CHECKING:
    from drone.installation.home import DroneHome
    from drone.installation.status import Status
    from drone.runs.directory import ActiveRun

EXAMPLES = ("drone status", "drone status --json", "drone status --check")


def command(
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 unless it is running and its control plane knows it.")
    ] = False,
    as_json: JsonFlag = False,
) -> int:
    """Show this drone's registration, state and current orders."""
    from drone.installation import settings
    from drone.installation.status import status_of
    from drone.runs.directory import runs_in_hand

    home = settings.load().home
    status = status_of(home)
    runs = runs_in_hand(home) if status.pid is not None else []
    if as_json:
        print_json(_document(status, home, runs))
    else:
        put(_lines(status, runs))
    # One that cannot reach its control plane continues with its runs: to start it anew would not help.
    return int(check and (status.pid is None or status.removed is not None))


def _document(status: Status, home: DroneHome, runs: list[ActiveRun]) -> dict[str, object]:
    config = status.config
    return {
        "id": config.drone_id,
        "name": config.name,
        "url": config.server_url,
        "labels": config.labels,
        "concurrency": config.concurrency,
        "sandbox": config.sandbox,
        "workspace": config.workspace,
        "home": str(home.path),
        "running": status.pid is not None,
        "pid": status.pid or None,
        "server_reachable": status.server_error is None,
        "server_error": status.server_error,
        "registered": status.removed is None,
        "runs": [{"id": run.run, "order": run.order, "since": run.since} for run in runs],
    }


def _lines(status: Status, runs: list[ActiveRun]) -> str:
    config = status.config
    drone = (
        "not running        start it: drone start" if status.pid is None else f"running, process {status.pid or '?'}"
    )
    lines = [
        f"{config.name} ({config.drone_id})",
        f"  server  {config.server_url} {'reachable' if status.server_error is None else 'unreachable'}",
        *([f"          {status.server_error}"] if status.server_error else []),
        *([f"          {status.removed}        next: drone unregister"] if status.removed else []),
        f"  drone   {drone}",
        f"  orders  {len(runs)} of {config.concurrency} running",
        *(f"          {run.order}  run {run.run}  since {run.since}" for run in runs),
    ]
    return "\n".join(lines) + "\n"
