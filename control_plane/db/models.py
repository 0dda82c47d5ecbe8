"""Every row of the control plane. Each carries its organization; what has none belongs to the installation as a whole.

Enumerations are stored as their text. JSON columns hold small documents that are never searched.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, Integer, MetaData, String, Text, UniqueConstraint, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from control_plane.db.types import ForeignText, UtcDateTime
from shared.names import ID_LENGTH

Id = String(ID_LENGTH)
Seq = BigInteger().with_variant(Integer, "sqlite")
"""SQLite only counts an INTEGER primary key up by itself."""


class Row(DeclarativeBase):
    """The base of all rows; constraint names are fixed so that migrations can find them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's own way to declare it
        datetime: UtcDateTime,
        dict[str, Any]: JSON,
        dict[str, str]: JSON,
        list[str]: JSON,
        list[Any]: JSON,
    }


class Owned:
    """A row that belongs to one organization."""

    organization_id: Mapped[str] = mapped_column(Id, ForeignKey("organizations.id"), index=True)


def unique_while_alive(name: str, column: str) -> Index:
    """What was removed stays for history and its name may be used again, so only living names are unique."""
    alive = text("removed_at IS NULL")
    return Index(name, "organization_id", column, unique=True, sqlite_where=alive, postgresql_where=alive)


_UNENDED = text("ended_at IS NULL")


# --- the installation ---------------------------------------------------------------


class Organization(Row):
    __tablename__ = "organizations"
    __table_args__ = (Index("uq_organizations_acronym", "acronym", unique=True),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    description: Mapped[str] = mapped_column(Text, default="")
    """Its purpose, which its agents are told."""
    acronym: Mapped[str] = mapped_column(String(16))
    """Begins the ids of its tasks; unique, so that no two ids collide (S-021, mended)."""
    last_task: Mapped[int] = mapped_column(default=0)
    """The number of its newest task; taken under the lock of this row."""
    project_id: Mapped[str | None] = mapped_column(Id)
    """Where tasks work that name no project."""
    concurrency: Mapped[int] = mapped_column(default=4)
    """Tasks in progress at once; 0: no limit."""
    max_hand_offs: Mapped[int] = mapped_column(default=20)
    """From agent to agent in a row, until a task comes back to the user; 0: no limit."""
    paused_at: Mapped[datetime | None]
    """No task is begun while this is set; what is in progress goes on."""
    created_at: Mapped[datetime]


class Counter(Row):
    """A number that only goes up. Its row is the lock under which it is taken: numbers follow the order of commits."""

    __tablename__ = "counters"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[int] = mapped_column(BigInteger, default=0)


class KeyPair(Row):
    """The control plane's own X25519 keys; a retired one is kept until its last envelope is gone."""

    __tablename__ = "key_pairs"
    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    """`shared.envelope.key_id` of the public key."""
    public_key: Mapped[str]
    """Base64."""
    sealed_private_key: Mapped[str]
    created_at: Mapped[datetime]
    retired_at: Mapped[datetime | None]


class Owner(Row):
    """A lease on a part of the work: `leader`, or `stream:<drone>`; whoever holds it renews it before it expires."""

    __tablename__ = "owners"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    holder: Mapped[str] = mapped_column(String(64))
    expires_at: Mapped[datetime]


# --- people and their tokens -----------------------------------------------------------


class ApiToken(Owned, Row):
    __tablename__ = "api_tokens"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(128), default="")
    role: Mapped[str] = mapped_column(String(16))
    """admin, operator or viewer."""
    everywhere: Mapped[bool] = mapped_column(default=False)
    """It may act in every organization, and make new ones."""
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class LoginLink(Owned, Row):
    """A one-use address that logs a browser in."""

    __tablename__ = "login_links"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str] = mapped_column(String(16))
    everywhere: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class WebSession(Owned, Row):
    """A logged-in browser."""

    __tablename__ = "web_sessions"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str] = mapped_column(String(16))
    everywhere: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class JoinToken(Owned, Row):
    __tablename__ = "join_tokens"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    labels: Mapped[dict[str, str]]
    """Fixed on every drone that joins with this token."""
    serves: Mapped[list[str]] = mapped_column(default=list)
    """As on the drones that join with it."""
    uses: Mapped[int]
    """How often it may be used in all."""
    used: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


