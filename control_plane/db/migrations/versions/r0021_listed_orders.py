"""Indexes for lists of orders, newest first: of an organization, of a status, of a project."""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_orders_listed", "orders", ["organization_id", "number"])
    op.drop_index("ix_orders_state", "orders")
    op.create_index("ix_orders_state", "orders", ["organization_id", "status", "number"])


def downgrade() -> None:
    op.drop_index("ix_orders_listed", "orders")
    op.drop_index("ix_orders_state", "orders")
    op.create_index("ix_orders_state", "orders", ["organization_id", "status"])
