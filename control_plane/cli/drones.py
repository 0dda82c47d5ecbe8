"""`fleet drones`, and drones as text."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.common_options import Org
from control_plane.cli.connection import client
from shared.sizes import gigabytes
from shared.terminal.command_line import JsonFlag, examples, print_json, print_table, put
from shared.terminal.output import printable
from shared.terminal.watch import WatchFlag, watched

PANEL = "Drones"
Doc = dict[str, Any]


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("drones", rich_help_panel=PANEL, epilog=examples("fleet drones --json"))(drones)


def drones(
    mine: Annotated[bool, typer.Option("--mine", help="Only drones that you own.")] = False,
    watch: WatchFlag = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """List the drones."""
    from control_plane.contract.declarations.drones import LIST, DroneFilter

    fleet = client(org)
    show = print_json if as_json else print_drones
    watched(lambda: show(fleet.call(LIST, DroneFilter(mine=mine))), watch=watch, as_json=as_json)


def print_drones(drones: list[Doc]) -> None:
    """Print the drones as a table, and what is to be noted about them below it."""
    columns = ("DRONE", "STATUS", "OWNER", "POOL", "RUNNING", "QUEUED", "LABELS", "SANDBOX", "VERSION", "LAST SEEN")
    rows = [
        (
            drone["name"],
            drone["status"],
            drone.get("owner"),
            drone.get("pool"),
            f"{drone['running']}/{drone['concurrency']}",
            drone["queued"],
            labels(drone["labels"]),
            drone["sandbox"],
            drone["version"],
            drone["last_seen_at"],
        )
        for drone in drones
    ]
    print_table(columns, rows, empty="no drones yet; create a join token: fleet token add")
    for drone in drones:
        if drone.get("note"):
            put(printable(f"{drone['name']}: {drone['note']}") + "\n")


def drone_text(drone: Doc) -> str:
    """One drone and what its runs are doing."""
    lines = [
        f"drone     {drone['name']}  ({drone['id']})",
        f"status    {drone['status']}",
        *([f"owner     {printable(drone['owner'])}"] if drone.get("owner") else []),
        f"running   {drone['running']} of {drone['concurrency']}, {drone['queued']} queued",
        *([f"pool      {drone['pool']}; it leaves when it has nothing to do"] if drone.get("pool") else []),
        f"labels    {labels(drone['labels'])}",
        f"sandbox   {drone['sandbox']}",
        *([f"network   {_network(drone['network'])}"] if drone.get("network") else []),
        f"host      {drone['host']}, version {drone['version']}",
        *([f"machine   {_machine(drone['machine'])}"] if drone.get("machine") else []),
        f"keys      {_keys(drone)}",
        *([f"serves    {_serves(drone['serves'])}"] if drone["serves"] else []),
        f"last seen {drone['last_seen_at'] or 'never'}",
        *([f"note      {drone['note']}"] if drone.get("note") else []),
        *(
            f"  {run.get('order_id', '')}: {printable(run.get('in_words') or run.get('doing', ''))}"
            for run in drone["doing"]
        ),
    ]
    return "\n".join(lines) + "\n"


def _network(reach: str) -> str:
    from control_plane.contract.declarations.drones import NETWORK_WORDS

    return NETWORK_WORDS.get(reach, printable(reach))


def _machine(use: Doc) -> str:
    disk = f"{gigabytes(use['disk_free_mb'])} of {gigabytes(use['disk_mb'])} free on its disk"
    return f"CPU {use['cpu_percent']:.0f} %, memory {use['memory_percent']:.0f} %, {disk}"


def labels(mapping: dict[str, str]) -> str:
    """`gpu=yes,room=4`"""
    return ",".join(f"{key}={value}" for key, value in sorted(mapping.items())) or "-"


def _keys(drone: Doc) -> str:
    if drone["keys_revoked_at"]:
        return f"revoked at {drone['keys_revoked_at']}; next, there: drone register"
    waits = "; to be replaced when its runs have ended" if drone["keys_replacing"] else ""
    return f"of {drone['keys_made_at']}{waits}"


def _serves(organizations: list[str]) -> str:
    return "all organizations" if "*" in organizations else "also " + ", ".join(organizations)
