"""`fleet organization …`: the isolated units, and who works in them."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
