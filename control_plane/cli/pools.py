"""`fleet pool`: ephemeral drones, which a cloud or Kubernetes starts when orders wait."""

from __future__ import annotations

from typing import Annotated

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from shared.durations import parse_duration
from shared.terminal.command_line import JsonFlag, examples, parse_labels

Expires = Annotated[str, typer.Option("--expires", help="Lifetime of the token: 12h, 30d, 365d.")]


def add_others(group: typer.Typer) -> None:
    """The commands that print a token alone."""
    group.command("add", epilog=examples("fleet pool add burst --label cloud=yes --max-drones 20"))(add)
    group.command("rotate", epilog=examples("fleet pool rotate burst"))(rotate)


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The pool's name; its drones are named after it.")],
    label: Annotated[list[str] | None, typer.Option("--label", help="Label k=v fixed on its drones; repeats.")] = None,
    max_drones: Annotated[
        int, typer.Option("--max-drones", metavar="N", help="Maximum number of its drones at the same time.")
    ] = 10,
    expires: Expires = "365d",
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Add a pool and print only its token, with which `drone start --ephemeral` joins."""
    from control_plane.contract.declarations.pools import ADD, PoolRequest
    from control_plane.contract.validation.invalid_requests import checked

    fields = {
        "name": name,
        "labels": parse_labels(label or []),
        "max_drones": max_drones,
        "expires_s": parse_duration(expires),
    }
    request = checked(PoolRequest, fields, form="fleet pool add --help")
    print_answer(client(org).call(ADD, request), lambda pool: str(pool["token"]), as_json=as_json)


def rotate(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The pool's name.", autocompletion=listed("pools:name"))],
    expires: Expires = "365d",
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Replace a pool's token and print only the new one; no drone can join with the old one any more."""
    from control_plane.contract.declarations.pools import ROTATE, PoolRotation
    from control_plane.contract.validation.invalid_requests import checked

    request = checked(PoolRotation, {"expires_s": parse_duration(expires)}, form="fleet pool rotate --help")
    print_answer(client(org).call(ROTATE, request, name=name), lambda pool: str(pool["token"]), as_json=as_json)
