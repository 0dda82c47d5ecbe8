"""Reviewers of changes, notes for later orders, raw answers that are kept on request, and profiles."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import ForeignText, UtcDateTime

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

_REVIEWED = ("organizations", "projects", "agents", "orders")


def upgrade() -> None:
    for table in _REVIEWED:
        op.add_column(table, sa.Column("reviewer_id", sa.String(12)))
    op.add_column("orders", sa.Column("keep_raw", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("orders", sa.Column("profile", sa.String(64)))
    op.create_table(
        "profiles",
        sa.Column("id", sa.String(12), primary_key=True),
        sa.Column("organization_id", sa.String(12), sa.ForeignKey("organizations.id"), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("organization_id", "name", name="uq_profiles_name"),
    )
    op.create_index("ix_profiles_organization_id", "profiles", ["organization_id"])
    op.create_table(
        "memory_notes",
        sa.Column("id", sa.String(12), primary_key=True),
        sa.Column("organization_id", sa.String(12), sa.ForeignKey("organizations.id"), nullable=False),
        sa.Column("project_id", sa.String(12), sa.ForeignKey("projects.id")),
        sa.Column("text", ForeignText, nullable=False),
        sa.Column("why", ForeignText, nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("order_id", sa.String(12), sa.ForeignKey("orders.id")),
        sa.Column("user_id", sa.String(12)),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("decided_at", UtcDateTime),
        sa.Column("decided_by", sa.String(128)),
    )
    op.create_index("ix_memory_notes_listed", "memory_notes", ["organization_id", "state", "created_at"])
    for column in ("organization_id", "project_id", "order_id"):
        op.create_index(f"ix_memory_notes_{column}", "memory_notes", [column])


def downgrade() -> None:
    op.drop_table("memory_notes")
    op.drop_table("profiles")
    for column in ("profile", "keep_raw"):
        op.drop_column("orders", column)
    for table in reversed(_REVIEWED):
        op.drop_column(table, "reviewer_id")
