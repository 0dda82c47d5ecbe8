"""The first schema: all tables, the organization `default` and the counter of orders."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import ForeignText, UtcDateTime
from shared.names import new_id

revision = "r0001"
down_revision = None
branch_labels = None
depends_on = None

Id = sa.String(12)
Seq = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""SQLite auto-increments only an INTEGER primary key."""


def upgrade() -> None:
    _create_installation()
    _create_audit()
    _create_users()
    _create_access()
    _create_drones()
    _create_projects()
    _create_agents()
    _create_sessions()
    _create_orders()
    _create_conversations()
    _create_runs()
    _create_tasks()
    _create_spending()
    _create_automation()
    _create_attention()
    _create_code_hosts()
    _insert_first_rows()


def downgrade() -> None:
    raise NotImplementedError("before the first revision there is nothing; restore a backup instead")


def _create_installation() -> None:
    op.create_table(
        "organizations",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("acronym", sa.String(16), nullable=False, server_default=""),
        sa.Column("last_task", sa.Integer, nullable=False, server_default="0"),
        sa.Column("project_id", Id),
        sa.Column("reviewer_id", Id),
        sa.Column("concurrency", sa.Integer, nullable=False, server_default="4"),
        sa.Column("max_hand_offs", sa.Integer, nullable=False, server_default="20"),
        sa.Column("limits", sa.JSON, nullable=False, server_default="{}"),
        sa.Column("thinking", sa.String(8)),
        sa.Column("paused_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("name", name="uq_organizations_name"),
    )
    op.create_index("uq_organizations_acronym", "organizations", ["acronym"], unique=True)
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


def _create_audit() -> None:
    op.create_table(
        "audit_records",
        sa.Column("seq", Seq, primary_key=True, autoincrement=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("actor_kind", sa.String(16), nullable=False),
        sa.Column("actor", sa.String(128), nullable=False),
        sa.Column("actor_id", sa.String(64), nullable=False),
        sa.Column("actor_user_id", Id, nullable=False, server_default=""),
        sa.Column("door", sa.String(16), nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("target", sa.String(255), nullable=False),
        sa.Column("organization", sa.String(64), nullable=False),
        sa.Column("organization_ref", Id, nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("code", sa.String(64), nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("previous_hash", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    _index("audit_records", "at", "organization_ref")
    op.create_table(
        "audit_heads",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", Seq, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_table(
        "audit_keys",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("public_key", sa.Text, nullable=False),
        sa.Column("sealed_private_key", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("retired_at", UtcDateTime),
    )
    op.create_table(
        "audit_seals",
        sa.Column("seq", Seq, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("key_id", sa.String(16), nullable=False),
        sa.Column("signature", sa.Text, nullable=False),
    )


def _create_users() -> None:
    op.create_table(
        "users",
        sa.Column("id", Id, primary_key=True),
        sa.Column("email", sa.String(254), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("issuer", sa.String(255)),
        sa.Column("subject", sa.String(255)),
        sa.Column("disabled_at", UtcDateTime),
        sa.UniqueConstraint("email", name="uq_users_email"),
    )
    op.create_index("uq_users_identity", "users", ["issuer", "subject"], unique=True)
    op.create_table(
        "members",
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), primary_key=True),
        sa.Column("user_id", Id, sa.ForeignKey("users.id"), primary_key=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    _index("members", "user_id")


def _create_access() -> None:
    op.create_table(
        "pools",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("max_drones", sa.Integer, nullable=False),
        sa.Column("token_id", Id, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
    )
    _index("pools", "organization_id")
    _partial_index("uq_pools_name_alive", "pools", ["organization_id", "name"], "removed_at IS NULL", unique=True)
    op.create_table(
        "api_tokens",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("everywhere", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("made_by", Id),
        sa.Column("user_id", Id),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("last_used_at", UtcDateTime),
        sa.Column("expires_at", UtcDateTime),
        sa.Column("revoked_at", UtcDateTime),
        sa.UniqueConstraint("secret_hash", name="uq_api_tokens_secret_hash"),
    )
    _index("api_tokens", "organization_id")
    op.create_table(
        "login_links",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("token_id", Id),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("everywhere", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("used_at", UtcDateTime),
        sa.UniqueConstraint("secret_hash", name="uq_login_links_secret_hash"),
    )
    _index("login_links", "organization_id")
    op.create_table(
        "web_sessions",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("token_id", Id),
        sa.Column("user_id", Id),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("everywhere", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("browser_key_hash", sa.String(64)),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("last_used_at", UtcDateTime),
        sa.Column("address", sa.String(64), nullable=False, server_default=""),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("secret_hash", name="uq_web_sessions_secret_hash"),
    )
    _index("web_sessions", "organization_id")
    op.create_table(
        "join_tokens",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("serves", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("uses", sa.Integer, nullable=False),
        sa.Column("used", sa.Integer, nullable=False),
        sa.Column("made_by", Id),
        sa.Column("user_id", Id),
        sa.Column("pool_id", Id),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("revoked_at", UtcDateTime),
        sa.UniqueConstraint("secret_hash", name="uq_join_tokens_secret_hash"),
    )
    _index("join_tokens", "organization_id")


def _create_drones() -> None:
    op.create_table(
        "drones",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("machine_id", sa.String(128), nullable=False),
        sa.Column("public_key", sa.String(64), nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("fixed_labels", sa.JSON, nullable=False),
        sa.Column("serves", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("concurrency", sa.Integer, nullable=False),
        sa.Column("sandbox", sa.String(32), nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("broker_password_hash", sa.String(64), nullable=False),
        sa.Column("next_public_key", sa.String(64)),
        sa.Column("next_token_hash", sa.String(64)),
        sa.Column("next_broker_password_hash", sa.String(64)),
        sa.Column("rotation_asked_at", UtcDateTime),
        sa.Column("keys_made_at", UtcDateTime),
        sa.Column("revoked_public_key", sa.String(64)),
        sa.Column("keys_revoked_at", UtcDateTime),
        sa.Column("over_quota_at", UtcDateTime),
        sa.Column("join_token_id", Id),
        sa.Column("pool_id", Id),
        sa.Column("user_id", Id),
        sa.Column("registered_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
        sa.Column("draining", sa.Boolean, nullable=False),
        sa.Column("boot_id", sa.String(64)),
        sa.Column("last_seen_at", UtcDateTime),
        sa.Column("stopped_at", UtcDateTime),
        sa.Column("beat", sa.JSON),
        sa.UniqueConstraint("token_hash", name="uq_drones_token_hash"),
    )
    _index("drones", "next_token_hash", "organization_id", "pool_id", "public_key", "revoked_public_key")
    _partial_index("uq_drones_name_alive", "drones", ["organization_id", "name"], "removed_at IS NULL", unique=True)
    op.create_table(
        "inbox",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("drone_id", Id, sa.ForeignKey("drones.id"), nullable=False),
        sa.Column("run_id", Id),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("sent_at", UtcDateTime),
        sa.Column("done_at", UtcDateTime),
    )
    _index("inbox", "drone_id", "organization_id")
    _partial_index("ix_inbox_undone", "inbox", ["drone_id"], "done_at IS NULL")
    op.create_table(
        "raw_events",
        sa.Column("id", Seq, primary_key=True, autoincrement=True),
        _organization(),
        sa.Column("drone_id", Id, nullable=False),
        sa.Column("entry_id", sa.String(64), nullable=False),
        sa.Column("fields", sa.JSON, nullable=False),
        sa.Column("error", ForeignText, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
    )
    _index("raw_events", "organization_id")


def _create_projects() -> None:
    op.create_table(
        "providers",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("model", sa.String(255), nullable=False),
        sa.Column("api_base", sa.Text),
        sa.Column("context_window", sa.Integer, nullable=False),
        sa.Column("protocol", sa.String(8), nullable=False),
        sa.Column("thinking", sa.String(8), nullable=False, server_default="auto"),
        sa.Column("params", sa.JSON, nullable=False),
        sa.Column("fallbacks", sa.JSON, nullable=False),
        sa.Column("rotation", Id, nullable=False, server_default="off"),
        sa.Column("sealed_key", sa.Text),
        sa.Column("key_variable", sa.String(128)),
        sa.Column("rpm", sa.Integer, nullable=False, server_default="0"),
        sa.Column("tpm", sa.Integer, nullable=False, server_default="0"),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
        sa.Column("check_state", Id, nullable=False, server_default="unchecked"),
        sa.Column("check_order_id", Id),
        sa.Column("check_report", sa.JSON),
    )
    _index("providers", "organization_id")
    _partial_index(
        "uq_providers_name_alive", "providers", ["organization_id", "name"], "removed_at IS NULL", unique=True
    )
    op.create_table(
        "projects",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("slug", sa.String(64), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("description", sa.Text, nullable=False, server_default=""),
        sa.Column("git_url", sa.Text, nullable=False),
        sa.Column("sealed_git_url", sa.Text),
        sa.Column("branch", sa.String(255)),
        sa.Column("setup", sa.JSON, nullable=False),
        sa.Column("verify", sa.JSON, nullable=False),
        sa.Column("provider_id", Id, sa.ForeignKey("providers.id")),
        sa.Column("reviewer_id", Id),
        sa.Column("budget_usd_day", sa.Double),
        sa.Column("pull_requests", sa.String(16), nullable=False, server_default="never"),
        sa.Column("trailers", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("limits", sa.JSON, nullable=False, server_default="{}"),
        sa.Column("thinking", sa.String(8)),
        sa.Column("run_s", sa.Double),
        sa.Column("clone_s", sa.Double),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
        sa.Column("check_state", Id, nullable=False, server_default="unchecked"),
        sa.Column("check_order_id", Id),
        sa.Column("check_report", sa.JSON),
    )
    _index("projects", "organization_id")
    _partial_index("uq_projects_slug_alive", "projects", ["organization_id", "slug"], "removed_at IS NULL", unique=True)
    op.create_table(
        "modes",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("project_id", Id, sa.ForeignKey("projects.id")),
        sa.Column("name", sa.String(16), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("tools", sa.JSON, nullable=False),
        sa.Column("read_only", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("thinking", sa.String(8)),
        sa.Column("set_by", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    _index("modes", "organization_id")
    _partial_index("uq_modes_everywhere", "modes", ["organization_id", "name"], "project_id IS NULL", unique=True)
    op.create_index("uq_modes_project", "modes", ["organization_id", "project_id", "name"], unique=True)
    op.create_table(
        "profiles",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("organization_id", "name", name="uq_profiles_name"),
    )
    _index("profiles", "organization_id")


def _create_agents() -> None:
    op.create_table(
        "agents",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("instructions", sa.Text),
        sa.Column("instructions_path", sa.String(1024)),
        sa.Column("project_id", Id, sa.ForeignKey("projects.id")),
        sa.Column("boss_id", Id, sa.ForeignKey("agents.id")),
        sa.Column("max_iterations", sa.Integer, nullable=False),
        sa.Column("cost_limit", sa.Double),
        sa.Column("provider_id", Id, sa.ForeignKey("providers.id")),
        sa.Column("model", sa.String(255)),
        sa.Column("reviewer_id", Id),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("concurrency", sa.Integer, nullable=False),
        sa.Column("limits", sa.JSON, nullable=False, server_default="{}"),
        sa.Column("thinking", sa.String(8)),
        sa.Column("description", ForeignText, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
        sa.UniqueConstraint("organization_id", "name", name="uq_agents_name"),
    )
    _index("agents", "organization_id")


def _create_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("project_id", Id, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("title", sa.Text, nullable=False, server_default=""),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("approve", sa.String(16)),
        sa.Column("thinking", sa.String(8)),
        sa.Column("limits", sa.JSON, nullable=False, server_default="{}"),
        sa.Column("allow", sa.JSON, nullable=False),
        sa.Column("restack", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("leaf_id", Id),
        sa.Column("compact", sa.Text),
        sa.Column("left_leaf_id", Id),
        sa.Column("forked_from_id", Id),
        sa.Column("task_id", sa.String(32)),
        sa.Column("user_id", Id),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    _index("sessions", "organization_id")
    op.create_table(
        "drafts",
        _organization(),
        sa.Column("number", Seq, primary_key=True, autoincrement=True),
        sa.Column("author", Id, nullable=False),
        sa.Column("subject", sa.String(100), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("organization_id", "author", "subject", name="uq_drafts_subject"),
    )
    _index("drafts", "organization_id", "updated_at")


def _create_orders() -> None:
    op.create_table(
        "order_groups",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("user_id", Id),
        sa.Column("idempotency_key", sa.String(255)),
        sa.Column("request_hash", sa.String(64)),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("pick", sa.String(8)),
        sa.Column("rubric", sa.Text),
        sa.Column("base_commit", sa.String(64)),
        sa.Column("winner_id", Id),
        sa.Column("judge_id", Id),
        sa.Column("parallel", sa.Integer),
        sa.Column("begun_at", UtcDateTime),
        sa.Column("canceled_at", UtcDateTime),
        sa.UniqueConstraint("organization_id", "idempotency_key", name="uq_order_groups_idempotency"),
    )
    _index("order_groups", "organization_id")
    op.create_index("ix_order_groups_listed", "order_groups", ["organization_id", "kind", "created_at"])
    op.create_table(
        "orders",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("number", Seq, nullable=False),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("user_id", Id),
        sa.Column("project_id", Id, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("session_id", Id, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("provider_id", Id, sa.ForeignKey("providers.id"), nullable=False),
        sa.Column("model", sa.String(255), nullable=False),
        sa.Column("reviewer_id", Id),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("mode_definition", sa.JSON),
        sa.Column("thinking", sa.String(8)),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("approve", sa.String(16), nullable=False),
        sa.Column("allow", sa.JSON, nullable=False),
        sa.Column("verify", sa.JSON),
        sa.Column("profile", sa.String(64)),
        sa.Column("keep_raw", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("limits", sa.JSON, nullable=False),
        sa.Column("limit_sources", sa.JSON, nullable=False, server_default="{}"),
        sa.Column("on_limit", sa.String(8), nullable=False, server_default="stop"),
        sa.Column("plan_first", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("prompt", sa.Text, nullable=False),
        sa.Column("purpose", sa.String(16), nullable=False, server_default="work"),
        sa.Column("asked", sa.JSON),
        sa.Column("agent_id", Id),
        sa.Column("task_id", sa.String(32)),
        sa.Column("idempotency_key", sa.String(255)),
        sa.Column("request_hash", sa.String(64)),
        sa.Column("after", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("wanted_commit", sa.String(64)),
        sa.Column("merge_only", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("group_id", Id),
        sa.Column("group_key", sa.String(64)),
        sa.Column("wanted_drone_id", Id, sa.ForeignKey("drones.id")),
        sa.Column("wanted_labels", sa.JSON, nullable=False),
        sa.Column("drone_id", Id, sa.ForeignKey("drones.id")),
        sa.Column("run_id", Id),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("lost_runs", sa.Integer, nullable=False),
        sa.Column("max_attempts", sa.Integer, nullable=False),
        sa.Column("fresh_generation", sa.Integer, nullable=False, server_default="0"),
        sa.Column("renewed_generation", sa.Integer, nullable=False, server_default="0"),
        sa.Column("grant_until", UtcDateTime),
        sa.Column("status", sa.String(24), nullable=False),
        sa.Column("returned_because", sa.JSON),
        sa.Column("placed_because", sa.JSON),
        sa.Column("waits_because", sa.JSON),
        sa.Column("cancel_asked_by", sa.String(128)),
        sa.Column("cancel_text", ForeignText),
        sa.Column("ended_because", sa.JSON),
        sa.Column("exit_status", sa.String(32)),
        sa.Column("verification", sa.String(24)),
        sa.Column("follow_up", sa.String(16)),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("started_at", UtcDateTime),
        sa.Column("ended_at", UtcDateTime),
        sa.Column("run_again_at", UtcDateTime),
        sa.Column("traceparent", sa.String(55)),
        sa.Column("step_count", sa.Integer, nullable=False),
        sa.Column("response", ForeignText),
        sa.Column("branch", sa.String(255)),
        sa.Column("base_commit", sa.String(64)),
        sa.Column("head_commit", sa.String(64)),
        sa.Column("pushed", sa.Boolean, nullable=False),
        sa.Column("push_error", ForeignText),
        sa.Column("left_out", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("late_refs", sa.JSON, nullable=False),
        sa.Column("result_run_id", Id),
        sa.Column("patch_sha256", sa.String(64)),
        sa.Column("patch_bytes", sa.Integer, nullable=False),
        sa.Column("branch_patch_sha256", sa.String(64)),
        sa.Column("files_changed", sa.Integer),
        sa.Column("lines_added", sa.Integer),
        sa.Column("lines_removed", sa.Integer),
        sa.Column("bundle_sha256", sa.String(64)),
        sa.Column("pull_request", sa.JSON),
        sa.Column("receipt", sa.JSON),
        sa.UniqueConstraint("organization_id", "idempotency_key", name="uq_orders_idempotency"),
    )
    _index(
        "orders",
        "agent_id",
        "drone_id",
        "group_id",
        "number",
        "organization_id",
        "project_id",
        "session_id",
        "status",
        "task_id",
    )
    _partial_index("ix_orders_follow_up", "orders", ["organization_id", "ended_at"], "follow_up IS NOT NULL")
    op.create_index("ix_orders_listed", "orders", ["organization_id", "number"])
    op.create_index("ix_orders_mirrors", "orders", ["project_id", "drone_id"])
    op.create_index("ix_orders_state", "orders", ["organization_id", "status", "number"])
    _partial_index("ix_orders_unended", "orders", ["status", "drone_id"], "ended_at IS NULL")
    op.create_table(
        "batch_rows",
        _organization(),
        sa.Column("batch_id", Id, sa.ForeignKey("order_groups.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("request", sa.JSON, nullable=False),
        sa.Column("state", Id, nullable=False),
        sa.Column("order_id", Id),
        sa.Column("problem", ForeignText),
        sa.UniqueConstraint("batch_id", "key", name="uq_batch_rows_key"),
    )
    _index("batch_rows", "order_id", "organization_id")
    op.create_index("ix_batch_rows_state", "batch_rows", ["batch_id", "state", "number"])
    op.create_table(
        "stacks",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("session_id", Id, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("lower_id", Id, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
        sa.Column("due", sa.Boolean, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("session_id", "lower_id", name="uq_stacks_sessions"),
    )
    _index("stacks", "lower_id", "organization_id", "session_id")
    _partial_index("ix_stacks_due", "stacks", ["due"], "due")


def _create_conversations() -> None:
    op.create_table(
        "turns",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("session_id", Id, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
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
        sa.UniqueConstraint("order_id", name="uq_turns_order_id"),
    )
    _index("turns", "organization_id", "session_id")
    op.create_table(
        "session_entries",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("number", Seq, nullable=False),
        sa.Column("session_id", Id, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("parent_id", Id),
        sa.Column("kind", sa.String(24), nullable=False),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id")),
        sa.Column("data", sa.JSON, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
    )
    _index("session_entries", "number", "order_id", "organization_id", "session_id")
    op.create_table(
        "words",
        _organization(),
        sa.Column("number", Seq, primary_key=True, autoincrement=True),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("after", sa.Boolean, nullable=False),
        sa.Column("interrupt", sa.Boolean, nullable=False),
        sa.Column("run_id", Id),
        sa.Column("alone", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("take_back_at", UtcDateTime),
        sa.Column("taken_back", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("at", UtcDateTime, nullable=False),
    )
    _index("words", "order_id", "organization_id")


def _create_runs() -> None:
    op.create_table(
        "dispatches",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
        sa.Column("drone_id", Id, sa.ForeignKey("drones.id"), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("published_at", UtcDateTime),
        sa.Column("claimed_at", UtcDateTime),
        sa.Column("closed_at", UtcDateTime),
        sa.Column("allowance_number", sa.Integer, nullable=False, server_default="0"),
        sa.Column("money_awaited_since", UtcDateTime),
        sa.Column("money_asked_at", UtcDateTime),
        sa.Column("money_awaited_nusd", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("choice", sa.JSON),
    )
    _index("dispatches", "closed_at", "drone_id", "order_id", "organization_id", "published_at")
    op.create_index("ix_dispatches_open", "dispatches", ["organization_id", "closed_at"])
    op.create_table(
        "runs",
        sa.Column("id", Id, sa.ForeignKey("dispatches.id"), primary_key=True),
        _organization(),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
        sa.Column("drone_id", Id, sa.ForeignKey("drones.id"), nullable=False),
        sa.Column("agent_id", Id),
        sa.Column("task_id", sa.String(32)),
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
        sa.Column("doing_since", UtcDateTime),
        sa.Column("progress_at", UtcDateTime),
        sa.Column("waits_for", sa.String(16), nullable=False, server_default=""),
        sa.Column("unsuitable", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("resumed_run_id", Id),
        sa.Column("resumed_seq", sa.Integer, nullable=False, server_default="0"),
        sa.Column("last_seq", sa.Integer, nullable=False),
        sa.Column("tool_calls", sa.Integer, nullable=False),
        sa.Column("input_tokens", sa.Integer, nullable=False),
        sa.Column("thinking_tokens", sa.Integer, nullable=False),
        sa.Column("output_tokens", sa.Integer, nullable=False),
        sa.Column("cached_tokens", sa.Integer, nullable=False, server_default="0"),
        sa.Column("cost_usd", sa.Double),
        sa.Column("assumed_usd", sa.Double, nullable=False, server_default="0"),
        sa.Column("prices", sa.JSON),
        sa.Column("duration_ms", sa.Integer, nullable=False),
    )
    _index("runs", "drone_id", "order_id", "organization_id", "status", "task_id")
    op.create_index(
        "ix_runs_totals",
        "runs",
        [
            "organization_id",
            "agent_id",
            "task_id",
            "cost_usd",
            "assumed_usd",
            "input_tokens",
            "output_tokens",
            "duration_ms",
        ],
    )
    _partial_index("ix_runs_unended", "runs", ["drone_id"], "ended_at IS NULL")
    op.create_index(
        "ix_runs_unsuitable",
        "runs",
        ["ended_at"],
        sqlite_where=sa.text("unsuitable IS 1"),
        postgresql_where=sa.text("unsuitable"),
    )
    op.create_table(
        "steps",
        sa.Column("id", Seq, primary_key=True, autoincrement=True),
        _organization(),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
        sa.Column("run_id", Id, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("run_seq", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(24), nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("drone_at", UtcDateTime, nullable=False),
        sa.Column("late", sa.Boolean, nullable=False),
        sa.UniqueConstraint("order_id", "seq", name="uq_steps_order_seq"),
        sa.UniqueConstraint("run_id", "run_seq", name="uq_steps_run_seq"),
    )
    _index("steps", "organization_id")
    op.create_table(
        "blobs",
        _organization(),
        sa.Column("run_id", Id, sa.ForeignKey("dispatches.id"), primary_key=True),
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("sealed", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    _index("blobs", "organization_id")
    op.create_table(
        "waits",
        _organization(),
        sa.Column("number", Seq, primary_key=True, autoincrement=True),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
        sa.Column("run_id", Id, nullable=False),
        sa.Column("subject", ForeignText, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("text", ForeignText, nullable=False),
        sa.Column("choices", sa.JSON, nullable=False),
        sa.Column("default", ForeignText),
        sa.Column("deadline", UtcDateTime),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("details", sa.JSON, nullable=False),
        sa.Column("asked_at", UtcDateTime, nullable=False),
        sa.Column("answer", ForeignText),
        sa.Column("comment", ForeignText, nullable=False),
        sa.Column("answered_by", sa.String(128)),
        sa.Column("answered_at", UtcDateTime),
        sa.Column("decided_by", sa.String(16)),
        sa.Column("suspend_asked_at", UtcDateTime),
        sa.Column("suspended_at", UtcDateTime),
        sa.Column("closed_at", UtcDateTime),
        sa.UniqueConstraint("run_id", "subject", name="uq_waits_subject"),
    )
    _index("waits", "order_id", "organization_id")
    _partial_index("ix_waits_open", "waits", ["run_id"], "closed_at IS NULL")


def _create_tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", sa.String(32), primary_key=True),
        _organization(),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("assignee_id", Id, sa.ForeignKey("agents.id")),
        sa.Column("project_id", Id, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("session_id", Id, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("limits", sa.JSON, nullable=False),
        sa.Column("order_id", Id),
        sa.Column("hand_offs", sa.Integer, nullable=False),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("user_id", Id),
        sa.Column("queued_at", UtcDateTime, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("ended_at", UtcDateTime),
    )
    _index("tasks", "assignee_id", "organization_id")
    op.create_index("ix_tasks_listed", "tasks", ["organization_id", "number"])
    op.create_index("ix_tasks_queue", "tasks", ["organization_id", "status", "priority", "queued_at"])
    op.create_table(
        "comments",
        sa.Column("id", Seq, primary_key=True, autoincrement=True),
        _organization(),
        sa.Column("task_id", sa.String(32), sa.ForeignKey("tasks.id"), nullable=False),
        sa.Column("author", sa.String(64), nullable=False),
        sa.Column("agent_id", Id, sa.ForeignKey("agents.id")),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("kind", sa.String(24), nullable=False),
        sa.Column("text", ForeignText, nullable=False),
        sa.Column("run_id", Id),
        sa.Column("at", UtcDateTime, nullable=False),
    )
    _index("comments", "organization_id")
    op.create_index("ix_comments_thread", "comments", ["task_id", "id"])
    op.create_table(
        "memory_notes",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("project_id", Id, sa.ForeignKey("projects.id")),
        sa.Column("text", ForeignText, nullable=False),
        sa.Column("why", ForeignText, nullable=False),
        sa.Column("state", Id, nullable=False),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id")),
        sa.Column("user_id", Id),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("decided_at", UtcDateTime),
        sa.Column("decided_by", sa.String(128)),
    )
    _index("memory_notes", "order_id", "organization_id", "project_id")
    op.create_index("ix_memory_notes_listed", "memory_notes", ["organization_id", "state", "created_at"])
    op.create_table(
        "review_comments",
        _organization(),
        sa.Column("number", Seq, primary_key=True, autoincrement=True),
        sa.Column("id", Id, nullable=False),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
        sa.Column("author", Id, nullable=False),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("parent_id", Id),
        sa.Column("commit", sa.String(64)),
        sa.Column("path", ForeignText, nullable=False),
        sa.Column("side", sa.String(4), nullable=False),
        sa.Column("start_line", sa.Integer),
        sa.Column("end_line", sa.Integer),
        sa.Column("quote", ForeignText, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("sent_at", UtcDateTime),
        sa.Column("sent_order_id", Id, sa.ForeignKey("orders.id")),
        sa.Column("message_number", sa.BigInteger),
        sa.Column("verdict", sa.String(8)),
        sa.Column("answer", ForeignText),
        sa.Column("answered_at", UtcDateTime),
        sa.Column("answer_order_id", Id),
        sa.Column("answer_run_id", Id),
        sa.Column("answer_seq", sa.Integer),
        sa.Column("done_commit", sa.String(64)),
        sa.UniqueConstraint("id", name="uq_review_comments_id"),
    )
    _index("review_comments", "answer_order_id", "message_number", "order_id", "organization_id", "sent_order_id")


def _create_spending() -> None:
    op.create_table(
        "budgets",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("target_id", Id, nullable=False),
        sa.Column("per", sa.String(8), nullable=False),
        sa.Column("limit_nusd", sa.BigInteger, nullable=False),
        sa.Column("zone", sa.String(64), nullable=False),
        sa.Column("set_by", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
    )
    _index("budgets", "organization_id")
    _partial_index(
        "uq_budgets_alive",
        "budgets",
        ["organization_id", "kind", "target_id", "per"],
        "removed_at IS NULL",
        unique=True,
    )
    op.create_table(
        "budget_periods",
        sa.Column("budget_id", Id, sa.ForeignKey("budgets.id"), primary_key=True),
        sa.Column("begins_at", UtcDateTime, primary_key=True),
        sa.Column("reserved_nusd", sa.BigInteger, nullable=False),
        sa.Column("spent_nusd", sa.BigInteger, nullable=False),
        sa.Column("warned_at", UtcDateTime),
        sa.Column("refused_at", UtcDateTime),
        sa.Column("exhausted_at", UtcDateTime),
    )
    op.create_table(
        "spending_blocks",
        sa.Column("id", Seq, primary_key=True, autoincrement=True),
        _organization(),
        sa.Column("run_id", Id, sa.ForeignKey("dispatches.id"), nullable=False),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
        sa.Column("project_id", Id, nullable=False),
        sa.Column("session_id", Id, nullable=False),
        sa.Column("agent_id", Id),
        sa.Column("user_id", Id),
        sa.Column("drone_id", Id, nullable=False),
        sa.Column("model", sa.String(255), nullable=False),
        sa.Column("granted_at", UtcDateTime, nullable=False),
        sa.Column("granted_nusd", sa.BigInteger, nullable=False),
        sa.Column("spent_nusd", sa.BigInteger, nullable=False),
        sa.Column("reported_nusd", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("closed_at", UtcDateTime),
    )
    _index(
        "spending_blocks", "agent_id", "order_id", "organization_id", "project_id", "run_id", "session_id", "user_id"
    )
    op.create_index("ix_spending_blocks_granted", "spending_blocks", ["organization_id", "granted_at"])
    op.create_table(
        "prices",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("model", sa.String(255), nullable=False),
        sa.Column("input_usd", sa.Double),
        sa.Column("output_usd", sa.Double),
        sa.Column("cache_read_usd", sa.Double),
        sa.Column("cache_write_usd", sa.Double),
        sa.Column("discount_percent", sa.Double, nullable=False),
        sa.Column("set_by", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
    )
    _index("prices", "organization_id")
    _partial_index("uq_prices_alive", "prices", ["organization_id", "model"], "removed_at IS NULL", unique=True)


def _create_automation() -> None:
    op.create_table(
        "schedules",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("cron", sa.String(255), nullable=False),
        sa.Column("timezone", sa.String(64), nullable=False),
        sa.Column("missed", sa.String(8), nullable=False),
        sa.Column("task", sa.JSON, nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("next_at", UtcDateTime),
        sa.Column("last_at", UtcDateTime),
        sa.Column("last_task_id", sa.String(32)),
        sa.Column("last_error", ForeignText, nullable=False),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
    )
    _index("schedules", "next_at", "organization_id")
    _partial_index(
        "uq_schedules_name_alive", "schedules", ["organization_id", "name"], "removed_at IS NULL", unique=True
    )
    op.create_table(
        "triggers",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("sealed_secret", sa.Text, nullable=False),
        sa.Column("events", sa.JSON, nullable=False),
        sa.Column("task", sa.JSON, nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("last_at", UtcDateTime),
        sa.Column("last_task_id", sa.String(32)),
        sa.Column("last_error", ForeignText, nullable=False),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
    )
    _index("triggers", "organization_id")
    _partial_index("uq_triggers_name_alive", "triggers", ["organization_id", "name"], "removed_at IS NULL", unique=True)
    op.create_table(
        "trigger_deliveries",
        _organization(),
        sa.Column("trigger_id", Id, sa.ForeignKey("triggers.id"), primary_key=True),
        sa.Column("delivery", sa.String(128), primary_key=True),
        sa.Column("event", sa.String(128), nullable=False),
        sa.Column("task_id", sa.String(32)),
        sa.Column("outcome", ForeignText, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
    )
    _index("trigger_deliveries", "at", "organization_id")
    op.create_table(
        "webhooks",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("sealed_secret", sa.Text, nullable=False),
        sa.Column("events", sa.JSON, nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("failing_since", UtcDateTime),
        sa.Column("last_at", UtcDateTime),
        sa.Column("last_error", ForeignText, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
    )
    _index("webhooks", "organization_id")
    _partial_index("uq_webhooks_name_alive", "webhooks", ["organization_id", "name"], "removed_at IS NULL", unique=True)
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.String(40), primary_key=True),
        _organization(),
        sa.Column("webhook_id", Id, sa.ForeignKey("webhooks.id"), nullable=False),
        sa.Column("event", sa.String(64), nullable=False),
        sa.Column("data", sa.JSON, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("status_code", sa.Integer),
        sa.Column("error", ForeignText, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("next_at", UtcDateTime),
        sa.Column("done_at", UtcDateTime),
    )
    _index("webhook_deliveries", "organization_id", "webhook_id")
    op.create_index("ix_webhook_deliveries_due", "webhook_deliveries", ["done_at", "next_at"])
    op.create_table(
        "trace_exports",
        _organization(),
        sa.Column("number", Seq, primary_key=True, autoincrement=True),
        sa.Column("order_id", Id, nullable=False),
        sa.Column("began_at", UtcDateTime, nullable=False),
        sa.Column("ended_at", UtcDateTime, nullable=False),
        sa.Column("status", sa.String(24), nullable=False),
        sa.Column("exit_status", sa.String(32)),
        sa.Column("run_id", Id),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", UtcDateTime, nullable=False),
        sa.Column("given_up_at", UtcDateTime),
    )
    _index("trace_exports", "organization_id")
    op.create_index("ix_trace_exports_due", "trace_exports", ["given_up_at", "next_at"])


def _create_attention() -> None:
    op.create_table(
        "attention_choices",
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), primary_key=True),
        sa.Column("user_id", Id, primary_key=True),
        sa.Column("email", sa.Boolean, nullable=False),
        sa.Column("webhook_url", sa.Text),
        sa.Column("sealed_webhook_secret", sa.Text),
        sa.Column("kinds", sa.JSON, nullable=False),
        sa.Column("about", sa.String(8), nullable=False),
        sa.Column("email_error", ForeignText, nullable=False),
        sa.Column("webhook_error", ForeignText, nullable=False),
        sa.Column("last_message_at", UtcDateTime),
    )
    op.create_table(
        "push_subscriptions",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("user_id", Id, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("endpoint_hash", sa.String(64), nullable=False),
        sa.Column("sealed_subscription", sa.Text, nullable=False),
        sa.Column("last_error", ForeignText, nullable=False),
        sa.Column("last_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("endpoint_hash", name="uq_push_subscriptions_endpoint_hash"),
    )
    _index("push_subscriptions", "organization_id", "user_id")
    op.create_table(
        "push_keys",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("public_key", sa.String(128), nullable=False),
        sa.Column("sealed_private_key", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    op.create_table(
        "attention_notices",
        _organization(),
        sa.Column("number", Seq, primary_key=True, autoincrement=True),
        sa.Column("user_id", Id, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("subject", sa.String(120), nullable=False),
        sa.Column("title", ForeignText, nullable=False),
        sa.Column("text", ForeignText, nullable=False),
        sa.Column("page", sa.String(120), nullable=False),
        sa.Column("wait_number", sa.BigInteger),
        sa.Column("task_id", sa.String(32)),
        sa.Column("drone_id", Id),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("batch", Id),
        sa.Column("settled_at", UtcDateTime),
        sa.UniqueConstraint("organization_id", "user_id", "subject", name="uq_attention_notices_subject"),
    )
    _index("attention_notices", "batch", "organization_id")
    op.create_index("ix_attention_notices_open", "attention_notices", ["settled_at", "organization_id", "user_id"])
    op.create_table(
        "attention_messages",
        sa.Column("id", sa.String(40), primary_key=True),
        _organization(),
        sa.Column("user_id", Id, nullable=False),
        sa.Column("batch", Id, nullable=False),
        sa.Column("channel", sa.String(8), nullable=False),
        sa.Column("subscription_id", Id),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("error", ForeignText, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("next_at", UtcDateTime),
        sa.Column("done_at", UtcDateTime),
    )
    _index("attention_messages", "batch", "organization_id")
    op.create_index("ix_attention_messages_due", "attention_messages", ["done_at", "next_at"])
    op.create_table(
        "answer_links",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("user_id", Id, nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("wait_number", sa.BigInteger, nullable=False),
        sa.Column("asked_at", UtcDateTime, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("used_at", UtcDateTime),
        sa.UniqueConstraint("secret_hash", name="uq_answer_links_secret_hash"),
    )
    _index("answer_links", "expires_at", "organization_id")


def _create_code_hosts() -> None:
    op.create_table(
        "host_links",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("project_id", Id, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("repository", sa.String(255), nullable=False),
        sa.Column("sealed_secret", sa.Text, nullable=False),
        sa.Column("mention", sa.String(64), nullable=False),
        sa.Column("poll_seconds", sa.Integer, nullable=False),
        sa.Column("strangers", sa.String(8), nullable=False),
        sa.Column("max_follow_ups", sa.Integer, nullable=False),
        sa.Column("drone_id", Id, sa.ForeignKey("drones.id")),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("news_at", UtcDateTime),
        sa.Column("read_since", UtcDateTime, nullable=False),
        sa.Column("next_at", UtcDateTime, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("order_id", Id),
        sa.Column("last_at", UtcDateTime),
        sa.Column("last_error", ForeignText, nullable=False),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
    )
    _index("host_links", "organization_id", "project_id")
    _partial_index(
        "uq_host_links_name_alive", "host_links", ["organization_id", "name"], "removed_at IS NULL", unique=True
    )
    op.create_table(
        "host_users",
        _organization(),
        sa.Column("link_id", Id, sa.ForeignKey("host_links.id"), primary_key=True),
        sa.Column("login", sa.String(128), primary_key=True),
        sa.Column("account", sa.String(128)),
        sa.Column("user_id", Id, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    _index("host_users", "organization_id", "user_id")
    op.create_table(
        "host_threads",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("link_id", Id, sa.ForeignKey("host_links.id"), nullable=False),
        sa.Column("place", sa.String(32), nullable=False),
        sa.Column("session_id", Id),
        sa.Column("asked", sa.Boolean, nullable=False),
        sa.Column("follow_ups", sa.Integer, nullable=False),
        sa.Column("closed", sa.Boolean, nullable=False),
        sa.Column("active_at", UtcDateTime, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("link_id", "place", name="uq_host_threads_place"),
    )
    _index("host_threads", "organization_id", "session_id")
    op.create_table(
        "host_events",
        _organization(),
        sa.Column("link_id", Id, sa.ForeignKey("host_links.id"), primary_key=True),
        sa.Column("key", sa.String(192), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("place", sa.String(32), nullable=False),
        sa.Column("author", ForeignText, nullable=False),
        sa.Column("outcome", ForeignText, nullable=False),
        sa.Column("order_id", Id),
        sa.Column("at", UtcDateTime, nullable=False),
    )
    _index("host_events", "organization_id")
    op.create_index("ix_host_events_listed", "host_events", ["link_id", "at"])
    op.create_index("ix_host_events_order", "host_events", ["order_id"])
    op.create_table(
        "host_posts",
        sa.Column("id", Id, primary_key=True),
        _organization(),
        sa.Column("link_id", Id, sa.ForeignKey("host_links.id"), nullable=False),
        sa.Column("subject", sa.String(64), nullable=False),
        sa.Column("place", sa.String(32), nullable=False),
        sa.Column("reply_to", sa.String(128)),
        sa.Column("text", ForeignText),
        sa.Column("written", ForeignText, nullable=False),
        sa.Column("comment", sa.String(128)),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", UtcDateTime),
        sa.Column("error", ForeignText, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("link_id", "subject", name="uq_host_posts_subject"),
    )
    _index("host_posts", "organization_id")


def _insert_first_rows() -> None:
    organizations = sa.table(
        "organizations",
        *(sa.column(name) for name in ("id", "name", "description", "acronym")),
        sa.column("created_at", UtcDateTime),
    )
    row = {"id": new_id(), "name": "default", "description": "", "acronym": "DEFA", "created_at": datetime.now(UTC)}
    op.bulk_insert(organizations, [row])
    op.bulk_insert(sa.table("counters", sa.column("name"), sa.column("value")), [{"name": "orders", "value": 0}])


def _organization() -> sa.Column[str]:
    """The organization that a row belongs to."""
    return sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False)


def _index(table: str, *columns: str) -> None:
    for column in columns:
        op.create_index(f"ix_{table}_{column}", table, [column])


def _partial_index(name: str, table: str, columns: list[str], condition: str, *, unique: bool = False) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, unique=unique, sqlite_where=where, postgresql_where=where)
