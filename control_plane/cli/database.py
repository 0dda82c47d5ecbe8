"""`fleet db upgrade|status`: the schema of the database that FLEET_DATABASE_URL names."""

from __future__ import annotations

import typer

from shared.terminal.command_line import JsonFlag, examples, group, print_json, say

PANEL = "Run"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("db", "Inspect and upgrade the database.")
    commands.command("upgrade", epilog=examples("fleet db upgrade"))(upgrade)
    commands.command("status", epilog=examples("fleet db status"))(status)
    app.add_typer(commands, rich_help_panel=PANEL)


def upgrade(as_json: JsonFlag = False) -> None:
    """Upgrade the database schema to this version."""
    from control_plane.cli.server_packages import require_server

    require_server("fleet db upgrade")
    from control_plane.core.settings import read_settings
    from control_plane.db.upgrade import apply_migrations

    applied = apply_migrations(read_settings().database_url)
    if as_json:
        print_json({"applied": applied})
    else:
        say(f"applied: {', '.join(applied)}" if applied else "the schema is up to date")


def status(as_json: JsonFlag = False) -> None:
    """Show the schema revision and whether migrations are pending."""
    from control_plane.cli.server_packages import require_server

    require_server("fleet db status")
    from control_plane.core.settings import read_settings
    from control_plane.db.engine import Database
    from control_plane.db.upgrade import current_revision, pending_migrations

    database = Database(read_settings().database_url)
    revision, pending = current_revision(database), pending_migrations(database)
    if as_json:
        print_json({"revision": revision, "pending": pending})
    else:
        state = "; run fleet db upgrade" if pending else " (up to date)"
        say(f"schema revision: {revision or 'none'}{state}")
