"""How the models of a provider and its fallbacks take turns, and orders with checks of their own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("providers", sa.Column("rotation", sa.String(12), nullable=False, server_default="off"))
    op.add_column("orders", sa.Column("verify", sa.JSON))


def downgrade() -> None:
    op.drop_column("orders", "verify")
    op.drop_column("providers", "rotation")
