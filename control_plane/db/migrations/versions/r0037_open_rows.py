"""Indexes over the few rows that are open: what is asked all the time does not grow with what has ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

_UNENDED = sa.text("ended_at IS NULL")
_UNDONE = sa.text("done_at IS NULL")
_UNSUITABLE = sa.text("unsuitable")


def upgrade() -> None:
    op.create_index("ix_runs_unended", "runs", ["drone_id"], sqlite_where=_UNENDED, postgresql_where=_UNENDED)
    op.create_index("ix_inbox_undone", "inbox", ["drone_id"], sqlite_where=_UNDONE, postgresql_where=_UNDONE)
    if op.get_bind().dialect.name == "sqlite":
        # SQLite uses an index only for the expression of its condition.
        op.drop_index("ix_runs_unsuitable", "runs")
        op.create_index("ix_runs_unsuitable", "runs", ["ended_at"], sqlite_where=sa.text("unsuitable IS 1"))


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.drop_index("ix_runs_unsuitable", "runs")
        op.create_index("ix_runs_unsuitable", "runs", ["ended_at"], sqlite_where=_UNSUITABLE)
    op.drop_index("ix_inbox_undone", "inbox")
    op.drop_index("ix_runs_unended", "runs")