# --- drones --------------------------------------------------------------------------------


class Drone(Owned, Row):
    __tablename__ = "drones"
    __table_args__ = (unique_while_alive("uq_drones_name_alive", "name"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    machine_id: Mapped[str] = mapped_column(String(128))
    public_key: Mapped[str] = mapped_column(String(64), index=True)
    """Base64."""
    labels: Mapped[dict[str, str]]
    fixed_labels: Mapped[dict[str, str]]
    serves: Mapped[list[str]] = mapped_column(default=list)
    """Ids of the organizations that it works for beside its own; `*`: all."""
    concurrency: Mapped[int] = mapped_column(default=1)
    sandbox: Mapped[str] = mapped_column(String(32), default="")
    version: Mapped[str] = mapped_column(String(32), default="")
    host: Mapped[str] = mapped_column(String(255), default="")
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of its bearer token."""
    broker_password_hash: Mapped[str] = mapped_column(String(64))
    """SHA-256 of its Redis password: enough to create its Redis user again after Redis was emptied."""
    registered_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]
    draining: Mapped[bool] = mapped_column(default=False)
    boot_id: Mapped[str | None] = mapped_column(String(64))
    last_seen_at: Mapped[datetime | None]
    """When a beat last arrived, by this side's clock."""
    stopped_at: Mapped[datetime | None]
    """Set by the last beat of a clean stop, cleared by any later beat."""
    beat: Mapped[dict[str, Any] | None]
    """The last beat, for display."""


class InboxMessage(Owned, Row):
    """A control message for a drone, until its beat says that it was acted on."""

    __tablename__ = "inbox"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    drone_id: Mapped[str] = mapped_column(Id, ForeignKey("drones.id"), index=True)
    run_id: Mapped[str | None] = mapped_column(Id)
    body: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]
    """None: not in Redis yet."""
    done_at: Mapped[datetime | None]


class RawEvent(Owned, Row):
    """A stream entry that could not be taken in; kept as it came, so that nothing is lost in silence."""

    __tablename__ = "raw_events"
    id: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=True)
    drone_id: Mapped[str] = mapped_column(Id)
    entry_id: Mapped[str] = mapped_column(String(64))
    fields: Mapped[dict[str, Any]]
    error: Mapped[str] = mapped_column(ForeignText)
    at: Mapped[datetime]


# --- projects, providers, sessions ------------------------------------------------------------


