"""What Alembic runs: the migrations, on the connection and in the transaction that it receives."""

from __future__ import annotations

from alembic import context

from control_plane.db.metadata import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    # SQLite cannot alter most of a table; a batch copies it.
    render_as_batch=True,
    compare_type=True,
)
context.run_migrations()
