"""Connections to code hosts: mapped users, threads, events, and the fleet's comments there."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)


def _id(name: str, *more: Any, **options: Any) -> sa.Column[str]:
    return sa.Column(name, sa.String(12), *more, **options)


def _owner(table: str) -> sa.Column[str]:
    key = sa.ForeignKey("organizations.id", name=f"fk_{table}_organization_id_organizations")
    return _id("organization_id", key, nullable=False)


def _link(table: str, **options: Any) -> sa.Column[str]:
    key = sa.ForeignKey("host_links.id", name=f"fk_{table}_link_id_host_links")
    return _id("link_id", key, nullable=False, **options)


def upgrade() -> None:
    op.create_table(
        "host_links",
        _id("id", nullable=False),
        _owner("host_links"),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        _id("project_id", sa.ForeignKey("projects.id", name="fk_host_links_project_id_projects"), nullable=False),
        sa.Column("repository", sa.String(255), nullable=False),
        sa.Column("sealed_secret", sa.Text, nullable=False),
        sa.Column("mention", sa.String(64), nullable=False),
        sa.Column("poll_seconds", sa.Integer, nullable=False),
        sa.Column("strangers", sa.String(8), nullable=False),
        sa.Column("max_follow_ups", sa.Integer, nullable=False),
        _id("drone_id", sa.ForeignKey("drones.id", name="fk_host_links_drone_id_drones")),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("news_at", _TIME),
        sa.Column("read_since", _TIME, nullable=False),
        sa.Column("next_at", _TIME, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        _id("order_id"),
        sa.Column("last_at", _TIME),
        sa.Column("last_error", sa.Text, nullable=False),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("removed_at", _TIME),
        sa.PrimaryKeyConstraint("id", name="pk_host_links"),
    )
    alive = sa.text("removed_at IS NULL")
    op.create_index(
        "uq_host_links_name_alive",
        "host_links",
        ["organization_id", "name"],
        unique=True,
        sqlite_where=alive,
        postgresql_where=alive,
    )
    op.create_index("ix_host_links_project_id", "host_links", ["project_id"])
    op.create_table(
        "host_users",
        _owner("host_users"),
        _link("host_users"),
        sa.Column("login", sa.String(128), nullable=False),
        sa.Column("account", sa.String(128)),
        _id("user_id", nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("link_id", "login", name="pk_host_users"),
    )
    op.create_index("ix_host_users_user_id", "host_users", ["user_id"])
    op.create_table(
        "host_threads",
        _id("id", nullable=False),
        _owner("host_threads"),
        _link("host_threads"),
        sa.Column("place", sa.String(32), nullable=False),
        _id("session_id"),
        sa.Column("asked", sa.Boolean, nullable=False),
        sa.Column("follow_ups", sa.Integer, nullable=False),
        sa.Column("closed", sa.Boolean, nullable=False),
        sa.Column("active_at", _TIME, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_host_threads"),
        sa.UniqueConstraint("link_id", "place", name="uq_host_threads_place"),
    )
    op.create_index("ix_host_threads_session_id", "host_threads", ["session_id"])
    op.create_table(
        "host_events",
        _owner("host_events"),
        _link("host_events"),
        sa.Column("key", sa.String(192), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("place", sa.String(32), nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        _id("order_id"),
        sa.Column("at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("link_id", "key", name="pk_host_events"),
    )
    op.create_index("ix_host_events_listed", "host_events", ["link_id", "at"])
    op.create_index("ix_host_events_order", "host_events", ["order_id"])
    op.create_table(
        "host_posts",
        _id("id", nullable=False),
        _owner("host_posts"),
        _link("host_posts"),
        sa.Column("subject", sa.String(64), nullable=False),
        sa.Column("place", sa.String(32), nullable=False),
        sa.Column("reply_to", sa.String(128)),
        sa.Column("text", sa.Text),
        sa.Column("written", sa.Text, nullable=False),
        sa.Column("comment", sa.String(128)),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", _TIME),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_host_posts"),
        sa.UniqueConstraint("link_id", "subject", name="uq_host_posts_subject"),
    )
    for table in ("host_links", "host_users", "host_threads", "host_events", "host_posts"):
        op.create_index(f"ix_{table}_organization_id", table, ["organization_id"])


def downgrade() -> None:
    for table in ("host_posts", "host_events", "host_threads", "host_users", "host_links"):
        op.drop_table(table)
