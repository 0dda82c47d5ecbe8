"""Sessions that are kept up to date with the ones below them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_ID = sa.String(12)
_REFERS = {"organization_id": "organizations", "session_id": "sessions", "lower_id": "sessions", "order_id": "orders"}


def upgrade() -> None:
    op.create_table(
        "stacks",
        sa.Column("id", _ID, nullable=False),
        *(sa.Column(name, _ID, nullable=False) for name in _REFERS),
        sa.Column("due", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_stacks"),
        sa.UniqueConstraint("session_id", "lower_id", name="uq_stacks_sessions"),
        *(
            sa.ForeignKeyConstraint([name], [f"{table}.id"], name=f"fk_stacks_{name}_{table}")
            for name, table in _REFERS.items()
        ),
    )
    for name in ("organization_id", "session_id", "lower_id"):
        op.create_index(f"ix_stacks_{name}", "stacks", [name])
    due = sa.text("due")
    op.create_index("ix_stacks_due", "stacks", ["due"], sqlite_where=due, postgresql_where=due)
    op.add_column("sessions", sa.Column("restack", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.add_column("orders", sa.Column("merge_only", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    op.drop_column("orders", "merge_only")
    op.drop_column("sessions", "restack")
    op.drop_table("stacks")
