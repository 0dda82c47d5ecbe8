"""Everything there is at the beginning, and the organization `default`."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import ForeignText, UtcDateTime
from shared.names import new_id

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

Id = sa.String(12)
Seq = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _installation()
    _people()
    _drones()
    _projects()
    _orders()
    _turns()
    _runs()
    _steps()
    _first_rows()


def downgrade() -> None:
    raise NotImplementedError("before the first revision there is nothing; restore a backup instead")


def _installation() -> None:
    op.create_table(
        "organizations",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False, unique=True),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "key_pairs",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("public_key", sa.String, nullable=False),
        sa.Column("sealed_private_key", sa.String, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("retired_at", UtcDateTime),
    )
    op.create_table(
        "owners",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
    )


def _people() -> None:
    op.create_table(
        "api_tokens",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False, unique=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("last_used_at", UtcDateTime),
        sa.Column("expires_at", UtcDateTime),
        sa.Column("revoked_at", UtcDateTime),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("api_tokens", "organization_id")
    op.create_table(
        "login_links",
        sa.Column("id", Id, primary_key=True),
        sa.Column("secret_hash", sa.String(64), nullable=False, unique=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("used_at", UtcDateTime),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("login_links", "organization_id")
    op.create_table(
        "web_sessions",
        sa.Column("id", Id, primary_key=True),
        sa.Column("secret_hash", sa.String(64), nullable=False, unique=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("web_sessions", "organization_id")
    op.create_table(
        "join_tokens",
        sa.Column("id", Id, primary_key=True),
        sa.Column("secret_hash", sa.String(64), nullable=False, unique=True),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("uses", sa.Integer, nullable=False),
        sa.Column("used", sa.Integer, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("revoked_at", UtcDateTime),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("join_tokens", "organization_id")


def _drones() -> None:
    op.create_table(
        "drones",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("machine_id", sa.String(128), nullable=False),
        sa.Column("public_key", sa.String(64), nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("fixed_labels", sa.JSON, nullable=False),
        sa.Column("concurrency", sa.Integer, nullable=False),
        sa.Column("sandbox", sa.String(32), nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
        sa.Column("broker_password_hash", sa.String(64), nullable=False),
        sa.Column("registered_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
        sa.Column("draining", sa.Boolean, nullable=False),
        sa.Column("boot_id", sa.String(64)),
        sa.Column("last_seen_at", UtcDateTime),
        sa.Column("stopped_at", UtcDateTime),
        sa.Column("beat", sa.JSON),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("drones", "organization_id", "public_key")
    _unique_while_alive("uq_drones_name_alive", "drones", "name")
    op.create_table(
        "inbox",
        sa.Column("id", Id, primary_key=True),
        sa.Column("drone_id", Id, sa.ForeignKey("drones.id"), nullable=False),
        sa.Column("run_id", Id),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("sent_at", UtcDateTime),
        sa.Column("done_at", UtcDateTime),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("inbox", "drone_id", "organization_id")
    op.create_table(
        "raw_events",
        sa.Column("id", Seq, primary_key=True),
        sa.Column("drone_id", Id, nullable=False),
        sa.Column("entry_id", sa.String(64), nullable=False),
        sa.Column("fields", sa.JSON, nullable=False),
        sa.Column("error", ForeignText, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("raw_events", "organization_id")


def _projects() -> None:
    op.create_table(
        "providers",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("model", sa.String(255), nullable=False),
        sa.Column("api_base", sa.Text),
        sa.Column("context_window", sa.Integer, nullable=False),
        sa.Column("protocol", sa.String(8), nullable=False),
        sa.Column("params", sa.JSON, nullable=False),
        sa.Column("fallbacks", sa.JSON, nullable=False),
        sa.Column("sealed_key", sa.Text),
        sa.Column("key_variable", sa.String(128)),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("providers", "organization_id")
    _unique_while_alive("uq_providers_name_alive", "providers", "name")
    op.create_table(
        "projects",
        sa.Column("id", Id, primary_key=True),
        sa.Column("slug", sa.String(64), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("git_url", sa.Text, nullable=False),
        sa.Column("sealed_git_url", sa.Text),
        sa.Column("branch", sa.String(255)),
        sa.Column("setup", sa.JSON, nullable=False),
        sa.Column("verify", sa.JSON, nullable=False),
        sa.Column("provider_id", Id, sa.ForeignKey("providers.id")),
        sa.Column("budget_usd_day", sa.Double),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("projects", "organization_id")
    _unique_while_alive("uq_projects_slug_alive", "projects", "slug")
    op.create_table(
        "sessions",
        sa.Column("id", Id, primary_key=True),
        sa.Column("project_id", Id, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("approve", sa.String(16)),
        sa.Column("allow", sa.JSON, nullable=False),
        sa.Column("leaf_id", Id),
        sa.Column("compact", sa.Text),
        sa.Column("forked_from_id", Id),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("sessions", "organization_id")


def _orders() -> None:
    op.create_table(
        "orders",
        sa.Column("id", Id, primary_key=True),
        sa.Column("number", Seq, nullable=False),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("project_id", Id, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("session_id", Id, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("provider_id", Id, sa.ForeignKey("providers.id"), nullable=False),
        sa.Column("model", sa.String(255), nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("approve", sa.String(16), nullable=False),
        sa.Column("allow", sa.JSON, nullable=False),
        sa.Column("limits", sa.JSON, nullable=False),
        sa.Column("prompt", sa.Text, nullable=False),
        sa.Column("idempotency_key", sa.String(255)),
        sa.Column("request_hash", sa.String(64)),
        sa.Column("wanted_drone_id", Id, sa.ForeignKey("drones.id")),
        sa.Column("wanted_labels", sa.JSON, nullable=False),
        sa.Column("drone_id", Id, sa.ForeignKey("drones.id")),
        sa.Column("run_id", Id),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("lost_runs", sa.Integer, nullable=False),
        sa.Column("max_attempts", sa.Integer, nullable=False),
        sa.Column("grant_until", UtcDateTime),
        sa.Column("status", sa.String(24), nullable=False),
        sa.Column("reason", ForeignText, nullable=False),
        sa.Column("exit_status", sa.String(32)),
        sa.Column("verification", sa.String(24)),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("started_at", UtcDateTime),
        sa.Column("ended_at", UtcDateTime),
        sa.Column("step_count", sa.Integer, nullable=False),
        sa.Column("response", ForeignText),
        sa.Column("branch", sa.String(255)),
        sa.Column("base_commit", sa.String(64)),
        sa.Column("head_commit", sa.String(64)),
        sa.Column("pushed", sa.Boolean, nullable=False),
        sa.Column("push_error", ForeignText),
        sa.Column("late_refs", sa.JSON, nullable=False),
        sa.Column("result_run_id", Id),
        sa.Column("patch_sha256", sa.String(64)),
        sa.Column("patch_bytes", sa.Integer, nullable=False),
        sa.Column("bundle_sha256", sa.String(64)),
        sa.Column("receipt", sa.JSON),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
        sa.UniqueConstraint("organization_id", "idempotency_key", name="uq_orders_idempotency"),
    )
    _index("orders", "drone_id", "number", "organization_id", "project_id", "session_id", "status")
    op.create_table(
        "session_entries",
        sa.Column("id", Id, primary_key=True),
        sa.Column("number", Seq, nullable=False),
        sa.Column("session_id", Id, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("parent_id", Id),
        sa.Column("kind", sa.String(24), nullable=False),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id")),
        sa.Column("data", sa.JSON, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("session_entries", "number", "order_id", "organization_id", "session_id")


def _turns() -> None:
    op.create_table(
        "turns",
        sa.Column("id", Id, primary_key=True),
        sa.Column("session_id", Id, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False, unique=True),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("prompt", sa.Text, nullable=False),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.Column("model", sa.String(255), nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("response", ForeignText),
        sa.Column("stats", sa.JSON, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("ended_at", UtcDateTime),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("turns", "organization_id", "session_id")
    op.create_table(
        "words",
        sa.Column("number", Seq, primary_key=True),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("after", sa.Boolean, nullable=False),
        sa.Column("interrupt", sa.Boolean, nullable=False),
        sa.Column("run_id", Id),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("words", "order_id", "organization_id")
    op.create_table(
        "dispatches",
        sa.Column("id", Id, primary_key=True),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
        sa.Column("drone_id", Id, sa.ForeignKey("drones.id"), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("published_at", UtcDateTime),
        sa.Column("claimed_at", UtcDateTime),
        sa.Column("closed_at", UtcDateTime),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("dispatches", "closed_at", "drone_id", "order_id", "organization_id", "published_at")


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", Id, sa.ForeignKey("dispatches.id"), primary_key=True),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
        sa.Column("drone_id", Id, sa.ForeignKey("drones.id"), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("exit_status", sa.String(32)),
        sa.Column("reason", ForeignText, nullable=False),
        sa.Column("late", sa.Boolean, nullable=False),
        sa.Column("boot_id", sa.String(64), nullable=False),
        sa.Column("sandbox", sa.String(32), nullable=False),
        sa.Column("started_at", UtcDateTime, nullable=False),
        sa.Column("ended_at", UtcDateTime),
        sa.Column("beat_at", UtcDateTime),
        sa.Column("doing", ForeignText, nullable=False),
        sa.Column("last_seq", sa.Integer, nullable=False),
        sa.Column("tool_calls", sa.Integer, nullable=False),
        sa.Column("input_tokens", sa.Integer, nullable=False),
        sa.Column("thinking_tokens", sa.Integer, nullable=False),
        sa.Column("output_tokens", sa.Integer, nullable=False),
        sa.Column("cost_usd", sa.Double),
        sa.Column("duration_ms", sa.Integer, nullable=False),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("runs", "drone_id", "order_id", "organization_id", "status")


def _steps() -> None:
    op.create_table(
        "steps",
        sa.Column("id", Seq, primary_key=True),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
        sa.Column("run_id", Id, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("run_seq", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(24), nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("drone_at", UtcDateTime, nullable=False),
        sa.Column("late", sa.Boolean, nullable=False),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
        sa.UniqueConstraint("order_id", "seq", name="uq_steps_order_seq"),
        sa.UniqueConstraint("run_id", "run_seq", name="uq_steps_run_seq"),
    )
    _index("steps", "organization_id")
    op.create_table(
        "blobs",
        sa.Column("run_id", Id, sa.ForeignKey("dispatches.id"), primary_key=True),
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
    )
    _index("blobs", "organization_id")


def _first_rows() -> None:
    organizations = sa.table(
        "organizations",
        *(sa.column(name) for name in ("id", "name", "description")),
        sa.column("created_at", UtcDateTime),
    )
    row = {"id": new_id(), "name": "default", "description": "", "created_at": datetime.now(UTC)}
    op.bulk_insert(organizations, [row])
    op.bulk_insert(sa.table("counters", sa.column("name"), sa.column("value")), [{"name": "orders", "value": 0}])


def _index(table: str, *columns: str) -> None:
    for column in columns:
        op.create_index(f"ix_{table}_{column}", table, [column])


def _unique_while_alive(name: str, table: str, column: str) -> None:
    alive = sa.text("removed_at IS NULL")
    op.create_index(name, table, ["organization_id", column], unique=True, sqlite_where=alive, postgresql_where=alive)
