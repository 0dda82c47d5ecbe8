"""What a run reported as spent is kept apart from what is taken as spent while it is lost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("spending_blocks", sa.Column("reported_nusd", sa.BigInteger, nullable=False, server_default="0"))
    op.execute("UPDATE spending_blocks SET reported_nusd = spent_nusd")


def downgrade() -> None:
    op.drop_column("spending_blocks", "reported_nusd")
