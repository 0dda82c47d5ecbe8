"""How the owner looks at a drone: `drone status`, `doctor` and `policy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from shared.foreign_text import decoded
from shared.terminal.command_line import JsonFlag, print_json, put

if TYPE_CHECKING:
    from pathlib import Path

    from drone.installation.home import DroneHome
    from drone.installation.policy_listing import Setting
    from drone.installation.status import Status
    from drone.runs.directory import ActiveRun

STATUS_EXAMPLES = ("drone status", "drone status --json", "drone status --check")


def show_status(
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
        print_json(_status_document(status, home, runs))
    else:
        put(_status_lines(status, runs))
    # One that cannot reach its control plane continues with its runs: to start it anew would not help.
    return int(check and (status.pid is None or status.removed is not None))


def _status_document(status: Status, home: DroneHome, runs: list[ActiveRun]) -> dict[str, object]:
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


def _status_lines(status: Status, runs: list[ActiveRun]) -> str:
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


# --- doctor -----------------------------------------------------------------------

DOCTOR_EXAMPLES = ("drone doctor", "drone doctor --fix", "drone doctor --sandbox")


def check_drone(
    fix: Annotated[bool, typer.Option("--fix", help="Fix problems that can be fixed safely.")] = False,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Try to break out of the sandbox instead, and show what held.")
    ] = False,
    as_json: JsonFlag = False,
) -> int:
    """Check this drone's requirements; name each problem and its fix."""
    from drone.installation import settings
    from drone.installation.doctor import examine, try_break_outs
    from shared.terminal.doctor import run_doctor

    chosen = settings.load()
    return run_doctor(lambda: (try_break_outs if sandbox else examine)(chosen), fix=fix, as_json=as_json)


# --- policy -----------------------------------------------------------------------

POLICY_EXAMPLES = ("drone policy", "drone policy --json")


def show_policy(as_json: JsonFlag = False) -> None:
    """Show the policy in effect, with the line of the policy file that sets each rule."""
    import tomllib

    from drone.installation import policy, settings
    from drone.installation.policy_listing import settings_of

    file = settings.load().policy_file
    found = policy.load(file)
    document = tomllib.loads(decoded(file.read_bytes())) if file.exists() else {}
    rows = list(settings_of(found, document))
    if as_json:
        listed = [{"name": row.name, "value": row.value, "line": row.line} for row in rows]
        print_json({"file": str(file), "exists": file.exists(), "settings": listed})
    else:
        put(_policy_lines(rows, file))


def _policy_lines(rows: list[Setting], file: Path) -> str:
    from drone.installation.policy_listing import source_of

    head = f"policy file: {file}" if file.exists() else f"policy file: {file} (does not exist; everything is a default)"
    wide = max(len(row.name) for row in rows)
    lines = [f"  {row.name:{wide}}  {_shown(row)}  ({source_of(row, file)})" for row in rows]
    return "\n".join([head, *lines]) + "\n"


def _shown(row: Setting) -> str:
    match row.value:
        case None:
            return "only from a control plane on loopback" if row.name == "repositories.file_urls" else "no restriction"
        case bool():
            return "true" if row.value else "false"
        case list():
            return ", ".join(map(str, row.value)) or "none"
        case _:
            return str(row.value)
