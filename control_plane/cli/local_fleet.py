"""`fleet logs, stop`: the `fleet up` on this machine, from another terminal."""

from __future__ import annotations

import os
import signal
import time
from typing import Annotated

import typer

from control_plane.cli.local_settings import DataDirOption, data_directory
from shared.errors import FleetFault, Forbidden, NotFound
from shared.terminal.command_line import examples, put, say

PANEL = "Run"
STOP_SECONDS = 120.0
"""Drones hand back their orders first, and each part has its own time limit."""
_TICK = 0.2


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("logs", rich_help_panel=PANEL, epilog=examples("fleet logs", "fleet logs server --follow"))(logs)
    app.command("stop", rich_help_panel=PANEL, epilog=examples("fleet stop"))(stop)


def logs(
    part: Annotated[str, typer.Argument(help="broker, server, flower or a drone; default: all parts.")] = "",
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, max=100_000, help="Last lines of each part.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines until Ctrl-C.")] = False,
    data_dir: DataDirOption = None,
) -> None:
    """Print the logs of the `fleet up` on this machine, even after it has ended."""
    from control_plane.server.embedded import logs as files

    data = data_directory(data_dir)
    found = files.logs_of(data)
    if part and part not in found:
        raise NotFound(
            f"no log of part {part[:40]!r} in {data.logs}",
            code="E-LOGS-PART",
            why=f"available: {', '.join(found)}" if found else "no fleet was started with this data directory",
            next="fleet logs    or   fleet up",
        )
    chosen = {part: found[part]} if part else found
    for name, path in chosen.items():
        text = files.last_lines(path, lines)
        put("".join(_labeled(name, text, many=len(chosen) > 1)))
    if follow:
        for name, text in files.new_lines(chosen):
            put("".join(_labeled(name, text, many=len(chosen) > 1)))


def stop(data_dir: DataDirOption = None) -> None:
    """Stop the `fleet up` on this machine, like Ctrl-C in its terminal; drones return their orders."""
    data = data_directory(data_dir)
    pid = data.holder()
    if pid is None:
        say(f"No fleet is running with the data directory {data.root}.")
        return
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError as error:
        raise Forbidden(
            f"the fleet in {data.root} belongs to another user (process {pid})",
            code="E-STOP-USER",
            next="run this command as that user",
        ) from error
    say(f"Stopping the fleet in {data.root} (process {pid})")
    deadline = time.monotonic() + STOP_SECONDS
    while data.holder() == pid:
        if time.monotonic() > deadline:
            raise FleetFault(
                f"the fleet is still stopping after {STOP_SECONDS:.0f} s",
                code="E-STOP-TIMEOUT",
                why=f"process {pid} has not ended",
                next="fleet logs",
            )
        time.sleep(_TICK)
    say("Stopped. Orders and results are kept. Start again: fleet up")


def _labeled(name: str, text: str, *, many: bool) -> list[str]:
    return [f"{name:<10} | {line}\n" if many else f"{line}\n" for line in text.splitlines()]
