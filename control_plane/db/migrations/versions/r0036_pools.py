"""Pools of ephemeral drones."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pools",
        sa.Column("id", sa.String(12), primary_key=True),
        sa.Column("organization_id", sa.String(12), sa.ForeignKey("organizations.id"), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("max_drones", sa.Integer, nullable=False),
        sa.Column("token_id", sa.String(12), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
    )
    op.create_index("ix_pools_organization_id", "pools", ["organization_id"])
    alive = sa.text("removed_at IS NULL")
    op.create_index(
        "uq_pools_name_alive",
        "pools",
        ["organization_id", "name"],
        unique=True,
        sqlite_where=alive,
        postgresql_where=alive,
    )
    op.add_column("join_tokens", sa.Column("pool_id", sa.String(12)))
    op.add_column("drones", sa.Column("pool_id", sa.String(12)))
    op.create_index("ix_drones_pool_id", "drones", ["pool_id"])


def downgrade() -> None:
    op.drop_index("ix_drones_pool_id", "drones")
    op.drop_column("drones", "pool_id")
    op.drop_column("join_tokens", "pool_id")
    op.drop_table("pools")
