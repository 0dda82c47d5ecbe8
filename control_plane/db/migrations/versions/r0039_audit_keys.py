"""Keys of the audit log are sealed for this purpose alone; what earlier versions signed confirms nothing.

Any text that the master key had sealed was taken for such a key, so who could write to the database could sign records
of their own. The records stay; the supervisor signs the newest one with a new key. A log that was pruned before has no
anchor any more: `fleet audit verify` reports its first record as missing.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("audit_seals", "audit_keys"):
        op.execute(sa.delete(sa.table(name)))


def downgrade() -> None:
    """Keys with a purpose are of no use to earlier versions, which would fail to sign with them."""
    upgrade()
