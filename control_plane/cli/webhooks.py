"""`fleet webhook …`: who is told of what people wait for."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
