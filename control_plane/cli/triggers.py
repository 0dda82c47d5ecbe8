"""`fleet trigger …`: tasks from what happens at a code host."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
