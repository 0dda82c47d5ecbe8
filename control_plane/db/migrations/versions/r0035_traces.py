"""Traces: where an order belongs in a trace of its sender, and the ends of orders that are not exported yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("orders", sa.Column("traceparent", sa.String(55)))
    op.add_column("orders", sa.Column("run_again_at", UtcDateTime))
    op.create_table(
        "trace_exports",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("organization_id", sa.String(12), sa.ForeignKey("organizations.id"), nullable=False),
        sa.Column("order_id", sa.String(12), nullable=False),
        sa.Column("began_at", UtcDateTime, nullable=False),
        sa.Column("ended_at", UtcDateTime, nullable=False),
        sa.Column("status", sa.String(24), nullable=False),
        sa.Column("exit_status", sa.String(32)),
        sa.Column("run_id", sa.String(12)),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", UtcDateTime, nullable=False),
        sa.Column("given_up_at", UtcDateTime),
    )
    op.create_index("ix_trace_exports_organization_id", "trace_exports", ["organization_id"])
    op.create_index("ix_trace_exports_due", "trace_exports", ["given_up_at", "next_at"])


def downgrade() -> None:
    op.drop_table("trace_exports")
    for column in ("run_again_at", "traceparent"):
        op.drop_column("orders", column)
