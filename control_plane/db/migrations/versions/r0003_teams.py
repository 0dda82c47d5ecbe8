"""Teams: organizations of their own, agents, tasks and comments; schedules, triggers and webhooks; pull requests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

from control_plane.db.types import ForeignText, UtcDateTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

Id = sa.String(12)
TaskId = sa.String(32)
Seq = sa.BigInteger().with_variant(sa.Integer, "sqlite")
NEVER = "0"


def upgrade() -> None:
    _organizations()
    _who_serves_whom()
    _orders()
    _teams()
    _automation()
    _webhooks()


def downgrade() -> None:
    raise NotImplementedError("the tasks and their comments would be gone; restore a backup instead")


def _organizations() -> None:
    op.add_column("organizations", sa.Column("acronym", sa.String(16), nullable=False, server_default=""))
    op.add_column("organizations", sa.Column("last_task", sa.Integer, nullable=False, server_default=NEVER))
    op.add_column("organizations", sa.Column("project_id", Id))
    op.add_column("organizations", sa.Column("concurrency", sa.Integer, nullable=False, server_default="4"))
    op.add_column("organizations", sa.Column("max_hand_offs", sa.Integer, nullable=False, server_default="20"))
    op.add_column("organizations", sa.Column("paused_at", UtcDateTime))
    op.execute("UPDATE organizations SET acronym = 'DEFA' WHERE name = 'default'")
    # There was no way to make others; should somebody have made one in the database, it gets a name of its own.
    op.execute("UPDATE organizations SET acronym = 'ORG' || upper(id) WHERE acronym = ''")
    op.create_index("uq_organizations_acronym", "organizations", ["acronym"], unique=True)


def _who_serves_whom() -> None:
    for table in ("api_tokens", "login_links", "web_sessions"):
        op.add_column(table, sa.Column("everywhere", sa.Boolean, nullable=False, server_default=sa.false()))
        # Whoever was admin of the only organization there was, was admin of all.
        op.execute(sa.text(f"UPDATE {table} SET everywhere = true WHERE role = 'admin'"))  # noqa: S608 - our own names
    for table in ("join_tokens", "drones"):
        op.add_column(table, sa.Column("serves", sa.JSON, nullable=False, server_default="[]"))


def _orders() -> None:
    op.add_column("projects", sa.Column("pull_requests", sa.String(16), nullable=False, server_default="never"))
    op.add_column("projects", sa.Column("trailers", sa.JSON, nullable=False, server_default="[]"))
    op.add_column("sessions", sa.Column("task_id", TaskId))
    op.add_column("orders", sa.Column("purpose", sa.String(16), nullable=False, server_default="work"))
    op.add_column("orders", sa.Column("asked", sa.JSON))
    op.add_column("orders", sa.Column("agent_id", Id))
    op.add_column("orders", sa.Column("task_id", TaskId))
    op.add_column("orders", sa.Column("pull_request", sa.JSON))
    op.create_index("ix_orders_agent_id", "orders", ["agent_id"])
    op.create_index("ix_orders_task_id", "orders", ["task_id"])
    # What is open in one organization, among all that ever ended there.
    op.create_index("ix_orders_state", "orders", ["organization_id", "status"])
    # Which drones worked on a project before, without a look at all that they did.
    op.create_index("ix_orders_mirrors", "orders", ["project_id", "drone_id"])
    unended = sa.text("ended_at IS NULL")
    columns = ["status", "drone_id"]
    op.create_index("ix_orders_unended", "orders", columns, sqlite_where=unended, postgresql_where=unended)
    op.create_index("ix_dispatches_open", "dispatches", ["organization_id", "closed_at"])
    op.add_column("runs", sa.Column("agent_id", Id))
    op.add_column("runs", sa.Column("task_id", TaskId))
    op.create_index("ix_runs_task_id", "runs", ["task_id"])
    summed = ["organization_id", "agent_id", "task_id", "cost_usd", "input_tokens", "output_tokens", "duration_ms"]
    op.create_index("ix_runs_totals", "runs", summed)


def _owned(*columns: SchemaItem) -> tuple[SchemaItem, ...]:
    organization = sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False)
    return (*columns, organization)


def _text(name: str, kind: sa.types.TypeEngine[str] | sa.types.TypeDecorator[str]) -> sa.Column[str]:
    return sa.Column(name, kind, nullable=False)


def _teams() -> None:
    op.create_table(
        "agents",
        *_owned(
            sa.Column("id", Id, primary_key=True),
            _text("name", sa.String(64)),
            sa.Column("instructions", sa.Text),
            sa.Column("instructions_path", sa.String(1024)),
            sa.Column("project_id", Id, sa.ForeignKey("projects.id")),
            sa.Column("boss_id", Id, sa.ForeignKey("agents.id")),
            sa.Column("max_iterations", sa.Integer, nullable=False),
            sa.Column("cost_limit", sa.Double),
            sa.Column("provider_id", Id, sa.ForeignKey("providers.id")),
            sa.Column("model", sa.String(255)),
            sa.Column("labels", sa.JSON, nullable=False),
            sa.Column("concurrency", sa.Integer, nullable=False),
            _text("description", ForeignText()),
            sa.Column("created_at", UtcDateTime, nullable=False),
            sa.Column("removed_at", UtcDateTime),
            sa.UniqueConstraint("organization_id", "name", name="uq_agents_name"),
        ),
    )
    op.create_index("ix_agents_organization_id", "agents", ["organization_id"])
    op.create_table(
        "tasks",
        *_owned(
            sa.Column("id", TaskId, primary_key=True),
            sa.Column("number", sa.Integer, nullable=False),
            _text("title", sa.Text()),
            _text("description", sa.Text()),
            _text("status", sa.String(16)),
            sa.Column("assignee_id", Id, sa.ForeignKey("agents.id")),
            sa.Column("project_id", Id, sa.ForeignKey("projects.id"), nullable=False),
            sa.Column("session_id", Id, sa.ForeignKey("sessions.id"), nullable=False),
            _text("mode", sa.String(16)),
            sa.Column("priority", sa.Integer, nullable=False),
            sa.Column("limits", sa.JSON, nullable=False),
            sa.Column("order_id", Id),
            sa.Column("hand_offs", sa.Integer, nullable=False),
            _text("user", sa.String(128)),
            sa.Column("queued_at", UtcDateTime, nullable=False),
            sa.Column("created_at", UtcDateTime, nullable=False),
            sa.Column("updated_at", UtcDateTime, nullable=False),
            sa.Column("ended_at", UtcDateTime),
        ),
    )
    op.create_index("ix_tasks_organization_id", "tasks", ["organization_id"])
    op.create_index("ix_tasks_assignee_id", "tasks", ["assignee_id"])
    op.create_index("ix_tasks_queue", "tasks", ["organization_id", "status", "priority", "queued_at"])
    op.create_index("ix_tasks_listed", "tasks", ["organization_id", "number"])
    op.create_table(
        "comments",
        *_owned(
            sa.Column("id", Seq, primary_key=True, autoincrement=True),
            sa.Column("task_id", TaskId, sa.ForeignKey("tasks.id"), nullable=False),
            _text("author", sa.String(64)),
            sa.Column("agent_id", Id, sa.ForeignKey("agents.id")),
            _text("user", sa.String(128)),
            _text("kind", sa.String(24)),
            _text("text", ForeignText()),
            sa.Column("run_id", Id),
            sa.Column("at", UtcDateTime, nullable=False),
        ),
    )
    op.create_index("ix_comments_organization_id", "comments", ["organization_id"])
    op.create_index("ix_comments_thread", "comments", ["task_id", "id"])


def _unique_while_alive(table: str) -> None:
    alive = sa.text("removed_at IS NULL")
    name = f"uq_{table}_name_alive"
    op.create_index(name, table, ["organization_id", "name"], unique=True, sqlite_where=alive, postgresql_where=alive)
    op.create_index(f"ix_{table}_organization_id", table, ["organization_id"])


def _automation() -> None:
    shared = (
        ("task", sa.JSON, False),
        ("enabled", sa.Boolean, False),
        ("last_at", UtcDateTime, True),
        ("last_task_id", TaskId, True),
        ("last_error", ForeignText, False),
        ("user", sa.String(128), False),
        ("created_at", UtcDateTime, False),
        ("removed_at", UtcDateTime, True),
    )
    op.create_table(
        "schedules",
        *_owned(
            sa.Column("id", Id, primary_key=True),
            _text("name", sa.String(64)),
            _text("cron", sa.String(255)),
            _text("timezone", sa.String(64)),
            _text("missed", sa.String(8)),
            sa.Column("next_at", UtcDateTime),
            *(sa.Column(name, kind, nullable=optional) for name, kind, optional in shared),
        ),
    )
    _unique_while_alive("schedules")
    op.create_index("ix_schedules_next_at", "schedules", ["next_at"])
    op.create_table(
        "triggers",
        *_owned(
            sa.Column("id", Id, primary_key=True),
            _text("name", sa.String(64)),
            _text("kind", sa.String(16)),
            _text("sealed_secret", sa.Text()),
            sa.Column("events", sa.JSON, nullable=False),
            *(sa.Column(name, kind, nullable=optional) for name, kind, optional in shared),
        ),
    )
    _unique_while_alive("triggers")
    op.create_table(
        "trigger_deliveries",
        *_owned(
            sa.Column("trigger_id", Id, sa.ForeignKey("triggers.id"), primary_key=True),
            sa.Column("delivery", sa.String(128), primary_key=True),
            _text("event", sa.String(128)),
            sa.Column("task_id", TaskId),
            _text("outcome", ForeignText()),
            sa.Column("at", UtcDateTime, nullable=False),
        ),
    )
    op.create_index("ix_trigger_deliveries_organization_id", "trigger_deliveries", ["organization_id"])
    op.create_index("ix_trigger_deliveries_at", "trigger_deliveries", ["at"])


def _webhooks() -> None:
    op.create_table(
        "webhooks",
        *_owned(
            sa.Column("id", Id, primary_key=True),
            _text("name", sa.String(64)),
            _text("url", sa.Text()),
            _text("sealed_secret", sa.Text()),
            sa.Column("events", sa.JSON, nullable=False),
            sa.Column("enabled", sa.Boolean, nullable=False),
            sa.Column("failing_since", UtcDateTime),
            sa.Column("last_at", UtcDateTime),
            _text("last_error", ForeignText()),
            sa.Column("created_at", UtcDateTime, nullable=False),
            sa.Column("removed_at", UtcDateTime),
        ),
    )
    _unique_while_alive("webhooks")
    op.create_table(
        "webhook_deliveries",
        *_owned(
            sa.Column("id", sa.String(40), primary_key=True),
            sa.Column("webhook_id", Id, sa.ForeignKey("webhooks.id"), nullable=False),
            _text("event", sa.String(64)),
            sa.Column("data", sa.JSON, nullable=False),
            sa.Column("attempts", sa.Integer, nullable=False),
            sa.Column("status_code", sa.Integer),
            _text("error", ForeignText()),
            sa.Column("created_at", UtcDateTime, nullable=False),
            sa.Column("next_at", UtcDateTime),
            sa.Column("done_at", UtcDateTime),
        ),
    )
    op.create_index("ix_webhook_deliveries_organization_id", "webhook_deliveries", ["organization_id"])
    op.create_index("ix_webhook_deliveries_webhook_id", "webhook_deliveries", ["webhook_id"])
    op.create_index("ix_webhook_deliveries_due", "webhook_deliveries", ["done_at", "next_at"])
