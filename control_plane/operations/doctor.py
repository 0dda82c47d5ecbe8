"""The server's checks for `fleet doctor`: one check per component, with one fix each."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from sqlalchemy import Select, func, select, text
from sqlalchemy.orm import aliased

from control_plane.broker.drone_memory import measure
from control_plane.contract.declarations import server as declared
from control_plane.contract.declarations.server import Identity
from control_plane.core import Caller, Core
from control_plane.core.lookups.drones import serving
from control_plane.db.drones import Drone, RawEvent
from control_plane.db.orders import Dispatch, Order
from control_plane.db.projects import Project, Provider
from control_plane.db.runs import Run
from control_plane.db.upgrade import pending_migrations
from control_plane.drones.quota import CODE, quota_bytes
from control_plane.operations import budgets
from control_plane.operations.gateway import performs
from control_plane.operations.weaknesses import broker_encryption, broker_users, certificate
from control_plane.telemetry.tracing.trial import problem_of
from shared.durations import roughly
from shared.errors import FleetFault
from shared.states import OFFLINE_AFTER
from shared.terminal.doctor import FAIL, OK, WARN, Check, document

LOW_DISK_BYTES = 1 << 30
STANDSTILL = timedelta(minutes=10)
_LOOKED_AT = 1000
_NAMED = 5
"""Orders, and what does not work, that are named; of the others, the number is."""
_Tried = tuple[str, str, dict[str, Any] | None]
"""A provider's or a project's name, and the state and the report of its check."""
_BROKER_FULL = 0.8
_PORTS = {"http": 80, "https": 443}


@performs(declared.WHOAMI)
def whoami(core: Core, caller: Caller) -> Identity:  # noqa: ARG001 - every operation gets both
    """The caller as the server sees it."""
    return Identity(organization=caller.organization, user=caller.user, role=caller.role)


@performs(declared.DOCTOR)
def doctor(core: Core, caller: Caller) -> list[dict[str, Any]]:
    """The server's checks as JSON-compatible documents."""
    return cast("list[dict[str, Any]]", document(server_checks(core, caller.organization_id))["checks"])


def server_checks(core: Core, organization_id: str) -> list[Check]:
    """The checks of the server's components and of the drones that serve the organization.

    A check that raises is reported as failed; the others still run.
    """
    looks: Sequence[tuple[str, str, Callable[[Core], Check]]] = (
        ("D-DATABASE", "database", _database),
        ("D-BROKER", "broker", _broker),
        ("D-DRONE-QUOTA", "drones' memory in the broker", partial(_drone_quota, organization_id=organization_id)),
        ("D-BROKER-TLS", "broker's TLS", broker_encryption),
        ("D-BROKER-USERS", "broker's users", broker_users),
        ("D-TLS-CERT", "certificate", certificate),
        ("D-BROKER-SAVE", "broker's disk", _broker_persistence),
        ("D-BLOBS", "blob store", _blobs),
        ("D-DISK", "disk", _disk),
        ("D-MASTER-KEY", "master key", _master_key),
        ("D-DRONES", "drones", partial(_drones, organization_id=organization_id)),
        ("D-PROVIDERS", "providers", partial(_providers, organization_id=organization_id)),
        ("D-PROJECTS", "projects", partial(_projects, organization_id=organization_id)),
        ("D-BUDGETS", "budgets", partial(budgets.check, organization_id=organization_id)),
        ("D-ORDERS", "orders", partial(_orders, organization_id=organization_id)),
        ("D-EVENTS", "events", _raw_events),
        ("D-FLOWER", "flower", _flower),
        ("D-TRACES", "receiver of traces", _traces),
    )
    return [_guarded(core, code, what, look) for code, what, look in looks]


def _guarded(core: Core, code: str, what: str, look: Callable[[Core], Check]) -> Check:
    try:
        return look(core)
    except Exception as error:  # noqa: BLE001 - a failing component must not end the other checks
        return Check(code, FAIL, what, f"does not answer: {str(error).splitlines()[0][:200]}", fix=f"start the {what}")


