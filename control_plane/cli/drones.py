"""`fleet drones` and `fleet drone show|drain|resume|remove`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.connection import Org, client
from shared.terminal.command_line import JsonFlag, confirmed, examples, group, print_json, print_table, put, say
from shared.terminal.output import printable

PANEL = "Drones"
Name = Annotated[str, typer.Argument(metavar="NAME", help="The drone's name.")]
Doc = dict[str, Any]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("drones", rich_help_panel=PANEL, epilog=examples("fleet drones --json"))(drones)
    commands = group("drone", "Look at one drone, or take it out of service.")
    commands.command("show", epilog=examples("fleet drone show NAME"))(show)
    commands.command("drain", epilog=examples("fleet drone drain NAME"))(drain)
    commands.command("resume", epilog=examples("fleet drone resume NAME"))(resume)
    commands.command("rm", epilog=examples("fleet drone remove NAME --yes"))(remove)
    app.add_typer(commands, rich_help_panel=PANEL)


def drones(as_json: JsonFlag = False, org: Org = None) -> None:
    """List the drones."""
    found = client(org).list_drones()
    if as_json:
        print_json(found)
        return
    columns = ("DRONE", "STATUS", "RUNNING", "QUEUED", "LABELS", "SANDBOX", "VERSION", "LAST SEEN")
    rows = [
        (
            drone["name"],
            drone["status"],
            f"{drone['running']}/{drone['concurrency']}",
            drone["queued"],
            labels(drone["labels"]),
            drone["sandbox"],
            drone["version"],
            drone["last_seen_at"],
        )
        for drone in found
    ]
    print_table(columns, rows, empty="no drone is registered yet; fleet token create prints a token to join with")


def show(name: Name, as_json: JsonFlag = False, org: Org = None) -> None:
    """Show one drone and what it is doing."""
    _tell(client(org).show_drone(name), as_json=as_json)


def drain(name: Name, as_json: JsonFlag = False, org: Org = None) -> None:
    """Let a drone finish what it holds and give it nothing new."""
    _tell(client(org).drain_drone(name), as_json=as_json)


def resume(name: Name, as_json: JsonFlag = False, org: Org = None) -> None:
    """Give a drained drone work again."""
    _tell(client(org).resume_drone(name), as_json=as_json)


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Remove a drone: its keys and its queue end at once, its history stays."""
    confirmed(f"Remove drone {name}?", yes=yes)
    drone = client(org).remove_drone(name)
    if as_json:
        print_json(drone)
    else:
        say(f"{name} is removed")


def labels(mapping: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(mapping.items())) or "-"


def _serves(organizations: list[str]) -> str:
    return "all organizations" if "*" in organizations else "also " + ", ".join(organizations)


def _tell(drone: Doc, *, as_json: bool) -> None:
    if as_json:
        print_json(drone)
        return
    lines = [
        f"drone     {drone['name']}  ({drone['id']})",
        f"status    {drone['status']}",
        f"running   {drone['running']} of {drone['concurrency']}, {drone['queued']} waiting in its queue",
        f"labels    {labels(drone['labels'])}",
        f"sandbox   {drone['sandbox']}",
        f"host      {drone['host']}, version {drone['version']}",
        *([f"serves    {_serves(drone['serves'])}"] if drone["serves"] else []),
        f"last seen {drone['last_seen_at'] or 'never'}",
        *([f"note      {drone['note']}"] if drone.get("note") else []),
        *(
            f"  {run.get('order_id', '')}: {printable(run.get('in_words') or run.get('doing', ''))}"
            for run in drone["doing"]
        ),
    ]
    put("\n".join(lines) + "\n")
