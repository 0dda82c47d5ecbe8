"""Runs that wait for money are served in the order in which they began to wait."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("dispatches", sa.Column("money_awaited_since", UtcDateTime))
    op.add_column("dispatches", sa.Column("money_asked_at", UtcDateTime))
    op.add_column("dispatches", sa.Column("money_awaited_nusd", sa.BigInteger, nullable=False, server_default="0"))


def downgrade() -> None:
    for name in ("money_awaited_nusd", "money_asked_at", "money_awaited_since"):
        op.drop_column("dispatches", name)
