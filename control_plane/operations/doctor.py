"""`fleet doctor`: what the command line finds here, and what the server finds where it runs."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from shared.errors import FleetError
from shared.terminal.doctor import FAIL, OK, WARN, Check, State, run_doctor

if TYPE_CHECKING:
    from control_plane.client.fleet import FleetClient
    from control_plane.core import Core

LOW_DISK_BYTES = 1 << 30


# --- where the command runs ----------------------------------------------------------


def diagnose(org: str | None, *, fix: bool, as_json: bool) -> int:
    """Examine this side and the server, print it, and return the exit code: 1 only where something failed."""
    from control_plane.cli.connection import client

    fleet: FleetClient | None = None
    trouble: FleetError | None = None
    try:
        fleet = client(org)
    except FleetError as error:
        trouble = error

    def examine() -> list[Check]:
        reached = _server(fleet) if fleet else [_failed("D-SERVER", "server", trouble)]
        return [*local_checks(), *reached]

    return run_doctor(examine, fix=fix, as_json=as_json, extra={"url": fleet.url if fleet else None})


def local_checks() -> list[Check]:
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
    return Check("D-LITELLM", FAIL, "litellm", "not installed", fix="pip install -r requirements.lock")


def _sandbox() -> Check:
    found = shutil.which("bwrap")
    if found:
        return Check("D-SANDBOX", OK, "sandbox", f"bubblewrap at {found}, for drones on this machine")
    return Check(
        "D-SANDBOX",
        WARN,
        "sandbox",
        "none: drones on this machine run the model's commands with their owner's rights",
        fix="apt install bubblewrap",
    )


def _server_file() -> Check:
    from control_plane.cli.connection import fleet_home

    path = fleet_home() / "server.json"
    if not path.exists():
        return Check("D-SERVER-FILE", OK, "server.json", f"none in {path.parent}")
    if path.stat().st_mode & 0o077:
        return Check(
            "D-SERVER-FILE",
            WARN,
            "server.json",
            "others can read the admin token in it",
            fix=f"chmod 600 {path}",
            safe_fix=lambda: path.chmod(0o600),
        )
    return Check("D-SERVER-FILE", OK, "server.json", "readable by its owner alone")


def _server(fleet: FleetClient) -> list[Check]:
    try:
        who = fleet.whoami()
        checks = fleet.doctor()
    except FleetError as error:
        return [_failed("D-SERVER", "server", error)]
    return [Check("D-SERVER", OK, "server", f"{fleet.url}, as {who['role']}"), *(_told(check) for check in checks)]


def _told(check: dict[str, Any]) -> Check:
    states = {state.upper(): state for state in State}
    return Check(check["code"], states[check["state"].upper()], check["what"], check["found"], fix=check["fix"] or "")


def _failed(code: str, what: str, error: FleetError | None) -> Check:
    found = error.what if error else "unknown"
    return Check(code, FAIL, what, found, fix=error.next if error else "")


def _installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


# --- where the server runs -------------------------------------------------------------


def server_checks(core: Core, organization_id: str) -> list[Check]:
    """What the server finds of its own parts, and of the drones that serve the organization.

    One failing check never hides the others.
    """
    looks: Sequence[tuple[str, str, Callable[[Core], Check]]] = (
        ("D-DATABASE", "database", _database),
        ("D-BROKER", "broker", _broker),
        ("D-BROKER-SAVE", "broker's disk", _broker_persistence),
        ("D-DISK", "disk", _disk),
        ("D-DRONES", "drones", partial(_drones, organization_id=organization_id)),
        ("D-EVENTS", "events", _raw_events),
        ("D-FLOWER", "flower", _flower),
    )
    return [_guarded(core, code, what, look) for code, what, look in looks]


def _guarded(core: Core, code: str, what: str, look: Callable[[Core], Check]) -> Check:
    try:
        return look(core)
    except Exception as error:  # noqa: BLE001 - whatever a part answers, the doctor has to finish its round
        return Check(code, FAIL, what, f"does not answer: {str(error).splitlines()[0][:200]}", fix=f"start the {what}")


def _database(core: Core) -> Check:
    from sqlalchemy import text

    from control_plane.db import migrations

    kind = "SQLite" if core.settings.database_url.startswith("sqlite") else "PostgreSQL"
    query = "SELECT sqlite_version()" if kind == "SQLite" else "SHOW server_version"
    with core.database.read() as db:
        number = db.scalar(text(query))
    if migrations.pending(core.database):
        return Check("D-DATABASE", FAIL, "database", f"{kind} {number} lacks migrations", fix="fleet db upgrade")
    return Check("D-DATABASE", OK, "database", f"{kind} {number}, schema current")


def _broker(core: Core) -> Check:
    info = core.broker.redis.info("server")
    name = "Valkey" if info.get("valkey_version") else "Redis"
    number = str(info.get("valkey_version") or info["redis_version"])
    major = int(str(info["redis_version"]).split(".")[0])
    if major < 7:
        return Check("D-BROKER", FAIL, "broker", f"{name} {number} is too old", fix="use Redis 7 or newer, or Valkey")
    return Check("D-BROKER", OK, "broker", f"{name} {number}")


def _broker_persistence(core: Core) -> Check:
    info = core.broker.redis.info("persistence")
    if info.get("aof_enabled"):
        return Check("D-BROKER-SAVE", OK, "broker's disk", "append-only")
    return Check(
        "D-BROKER-SAVE",
        WARN,
        "broker's disk",
        "a restart of the broker empties the queues; orders are then sent out again",
        fix="redis-cli config set appendonly yes",
        safe_fix=None,
    )


def _disk(core: Core) -> Check:
    free = shutil.disk_usage(_existing(core.settings.blob_dir)).free
    found = f"{free / (1 << 30):.1f} GiB free for patches and logs"
    if free < LOW_DISK_BYTES:
        return Check("D-DISK", WARN, "disk", found, fix=f"make room on the disk of {core.settings.blob_dir}")
    return Check("D-DISK", OK, "disk", found)


def _existing(path: Path) -> Path:
    return next(each for each in (path, *path.parents) if each.exists())


def _drones(core: Core, organization_id: str) -> Check:
    from control_plane.lookups.drones import serving
    from shared.states import OFFLINE_AFTER

    with core.database.read() as db:
        drones = serving(db, organization_id)
    since = core.clock.now() - OFFLINE_AFTER
    alive = [drone for drone in drones if drone.last_seen_at and drone.last_seen_at > since and not drone.stopped_at]
    open_ones = [drone.name for drone in alive if drone.sandbox == "none"]
    if not alive:
        return Check(
            "D-DRONES",
            WARN,
            "drones",
            f"none of {len(drones)} is online" if drones else "none is registered",
            fix="drone start" if drones else "fleet token create, then drone register --url … --token …",
        )
    if open_ones:
        found = f"{len(alive)} online; without a sandbox: {', '.join(open_ones)}"
        return Check(
            "D-DRONES", WARN, "drones", found, fix="install bubblewrap there, then register with --sandbox auto"
        )
    return Check("D-DRONES", OK, "drones", f"{len(alive)} of {len(drones)} online")


def _raw_events(core: Core) -> Check:
    from sqlalchemy import func, select

    from control_plane.db.drones import RawEvent

    with core.database.read() as db:
        number = db.scalar(select(func.count()).select_from(RawEvent)) or 0
    if number:
        found = f"{number} reports of drones could not be taken in; they are kept as they came"
        return Check("D-EVENTS", WARN, "events", found, fix="look at the table raw_events and the server's log")
    return Check("D-EVENTS", OK, "events", "all were taken in")


def _flower(core: Core) -> Check:
    import socket

    url = core.settings.flower_url or os.environ.get("FLEET_FLOWER_URL")
    if not url:
        return Check("D-FLOWER", OK, "flower", "not configured")
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=1.0):
            return Check("D-FLOWER", OK, "flower", url)
    except OSError:
        return Check("D-FLOWER", WARN, "flower", f"does not answer at {url}", fix="fleet flower")
