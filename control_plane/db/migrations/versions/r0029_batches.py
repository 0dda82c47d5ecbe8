"""Batches: many orders from one file, of which a few are under way at a time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_ID = sa.String(12)
_ADDED = ("parallel", "begun_at", "canceled_at")


def upgrade() -> None:
    op.add_column("order_groups", sa.Column("parallel", sa.Integer()))
    op.add_column("order_groups", sa.Column("begun_at", UtcDateTime))
    op.add_column("order_groups", sa.Column("canceled_at", UtcDateTime))
    op.create_index("ix_order_groups_listed", "order_groups", ["organization_id", "kind", "created_at"])
    op.create_table(
        "batch_rows",
        sa.Column("batch_id", _ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("organization_id", _ID, nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("order_id", _ID),
        sa.Column("problem", sa.Text()),
        sa.PrimaryKeyConstraint("batch_id", "number", name="pk_batch_rows"),
        sa.ForeignKeyConstraint(["batch_id"], ["order_groups.id"], name="fk_batch_rows_batch_id_order_groups"),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name="fk_batch_rows_organization_id_organizations"
        ),
        sa.UniqueConstraint("batch_id", "key", name="uq_batch_rows_key"),
    )
    op.create_index("ix_batch_rows_organization_id", "batch_rows", ["organization_id"])
    op.create_index("ix_batch_rows_state", "batch_rows", ["batch_id", "state", "number"])
    op.create_index("ix_batch_rows_order_id", "batch_rows", ["order_id"])


def downgrade() -> None:
    op.drop_table("batch_rows")
    op.drop_index("ix_order_groups_listed", "order_groups")
    for name in reversed(_ADDED):
        op.drop_column("order_groups", name)
