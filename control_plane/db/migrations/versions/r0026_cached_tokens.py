"""How much of the prompts of a run came from the provider's cache."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("cached_tokens", sa.Integer, nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("runs", "cached_tokens")
