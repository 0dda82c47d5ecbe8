"""The inbox: what ended orders need from their user, drones that lack something, and titles of sessions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_NEEDED = sa.text("follow_up IS NOT NULL")
_UNSUITABLE = sa.text("unsuitable")


def upgrade() -> None:
    # The default lets the previous version, which runs during an update, continue to add sessions.
    op.add_column("sessions", sa.Column("title", sa.Text(), nullable=False, server_default=""))
    op.add_column("orders", sa.Column("follow_up", sa.String(16)))
    needed = ["organization_id", "ended_at"]
    op.create_index("ix_orders_follow_up", "orders", needed, sqlite_where=_NEEDED, postgresql_where=_NEEDED)
    op.create_index("ix_runs_unsuitable", "runs", ["ended_at"], sqlite_where=_UNSUITABLE, postgresql_where=_UNSUITABLE)


def downgrade() -> None:
    op.drop_index("ix_runs_unsuitable", "runs")
    op.drop_index("ix_orders_follow_up", "orders")
    op.drop_column("orders", "follow_up")
    op.drop_column("sessions", "title")
