"""Settings of runs at every level, modes of one's own, and messages to orders that can be taken back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_LIMITED = ("organizations", "projects", "agents", "sessions")
_THINKING = ("organizations", "projects", "agents")
_FLAGS = ("alone", "taken_back")


def upgrade() -> None:
    for table in _LIMITED:
        op.add_column(table, sa.Column("limits", sa.JSON, nullable=False, server_default="{}"))
    op.add_column("orders", sa.Column("limit_sources", sa.JSON, nullable=False, server_default="{}"))
    for table in _THINKING:
        op.add_column(table, sa.Column("thinking", sa.String(8)))
    for name in _FLAGS:
        op.add_column("words", sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("words", sa.Column("take_back_at", UtcDateTime))
    op.add_column("orders", sa.Column("mode_definition", sa.JSON))
    op.add_column("sessions", sa.Column("left_leaf_id", sa.String(12)))
    _create_modes()


def _create_modes() -> None:
    op.create_table(
        "modes",
        sa.Column("id", sa.String(12), nullable=False),
        sa.Column("project_id", sa.String(12)),
        sa.Column("name", sa.String(16), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("tools", sa.JSON, nullable=False),
        sa.Column("read_only", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("thinking", sa.String(8)),
        sa.Column("set_by", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("organization_id", sa.String(12), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_modes_project_id_projects"),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name="fk_modes_organization_id_organizations"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_modes"),
    )
    op.create_index("ix_modes_organization_id", "modes", ["organization_id"])
    op.create_index("uq_modes_project", "modes", ["organization_id", "project_id", "name"], unique=True)
    everywhere = sa.text("project_id IS NULL")
    op.create_index(
        "uq_modes_everywhere",
        "modes",
        ["organization_id", "name"],
        unique=True,
        sqlite_where=everywhere,
        postgresql_where=everywhere,
    )


def downgrade() -> None:
    op.drop_table("modes")
    op.drop_column("orders", "mode_definition")
    op.drop_column("sessions", "left_leaf_id")
    for name in ("take_back_at", *_FLAGS):
        op.drop_column("words", name)
    for table in _THINKING:
        op.drop_column(table, "thinking")
    op.drop_column("orders", "limit_sources")
    for table in _LIMITED:
        op.drop_column(table, "limits")