class Provider(Owned, Row):
    __tablename__ = "providers"
    __table_args__ = (unique_while_alive("uq_providers_name_alive", "name"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    model: Mapped[str] = mapped_column(String(255))
    api_base: Mapped[str | None] = mapped_column(Text)
    context_window: Mapped[int] = mapped_column(default=0)
    protocol: Mapped[str] = mapped_column(String(8), default="auto")
    params: Mapped[dict[str, Any]]
    fallbacks: Mapped[list[str]]
    """Names of providers."""
    sealed_key: Mapped[str | None] = mapped_column(Text)
    key_variable: Mapped[str | None] = mapped_column(String(128))
    """The variable on the drone; the key itself is never here then."""
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class Project(Owned, Row):
    __tablename__ = "projects"
    __table_args__ = (unique_while_alive("uq_projects_slug_alive", "slug"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    slug: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(128))
    git_url: Mapped[str] = mapped_column(Text)
    """As it may be shown: without a password."""
    sealed_git_url: Mapped[str | None] = mapped_column(Text)
    """The whole URL, sealed at rest, where it has a password."""
    branch: Mapped[str | None] = mapped_column(String(255))
    setup: Mapped[list[str]]
    verify: Mapped[list[str]]
    provider_id: Mapped[str | None] = mapped_column(Id, ForeignKey("providers.id"))
    budget_usd_day: Mapped[float | None]
    pull_requests: Mapped[str] = mapped_column(String(16), default="never")
    """never, ready (title and body are made up) or open (and opened from a drone's workstation)."""
    trailers: Mapped[list[str]] = mapped_column(default=list)
    """Which trailers its commits and pull requests carry: Assisted-by, Fleet-Order."""
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class Session(Owned, Row):
    """A chat: its turns and changes are entries of a tree, and `leaf_id` is where the next turn goes on."""

    __tablename__ = "sessions"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    project_id: Mapped[str] = mapped_column(Id, ForeignKey("projects.id"))
    name: Mapped[str] = mapped_column(String(255))
    mode: Mapped[str] = mapped_column(String(16))
    approve: Mapped[str | None] = mapped_column(String(16))
    """What its orders ask for where they do not say themselves."""
    allow: Mapped[list[str]] = mapped_column(default=list)
    """Commands that need no approval in this session."""
    leaf_id: Mapped[str | None] = mapped_column(Id)
    """The entry that the next turn goes on from; None at the root."""
    compact: Mapped[str | None] = mapped_column(Text)
    """A compaction is due before the next turn, with these instructions."""
    forked_from_id: Mapped[str | None] = mapped_column(Id)
    task_id: Mapped[str | None] = mapped_column(String(32))
    """The task whose workspace this is; its turns are its agents' runs, and people write comments instead."""
    created_at: Mapped[datetime]


class SessionEntry(Owned, Row):
    """One entry of a session's tree, never changed. A fork's first entry has its parent in the session it came from."""

    __tablename__ = "session_entries"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    number: Mapped[int] = mapped_column(Seq, index=True)
    """Order of writing in the installation."""
    session_id: Mapped[str] = mapped_column(Id, ForeignKey("sessions.id"), index=True)
    parent_id: Mapped[str | None] = mapped_column(Id)
    kind: Mapped[str] = mapped_column(String(24))
    """turn, compaction, leaf, label, model_change, mode_change or name."""
    order_id: Mapped[str | None] = mapped_column(Id, ForeignKey("orders.id"), index=True)
    """Of a turn: its messages are the steps of the order's run."""
    data: Mapped[dict[str, Any]]
    at: Mapped[datetime]


# --- work -----------------------------------------------------------------------------------------


class Order(Owned, Row):
    """A work order, and what became of it."""

    __tablename__ = "orders"
    __table_args__ = (
        UniqueConstraint("organization_id", "idempotency_key", name="uq_orders_idempotency"),
        Index("ix_orders_state", "organization_id", "status"),
        Index("ix_orders_mirrors", "project_id", "drone_id"),
        # The few that have not ended, among all that ever were: where most have one state, an index over all is none.
        Index("ix_orders_unended", "status", "drone_id", sqlite_where=_UNENDED, postgresql_where=_UNENDED),
    )
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    number: Mapped[int] = mapped_column(Seq, index=True)
    """Order of submission in the installation."""
    user: Mapped[str] = mapped_column(String(128), default="")
    project_id: Mapped[str] = mapped_column(Id, ForeignKey("projects.id"), index=True)
    session_id: Mapped[str] = mapped_column(Id, ForeignKey("sessions.id"), index=True)
    provider_id: Mapped[str] = mapped_column(Id, ForeignKey("providers.id"))
    model: Mapped[str] = mapped_column(String(255))
    mode: Mapped[str] = mapped_column(String(16))
    priority: Mapped[int] = mapped_column(default=0)
    approve: Mapped[str] = mapped_column(String(16), default="yolo")
    allow: Mapped[list[str]] = mapped_column(default=list)
    limits: Mapped[dict[str, Any]]
    """`shared.work_order.Limits`."""
    prompt: Mapped[str] = mapped_column(Text)
    purpose: Mapped[str] = mapped_column(String(16), default="work")
    """`shared.work_order.Purpose`: work on the project, or a small service for the control plane."""
    asked: Mapped[dict[str, Any] | None]
    """What a service is to be done with."""
    agent_id: Mapped[str | None] = mapped_column(Id, index=True)
    """The agent whose turn on a task this is."""
    task_id: Mapped[str | None] = mapped_column(String(32), index=True)
    idempotency_key: Mapped[str | None] = mapped_column(String(255))
    request_hash: Mapped[str | None] = mapped_column(String(64))

    wanted_drone_id: Mapped[str | None] = mapped_column(Id, ForeignKey("drones.id"))
    wanted_labels: Mapped[dict[str, str]]
    drone_id: Mapped[str | None] = mapped_column(Id, ForeignKey("drones.id"), index=True)
    """Where it is now, or where it ended."""
    run_id: Mapped[str | None] = mapped_column(Id)
    """The current dispatch; whatever comes from another run is late."""
    generation: Mapped[int] = mapped_column(default=0)
    attempt: Mapped[int] = mapped_column(default=0)
    lost_runs: Mapped[int] = mapped_column(default=0)
    max_attempts: Mapped[int] = mapped_column(default=3)
    fresh_generation: Mapped[int] = mapped_column(default=0)
    """Runs of this generation and before are not gone on from: a retry begins anew."""
    renewed_generation: Mapped[int] = mapped_column(default=0)
    """What runs up to this generation spent does not count against the limits: a person let the order go on."""
    grant_until: Mapped[datetime | None]
    """A push grant of the current generation is open until then."""

    status: Mapped[str] = mapped_column(String(24), index=True)
    reason: Mapped[str] = mapped_column(ForeignText, default="")
    exit_status: Mapped[str | None] = mapped_column(String(32))
    verification: Mapped[str | None] = mapped_column(String(24))
    """`shared.outcome.Verification`, once the order has ended."""
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    step_count: Mapped[int] = mapped_column(default=0)

    response: Mapped[str | None] = mapped_column(ForeignText)
    branch: Mapped[str | None] = mapped_column(String(255))
    base_commit: Mapped[str | None] = mapped_column(String(64))
    head_commit: Mapped[str | None] = mapped_column(String(64))
    pushed: Mapped[bool] = mapped_column(default=False)
    push_error: Mapped[str | None] = mapped_column(ForeignText)
    late_refs: Mapped[list[str]]
    result_run_id: Mapped[str | None] = mapped_column(Id)
    """The run whose patch and bundle these are."""
    patch_sha256: Mapped[str | None] = mapped_column(String(64))
    patch_bytes: Mapped[int] = mapped_column(default=0)
    bundle_sha256: Mapped[str | None] = mapped_column(String(64))
    pull_request: Mapped[dict[str, Any] | None]
    """`documents.PullRequestDocument`, where one was asked for."""
    receipt: Mapped[dict[str, Any] | None]


class Turn(Owned, Row):
    """What the user sees of an order in its session; written when the order is submitted (G-009)."""

    __tablename__ = "turns"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    session_id: Mapped[str] = mapped_column(Id, ForeignKey("sessions.id"), index=True)
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"), unique=True)
    user: Mapped[str] = mapped_column(String(128), default="")
    prompt: Mapped[str] = mapped_column(Text)
    provider: Mapped[str] = mapped_column(String(64))
    model: Mapped[str] = mapped_column(String(255))
    mode: Mapped[str] = mapped_column(String(16))
    status: Mapped[str] = mapped_column(String(16))
    response: Mapped[str | None] = mapped_column(ForeignText)
    stats: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class Word(Owned, Row):
    """Something that a person said to an order; every run of it that begins afresh hears it."""

    __tablename__ = "words"
    number: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=True)
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"), index=True)
    user: Mapped[str] = mapped_column(String(128), default="")
    text: Mapped[str] = mapped_column(Text)
    after: Mapped[bool] = mapped_column(default=False)
    interrupt: Mapped[bool] = mapped_column(default=False)
    run_id: Mapped[str | None] = mapped_column(Id)
    """The dispatch that carries it in its order, as it was said before; any other run is told by its drone's inbox."""
    at: Mapped[datetime]


class Dispatch(Owned, Row):
    """The outbox: one row for each time an order goes onto a drone's queue.

    Its id is the run's id and Celery's task id.
    """

    __tablename__ = "dispatches"
    __table_args__ = (Index("ix_dispatches_open", "organization_id", "closed_at"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"), index=True)
    drone_id: Mapped[str] = mapped_column(Id, ForeignKey("drones.id"), index=True)
    generation: Mapped[int]
    created_at: Mapped[datetime]
    published_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    claimed_at: Mapped[datetime | None]
    closed_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    """The run ended, or the dispatch was revoked."""


class Run(Owned, Row):
    """One attempt; exists from its first event on. The only unit of cost (S-034)."""

    __tablename__ = "runs"
    __table_args__ = (
        # Totals are sums over this index alone.
        Index(
            "ix_runs_totals",
            "organization_id",
            "agent_id",
            "task_id",
            "cost_usd",
            "input_tokens",
            "output_tokens",
            "duration_ms",
        ),
    )
    id: Mapped[str] = mapped_column(Id, ForeignKey("dispatches.id"), primary_key=True)
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"), index=True)
    drone_id: Mapped[str] = mapped_column(Id, ForeignKey("drones.id"), index=True)
    agent_id: Mapped[str | None] = mapped_column(Id)
    task_id: Mapped[str | None] = mapped_column(String(32), index=True)
    """Both as on the order, which never changes them."""
    generation: Mapped[int]
    attempt: Mapped[int]
    status: Mapped[str] = mapped_column(String(16), index=True)
    exit_status: Mapped[str | None] = mapped_column(String(32))
    reason: Mapped[str] = mapped_column(ForeignText, default="")
    late: Mapped[bool] = mapped_column(default=False)
    boot_id: Mapped[str] = mapped_column(String(64), default="")
    sandbox: Mapped[str] = mapped_column(String(32), default="")
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    beat_at: Mapped[datetime | None]
    """When a beat last named this run."""
    doing: Mapped[str] = mapped_column(ForeignText, default="")
    doing_since: Mapped[datetime | None]
    progress_at: Mapped[datetime | None]
    """When something last came of it, by this side's clock."""
    waits_for: Mapped[str] = mapped_column(String(16), default="")
    resumed_run_id: Mapped[str | None] = mapped_column(Id)
    """The run whose checkpoint this one went on from; what it did after that left the path."""
    resumed_seq: Mapped[int] = mapped_column(default=0)
    last_seq: Mapped[int] = mapped_column(default=0)
    """Every event up to this one is stored."""
    tool_calls: Mapped[int] = mapped_column(default=0)
    input_tokens: Mapped[int] = mapped_column(default=0)
    thinking_tokens: Mapped[int] = mapped_column(default=0)
    output_tokens: Mapped[int] = mapped_column(default=0)
    cost_usd: Mapped[float | None] = mapped_column(default=0.0)
    """None: a price was unknown."""
    duration_ms: Mapped[int] = mapped_column(default=0)


class Step(Owned, Row):
    """One event of a run, as stored; unique on (run, run_seq), so that the same event counts once."""

    __tablename__ = "steps"
    __table_args__ = (
        UniqueConstraint("run_id", "run_seq", name="uq_steps_run_seq"),
        UniqueConstraint("order_id", "seq", name="uq_steps_order_seq"),
    )
    id: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=True)
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"))
    run_id: Mapped[str] = mapped_column(Id, ForeignKey("runs.id"))
    seq: Mapped[int]
    """Counts through all runs of the order, from 1."""
    run_seq: Mapped[int]
    kind: Mapped[str] = mapped_column(String(24))
    body: Mapped[dict[str, Any]]
    at: Mapped[datetime]
    """This side's clock, at receipt."""
    drone_at: Mapped[datetime]
    late: Mapped[bool] = mapped_column(default=False)


class Blob(Owned, Row):
    """A file that a run stored: patch, bundle, log, checkpoint."""

    __tablename__ = "blobs"
    run_id: Mapped[str] = mapped_column(Id, ForeignKey("dispatches.id"), primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    size: Mapped[int] = mapped_column(BigInteger)
    sealed: Mapped[bool] = mapped_column(default=False)
    """Encrypted at rest under the master key, as a checkpoint is."""
    created_at: Mapped[datetime]
