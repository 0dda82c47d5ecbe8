"""The patch of an order's whole branch, as a pull request would show it, beside the patch of the order alone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("orders", sa.Column("branch_patch_sha256", sa.String(64)))


def downgrade() -> None:
    op.drop_column("orders", "branch_patch_sha256")
