"""`fleet task …` and `fleet comment`: threads that agents and people work on."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