def _database(core: Core) -> Check:
    kind = "SQLite" if core.settings.database_url.startswith("sqlite") else "PostgreSQL"
    query = "SELECT sqlite_version()" if kind == "SQLite" else "SHOW server_version"
    with core.database.read() as db:
        number = db.scalar(text(query))
    if pending_migrations(core.database):
        return Check("D-DATABASE", FAIL, "database", f"{kind} {number} has pending migrations", fix="fleet db upgrade")
    return Check("D-DATABASE", OK, "database", f"{kind} {number}, schema current")


def _broker(core: Core) -> Check:
    found = core.broker.server()
    if core.broker.redis_version() < (7, 0):
        return Check("D-BROKER", FAIL, "broker", f"{found} is too old", fix="use Redis 7 or newer, or Valkey")
    try:
        core.broker.check_writes()
    except FleetFault as error:
        return Check("D-BROKER", FAIL, "broker", f"{error.what}: {error.why}", fix=error.next)
    used, limit = core.broker.memory()
    if not limit:
        return Check("D-BROKER", OK, "broker", f"{found}, {used >> 20} MB in use, no memory limit (maxmemory)")
    found = f"{found}, {used >> 20} of {limit >> 20} MB in use"
    if (policy := core.broker.eviction()) != "noeviction":
        fix = "redis-cli config set maxmemory-policy noeviction"
        return Check("D-BROKER", WARN, "broker", f"{found}; it deletes the fleet's keys when full ({policy})", fix=fix)
    if used > limit * _BROKER_FULL:
        fix = "redis-cli config set maxmemory SIZE; with fleet up: FLEET_BROKER_MEMORY_MB=SIZE fleet up"
        return Check("D-BROKER", WARN, "broker", f"{found}; it accepts no messages when full", fix=fix)
    return Check("D-BROKER", OK, "broker", found)


def _drone_quota(core: Core, organization_id: str) -> Check:
    what = "drones' memory in the broker"
    if core.settings.drones_login is not None:
        return Check("D-DRONE-QUOTA", OK, what, "not limited: all drones share one login")
    quota = quota_bytes(core, core.broker.memory()[1])
    with core.database.read() as db:
        stopped = [drone for drone in serving(db, organization_id) if drone.over_quota_at is not None]
    if not stopped:
        return Check("D-DRONE-QUOTA", OK, what, f"no drone exceeds its quota of {quota >> 20} MB")
    held = measure(core.broker)
    sizes = ", ".join(f"{drone.name} ({held[drone.id].size >> 20} MB)" for drone in stopped)
    found = f"beyond the quota of {quota >> 20} MB, without the right to write: {sizes}"
    return Check("D-DRONE-QUOTA", WARN, what, found, fix=f"look at these machines; fleet help {CODE}")


def _broker_persistence(core: Core) -> Check:
    info = core.broker.redis.info("persistence")
    if info.get("aof_enabled"):
        return Check("D-BROKER-SAVE", OK, "broker's disk", "append-only")
    return Check(
        "D-BROKER-SAVE",
        WARN,
        "broker's disk",
        "a broker restart empties the queues; orders are then published again",
        fix="redis-cli config set appendonly yes",
        safe_fix=None,
    )


def _blobs(core: Core) -> Check:
    try:
        core.blobs.check()
    except FleetFault as error:
        return Check("D-BLOBS", FAIL, "blob store", f"{error.what}: {error.why}", fix=error.next)
    return Check("D-BLOBS", OK, "blob store", core.blobs.shown)


def _disk(core: Core) -> Check:
    free = shutil.disk_usage(_existing(core.settings.blob_dir)).free
    found = f"{free / (1 << 30):.1f} GiB free for patches and logs"
    if free < LOW_DISK_BYTES:
        return Check("D-DISK", WARN, "disk", found, fix=f"free disk space for {core.settings.blob_dir}")
    return Check("D-DISK", OK, "disk", found)


