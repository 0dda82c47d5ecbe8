"""Orders that start after others or from a given commit, and groups of orders: graphs and races."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_ID = sa.String(12)
_ADDED = ("after", "wanted_commit", "group_id", "group_key")


def upgrade() -> None:
    op.create_table(
        "order_groups",
        sa.Column("id", _ID, nullable=False),
        sa.Column("organization_id", _ID, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("user_id", _ID),
        sa.Column("idempotency_key", sa.String(255)),
        sa.Column("request_hash", sa.String(64)),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("pick", sa.String(8)),
        sa.Column("rubric", sa.Text()),
        sa.Column("base_commit", sa.String(64)),
        sa.Column("winner_id", _ID),
        sa.Column("judge_id", _ID),
        sa.PrimaryKeyConstraint("id", name="pk_order_groups"),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name="fk_order_groups_organization_id_organizations"
        ),
        sa.UniqueConstraint("organization_id", "idempotency_key", name="uq_order_groups_idempotency"),
    )
    op.create_index("ix_order_groups_organization_id", "order_groups", ["organization_id"])
    op.add_column("orders", sa.Column("after", sa.JSON, nullable=False, server_default="[]"))
    op.add_column("orders", sa.Column("wanted_commit", sa.String(64)))
    op.add_column("orders", sa.Column("group_id", _ID))
    op.add_column("orders", sa.Column("group_key", sa.String(64)))
    op.create_index("ix_orders_group_id", "orders", ["group_id"])


def downgrade() -> None:
    op.drop_index("ix_orders_group_id", table_name="orders")
    for name in reversed(_ADDED):
        op.drop_column("orders", name)
    op.drop_table("order_groups")
