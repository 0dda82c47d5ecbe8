"""`fleet pull-request`: open one for an order or a task."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
