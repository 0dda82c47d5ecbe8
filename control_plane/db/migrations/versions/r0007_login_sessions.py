"""Browser sessions and login links name the API token that they come from, and sessions when and where they are used.

Those of earlier versions do not: they are not accepted any more, and their owners log in again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

Id = sa.String(12)


def upgrade() -> None:
    # Nullable or with a default of the server's: processes of the version before add rows without these columns.
    op.add_column("api_tokens", sa.Column("made_by", Id))
    op.add_column("login_links", sa.Column("token_id", Id))
    op.add_column("web_sessions", sa.Column("token_id", Id))
    op.add_column("web_sessions", sa.Column("browser_key_hash", sa.String(64)))
    op.add_column("web_sessions", sa.Column("last_used_at", UtcDateTime))
    op.add_column("web_sessions", sa.Column("address", sa.String(64), nullable=False, server_default=""))


def downgrade() -> None:
    for column in ("address", "last_used_at", "browser_key_hash", "token_id"):
        op.drop_column("web_sessions", column)
    op.drop_column("login_links", "token_id")
    op.drop_column("api_tokens", "made_by")