def _master_key(core: Core) -> Check:
    with core.database.read() as db:
        core.vault.box_keys(db)
    if len(core.vault.keys()) > 1:
        found = "the old key is still valid: a rotation was not completed"
        return Check("D-MASTER-KEY", WARN, "master key", found, fix="fleet keys rotate master")
    return Check("D-MASTER-KEY", OK, "master key", "one key, which opens what is stored")


def _existing(path: Path) -> Path:
    return next(each for each in (path, *path.parents) if each.exists())


def _drones(core: Core, organization_id: str) -> Check:
    with core.database.read() as db:
        drones = serving(db, organization_id)
    since = core.clock.now() - OFFLINE_AFTER
    alive = [drone for drone in drones if drone.last_seen_at and drone.last_seen_at > since and not drone.stopped_at]
    if not alive:
        return Check(
            "D-DRONES",
            WARN,
            "drones",
            f"none of {len(drones)} is online" if drones else "none is registered",
            fix="drone start" if drones else "fleet token add, then drone register --url … --token …",
        )
    weak = [
        (f"{what}: {', '.join(named)}", fix)
        for what, fix, is_weak in _WEAK
        if (named := [drone.name for drone in alive if is_weak(drone)])
    ]
    if weak:
        found = "; ".join((f"{len(alive)} online", *(what for what, _ in weak)))
        return Check("D-DRONES", WARN, "drones", found, fix="; ".join(fix for _, fix in weak))
    return Check("D-DRONES", OK, "drones", f"{len(alive)} of {len(drones)} online")


_WEAK: Sequence[tuple[str, str, Callable[[Drone], Any]]] = (
    (
        "without a sandbox",
        "install bubblewrap there, then register with --sandbox auto",
        lambda drone: drone.sandbox == "none",
    ),
    (
        "commands use the machine's own network",
        'there: drone doctor    or allow it: access = "host" under [network] in its policy',
        lambda drone: (drone.beat or {}).get("open_network"),
    ),
    (
        "a policy that cannot be read or enforced",
        "there: drone policy",
        lambda drone: (drone.beat or {}).get("policy_broken"),
    ),
)
"""How a drone is weaker than it should be: in words, with what to do, and whether one is."""


def _providers(core: Core, organization_id: str) -> Check:
    wanted = select(Provider.name, Provider.check_state, Provider.check_report)
    found = _sorted(core, wanted.where(Provider.organization_id == organization_id, Provider.removed_at.is_(None)))
    if not found:
        fix = "fleet provider add main --model openai/MODEL --api-key-stdin"
        return Check("D-PROVIDERS", WARN, "providers", "none: no order can run without a model", fix=fix)
    return _tried("D-PROVIDERS", "providers", found, "fleet provider test NAME")


def _projects(core: Core, organization_id: str) -> Check:
    wanted = select(Project.slug, Project.check_state, Project.check_report)
    found = _sorted(core, wanted.where(Project.organization_id == organization_id, Project.removed_at.is_(None)))
    if not found:
        fix = "fleet project add SLUG --git-url URL"
        return Check("D-PROJECTS", WARN, "projects", "none: an order needs a repository", fix=fix)
    return _tried("D-PROJECTS", "projects", found, "fleet project test SLUG")


def _tried(code: str, what: str, found: Sequence[_Tried], again: str) -> Check:
    """Those that did not work when they were last tried fail, each with the reason."""
    failed = [(name, report or {}) for name, state, report in found if state == "failed"]
    if not failed:
        return Check(code, OK, what, ", ".join(name for name, _, _ in found))
    named = "; ".join(f"{name}: {report.get('summary', '').rstrip('.')}" for name, report in failed[:_NAMED])
    more = f"; and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
    fix = next(filter(None, (report.get("next", "") for _, report in failed)), again)
    return Check(code, FAIL, what, f"{len(failed)} of {len(found)} do not work: {named}{more}", fix=fix)


