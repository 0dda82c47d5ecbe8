"""A drone's keys are replaced: the next ones, valid beside its own until it uses them; and one that was revoked."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_COLUMNS: dict[str, Any] = {
    "next_public_key": sa.String(64),
    "next_token_hash": sa.String(64),
    "next_broker_password_hash": sa.String(64),
    "rotation_asked_at": UtcDateTime,
    "keys_made_at": UtcDateTime,
    "revoked_public_key": sa.String(64),
    "keys_revoked_at": UtcDateTime,
}


def upgrade() -> None:
    for name, kind in _COLUMNS.items():
        op.add_column("drones", sa.Column(name, kind, nullable=True))
    op.create_index("ix_drones_next_token_hash", "drones", ["next_token_hash"])
    op.create_index("ix_drones_revoked_public_key", "drones", ["revoked_public_key"])


def downgrade() -> None:
    op.drop_index("ix_drones_revoked_public_key", "drones")
    op.drop_index("ix_drones_next_token_hash", "drones")
    for name in _COLUMNS:
        op.drop_column("drones", name)
