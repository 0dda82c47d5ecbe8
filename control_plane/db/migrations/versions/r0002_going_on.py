"""Runs that go on from a checkpoint of an earlier one, and what is known of a run's progress."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NEVER = "0"
"""For the rows that are there already."""


def upgrade() -> None:
    op.add_column("orders", sa.Column("fresh_generation", sa.Integer, nullable=False, server_default=NEVER))
    op.add_column("orders", sa.Column("renewed_generation", sa.Integer, nullable=False, server_default=NEVER))
    op.add_column("runs", sa.Column("doing_since", UtcDateTime))
    op.add_column("runs", sa.Column("progress_at", UtcDateTime))
    op.add_column("runs", sa.Column("waits_for", sa.String(16), nullable=False, server_default=""))
    op.add_column("runs", sa.Column("resumed_run_id", sa.String(12)))
    op.add_column("runs", sa.Column("resumed_seq", sa.Integer, nullable=False, server_default=NEVER))
    op.add_column("blobs", sa.Column("sealed", sa.Boolean, nullable=False, server_default=sa.false()))


def downgrade() -> None:
    raise NotImplementedError("what ran since would lose where it went on from; restore a backup instead")
