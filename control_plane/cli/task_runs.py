"""`fleet run …`: what agents did on tasks."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
