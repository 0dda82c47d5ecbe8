"""The ticket that an order's change is for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision = "r0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("orders", sa.Column("ticket", sa.String(200)))


def downgrade() -> None:
    op.drop_column("orders", "ticket")
