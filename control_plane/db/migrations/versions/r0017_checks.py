"""Checks: whether a provider and a project were tried, and with what result; drones on which an order cannot run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_TESTED = ("providers", "projects")


def upgrade() -> None:
    # The defaults let the previous version, which runs during an update, continue to add rows.
    op.add_column("runs", sa.Column("unsuitable", sa.Boolean(), nullable=False, server_default=sa.false()))
    for table in _TESTED:
        op.add_column(table, sa.Column("check_state", sa.String(12), nullable=False, server_default="unchecked"))
        op.add_column(table, sa.Column("check_order_id", sa.String(12)))
        op.add_column(table, sa.Column("check_report", sa.JSON()))


def downgrade() -> None:
    for table in _TESTED:
        for column in ("check_report", "check_order_id", "check_state"):
            op.drop_column(table, column)
    op.drop_column("runs", "unsuitable")
