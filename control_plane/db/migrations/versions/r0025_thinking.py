"""How much models think: a default of each provider, a setting of each session, and the level of each order."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("providers", sa.Column("thinking", sa.String(8), nullable=False, server_default="auto"))
    for table in ("sessions", "orders"):
        op.add_column(table, sa.Column("thinking", sa.String(8)))


def downgrade() -> None:
    for table in ("orders", "sessions", "providers"):
        op.drop_column(table, "thinking")
