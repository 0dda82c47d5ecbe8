"""`fleet mcp` and `fleet install-skill`: the fleet for other programs' models."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
