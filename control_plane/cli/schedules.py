"""`fleet schedule …`: tasks at the times of a cron line."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
