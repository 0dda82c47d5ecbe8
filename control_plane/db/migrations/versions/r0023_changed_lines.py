"""How many files and lines the work of an order changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_COUNTS = ("files_changed", "lines_added", "lines_removed")


def upgrade() -> None:
    for name in _COUNTS:
        op.add_column("orders", sa.Column(name, sa.Integer))


def downgrade() -> None:
    for name in reversed(_COUNTS):
        op.drop_column("orders", name)
