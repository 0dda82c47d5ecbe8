"""`fleet organization export|import`: an organization as a file."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from shared.errors import FleetFault, NotFound, Precondition
from shared.terminal.command_line import JsonFlag, examples, print_json, say
from shared.terminal.output import content_writer, printable

_CHUNK = 64 * 1024
_LAST = 1024 * 1024
"""Bytes at the end that are searched for the last line."""


def add_commands(commands: typer.Typer) -> None:
    """Register the commands in the group `organization`."""
    commands.command("export", epilog=examples("fleet organization export payments --output payments.jsonl"))(export)
    commands.command("import", epilog=examples("fleet organization import payments.jsonl --name payments_2"))(import_)


def export(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The organization's name.", autocompletion=listed("organizations:name")),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE|-", help="Output file (default: stdout).")
    ] = "-",
    org: Org = None,
) -> None:
    """Export an organization as JSON lines, without secrets."""
    chunks = client(org).export_organization(name)
    last = _written(chunks, content_writer()) if output == "-" else _into(Path(output), chunks)
    end = _end_of(last)
    rows = sum(end["counts"].values())
    say(f"exported {name}: {rows:,} rows, {end['totals']['runs']:,} runs")
    for left in end["left_out"]:
        say(f"not included: {printable(left)}")


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="A file written by `fleet organization export`.")],
    name: Annotated[str | None, typer.Option("--name", help="New name (default: the exported name).")] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Create an organization from an exported file, completely or not at all. Requires a token valid everywhere."""
    if file == "-":
        made = client(org).import_organization(_pieces(sys.stdin.buffer), name=name)
    else:
        try:
            with Path(file).open("rb") as source:
                made = client(org).import_organization(_pieces(source), name=name)
        except FileNotFoundError:
            raise NotFound(
                f"file not found: {file!r}", code="E-FILE-404", next="fleet organization export NAME"
            ) from None
        except OSError as error:
            raise Precondition(f"{file!r} cannot be read", code="E-FILE", why=str(error)) from error
    if as_json:
        print_json(made)
        return
    say(f"organization {made['name']} imported: {sum(made['tasks'].values()):,} tasks, {made['totals']['runs']:,} runs")
    for warning in made["warnings"]:
        say(f"note: {printable(warning)}")


def _into(path: Path, chunks: Iterable[bytes]) -> bytes:
    """Write next to `path` and move the file there when it is complete: a partial export never has the final name."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            last = _written(chunks, file.write)
        _end_of(last)
        draft.replace(path)
    except OSError as error:
        raise Precondition(f"{str(path)!r} cannot be written", code="E-FILE", why=str(error)) from error
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    return last


def _written(chunks: Iterable[bytes], write: Callable[[bytes], object]) -> bytes:
    """Write all chunks; returns the last bytes."""
    last = b""
    for chunk in chunks:
        write(chunk)
        last = (last + chunk)[-_LAST:]
    return last


def _end_of(last: bytes) -> dict[str, Any]:
    """The last line. Raises FleetFault if it is not the end record."""
    with suppress(ValueError):
        end = json.loads(last.rstrip(b"\n").rpartition(b"\n")[2])
        if last.endswith(b"\n") and isinstance(end, dict) and end.get("kind") == "end":
            return end
    raise FleetFault("the export is incomplete", code="E-EXPORT-CUT", next="repeat the export")


def _pieces(source: BinaryIO) -> Iterator[bytes]:
    while piece := source.read(_CHUNK):
        yield piece
