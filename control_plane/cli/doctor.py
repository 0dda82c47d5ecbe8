"""`fleet doctor`: the checks of this machine and of the server it talks to, and a fix for each problem."""

from __future__ import annotations

import platform
import shutil
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.common_options import Org
from control_plane.cli.connection import client, fleet_home
from shared.errors import FleetError
from shared.terminal.command_line import JsonFlag, examples
from shared.terminal.doctor import FAIL, OK, WARN, Check, State, run_doctor

if TYPE_CHECKING:
    from control_plane.contract.client.fleet import FleetClient

PANEL = "Inspect"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("doctor", rich_help_panel=PANEL, epilog=examples("fleet doctor", "fleet doctor --json"))(doctor)


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Fix problems that can be fixed safely.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> int:
    """Check broker, database, sandbox, Python and more; name each problem and its fix."""
    fleet: FleetClient | None = None
    trouble: FleetError | None = None
    try:
        fleet = client(org)
    except FleetError as error:
        trouble = error

    def examine() -> list[Check]:
        reached = _server(fleet) if fleet else [_failed("D-SERVER", "server", trouble)]
        return [*_local_checks(), *reached]

    return run_doctor(examine, fix=fix, as_json=as_json, extra={"url": fleet.url if fleet else None})


def _local_checks() -> list[Check]:
    """Python, this package, LiteLLM and the sandbox of this machine; nothing heavy is imported for it."""
    return [
        Check("D-PYTHON", OK, "python", platform.python_version()),
        Check("D-VERSION", OK, "dronefleet", _installed("dronefleet") or "not installed"),
        _litellm(),
        _sandbox(),
        _server_file(),
    ]


def _litellm() -> Check:
    found = _installed("litellm")
    if found:
        return Check("D-LITELLM", OK, "litellm", found)
    # As in the image of the control plane.
    return Check(
        "D-LITELLM", WARN, "litellm", "not installed: no drone can work on this machine", fix="pip install litellm"
    )


def _sandbox() -> Check:
    found = shutil.which("bwrap")
    if found:
        return Check("D-SANDBOX", OK, "sandbox", f"bubblewrap at {found}, for drones on this machine")
    return Check(
        "D-SANDBOX",
        WARN,
        "sandbox",
        "none: drones on this machine run the model's commands with their owner's permissions",
        fix="apt install bubblewrap",
    )


def _server_file() -> Check:
    path = fleet_home() / "server.json"
    if not path.exists():
        return Check("D-SERVER-FILE", OK, "server.json", f"none in {path.parent}")
    if path.stat().st_mode & 0o077:
        return Check(
            "D-SERVER-FILE",
            WARN,
            "server.json",
            "other users can read the admin token in it",
            fix=f"chmod 600 {path}",
            safe_fix=lambda: path.chmod(0o600),
        )
    return Check("D-SERVER-FILE", OK, "server.json", "readable only by its owner")


def _server(fleet: FleetClient) -> list[Check]:
    from control_plane.contract.declarations import server

    try:
        who = fleet.call(server.WHOAMI)
        version, checks = fleet.health()["version"], fleet.call(server.DOCTOR)
    except FleetError as error:
        return [_failed("D-SERVER", "server", error)]
    found = f"{fleet.url}, version {version}, as {who['role']}"
    return [Check("D-SERVER", OK, "server", found), *(_as_check(check) for check in checks)]


def _as_check(check: dict[str, Any]) -> Check:
    states = {state.upper(): state for state in State}
    return Check(check["code"], states[check["state"].upper()], check["what"], check["found"], fix=check["fix"] or "")


def _failed(code: str, what: str, error: FleetError | None) -> Check:
    found = error.what if error else "unknown"
    return Check(code, FAIL, what, found, fix=error.next if error else "")


def _installed(distribution: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