def _orders(core: Core, organization_id: str) -> Check:
    """Those that have not moved for a while, with what they wait for: somebody may have forgotten them."""
    now = core.clock.now()
    unended = Order.organization_id == organization_id, Order.ended_at.is_(None)
    old = _with_moves().where(*unended, Order.created_at <= now - STANDSTILL)
    with core.database.read() as db:
        number = db.scalar(select(func.count()).select_from(Order).where(*unended)) or 0
        oldest = db.execute(old.order_by(Order.created_at).limit(_LOOKED_AT))
        found = [(_still_since(order, run, moves), order, run) for order, run, *moves in oldest]
        still = sorted((each for each in found if now - each[0] >= STANDSTILL), key=lambda each: each[0])
        named = [
            f"{order.id} for {roughly((now - since).total_seconds())} ({_why_still(order, run)})"
            for since, order, run in still[:_NAMED]
        ]
    if not still:
        return Check("D-ORDERS", OK, "orders", f"{number} unended, none stands still")
    more = f"; and {len(still) - _NAMED} more" if len(still) > _NAMED else ""
    said = f"{len(still)} of {number} unended ones stand still: {'; '.join(named)}{more}"
    return Check("D-ORDERS", WARN, "orders", said, fix="fleet show ORDER    or: fleet inbox")


def _with_moves() -> Select[Order, Run, datetime | None, datetime | None]:
    """The orders, each with its current run, the end of its last run, and when it last went to a drone."""
    ended = aliased(Run)
    last_end = select(func.max(ended.ended_at)).where(ended.order_id == Order.id).scalar_subquery()
    open_one = Dispatch.order_id == Order.id, Dispatch.closed_at.is_(None)
    sent = select(func.max(Dispatch.created_at)).where(*open_one).scalar_subquery()
    return select(Order, Run, last_end, sent).outerjoin(Run, Run.id == Order.run_id)


def _still_since(order: Order, run: Run | None, moves: Sequence[datetime | None]) -> datetime:
    """When the order last moved: its run made progress or began to wait, or it was queued or went to a drone."""
    if run is None or run.ended_at is not None:
        return max(filter(None, (order.created_at, order.run_again_at, *moves)))
    return (run.doing_since if run.waits_for else run.progress_at) or run.started_at


def _why_still(order: Order, run: Run | None) -> str:
    doing = run.doing if run is not None and run.ended_at is None else ""
    return doing or order.reason or order.status


def _sorted(core: Core, wanted: Select[str, str, dict[str, Any] | None]) -> list[_Tried]:
    with core.database.read() as db:
        return sorted((tuple(row) for row in db.execute(wanted)), key=itemgetter(0))


def _raw_events(core: Core) -> Check:
    with core.database.read() as db:
        number = db.scalar(select(func.count()).select_from(RawEvent)) or 0
    if number:
        found = f"{number} drone reports could not be processed; they are kept unchanged"
        return Check("D-EVENTS", WARN, "events", found, fix="check the table raw_events and the server's log")
    return Check("D-EVENTS", OK, "events", "all processed")


def _flower(core: Core) -> Check:
    url = core.settings.flower_upstream or core.settings.flower_url
    if not url:
        return Check("D-FLOWER", OK, "flower", "not configured")
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 80)), timeout=1.0):
            return Check("D-FLOWER", OK, "flower", url)
    except OSError:
        return Check("D-FLOWER", WARN, "flower", f"does not answer at {url}", fix="fleet flower")


def _traces(core: Core) -> Check:
    endpoint = core.settings.otlp_endpoint
    if not endpoint:
        return Check("D-TRACES", OK, "receiver of traces", "not configured")
    if why := problem_of(core, endpoint):
        fix = "FLEET_OTLP_ENDPOINT and FLEET_OTLP_HEADERS, for all processes of the control plane"
        return Check("D-TRACES", WARN, "receiver of traces", f"does not take traces at {endpoint}: {why}", fix=fix)
    return Check("D-TRACES", OK, "receiver of traces", endpoint)
