"""Options that many commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from control_plane.cli.completion import listed

Org = Annotated[
    str | None,
    typer.Option(
        "--org",
        help="The organization.  [FLEET_ORG; default: default]",
        autocompletion=listed("organizations:name"),
    ),
]
"""The `--org` of every command that talks to a server."""
