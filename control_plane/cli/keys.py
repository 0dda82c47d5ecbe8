"""`fleet keys`: the master key of the control plane on this machine, keys of drones, passwords of broker and Flower."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client, server_file
from control_plane.cli.local_settings import DataDirOption, data_directory, no_fleet, own_settings, settings_of
from shared.errors import Conflict, FleetFault, Invalid
from shared.sockets import redis_tls
from shared.terminal.command_line import JsonFlag, confirmed, examples, group, print_json, print_table, say

if TYPE_CHECKING:
    from control_plane.core import Core
    from control_plane.services.master_key_rotation import Rotation

PANEL = "Setup"
BROKER_SECONDS = 90.0
"""Within this time, `fleet up` restarts its server and Flower."""


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("keys", "List and rotate the master key; rotate keys of drones, passwords of broker and Flower.")
    commands.command("ls", epilog=examples("fleet keys ls", "fleet keys ls --json"))(ls)
    rotation = group("rotate", "Replace keys while the fleet works.")
    rotation.command("master", epilog=examples("fleet keys rotate master"))(rotate_master)
    rotation.command("drone", epilog=examples("fleet keys rotate drone oka", "fleet keys rotate drone --all"))(
        rotate_drone
    )
    rotation.command("broker", epilog=examples("fleet keys rotate broker"))(rotate_broker)
    commands.add_typer(rotation)
    app.add_typer(commands, rich_help_panel=PANEL)


def ls(as_json: JsonFlag = False, data_dir: DataDirOption = None) -> None:
    """List the master keys, with their fingerprints and what each seals; never the keys."""
    from control_plane.cli.server_packages import require_server

    require_server("fleet keys ls")
    from control_plane.core.master_key import fingerprint
    from control_plane.services.master_key_rotation import count_sealed

    with _core(data_dir) as core:
        keys, found = core.vault.keys(), count_sealed(core)
    rows = [
        {
            "fingerprint": fingerprint(key),
            "use": "opens" if place else "seals and opens",
            "secrets": found.secrets[key],
            "checkpoints": found.checkpoints[key],
        }
        for place, key in enumerate(keys)
    ]
    if as_json:
        print_json({"master_keys": rows, "unreadable": found.unreadable})
        return
    print_table(["MASTER KEY", "USE", "SECRETS", "CHECKPOINTS"], [list(row.values()) for row in rows])
    _tell_unreadable(found.unreadable)


def rotate_master(as_json: JsonFlag = False, data_dir: DataDirOption = None) -> None:
    """Encrypt everything under a new master key, and remove the old one; takes 10 seconds or more.

    Running processes read the new key from the file, so orders continue. After an interruption, repeat the command.
    Processes on other machines must read the same file, not a copy.
    """
    from control_plane.cli.server_packages import require_server

    require_server("fleet keys rotate master")
    from control_plane.core.master_key import fingerprint
    from control_plane.services.master_key_rotation import rotate_master_key

    with _core(data_dir) as core:
        done = rotate_master_key(core, time.sleep, lambda step: say(_STEPS[step]))
        new = fingerprint(core.vault.keys()[0])
    if as_json:
        print_json({"fingerprint": new, **vars(done)})
        return
    _tell_rotated(new, done)


def rotate_drone(
    name: Annotated[str, typer.Argument(help="Name of the drone.", autocompletion=listed("drones:name"))] = "",
    every: Annotated[bool, typer.Option("--all", help="All drones of the organization.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="End the old keys at once; the drone must register again.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation of --force.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Replace a drone's key, token and broker password when its current runs have ended.

    The old ones are valid until the drone uses the new ones. A drone that is offline does it when it comes back.
    With --force, they end at once: the drone's orders go to other drones, and it must register again.
    """
    from control_plane.contract.declarations.drones import LIST, REVOKE_KEYS, ROTATE_KEYS
    from control_plane.contract.declarations.server import WHOAMI

    if bool(name) is every:
        raise Invalid("name one drone, or --all", code="E-USAGE", next="fleet keys rotate drone NAME")
    fleet = client(org)
    names = [name]
    if every:
        own = fleet.call(WHOAMI)["organization"]
        names = [drone["name"] for drone in fleet.call(LIST) if drone["organization"] == own]
    if force:
        confirmed(f"Revoke the keys of {', '.join(names)}?", yes=yes)
    asked = [fleet.call(REVOKE_KEYS if force else ROTATE_KEYS, name=each) for each in names]
    if as_json:
        print_json(asked if every else asked[0])
        return
    for drone in asked:
        say(_revoked(drone) if force else _replaced(drone))


def rotate_broker(as_json: JsonFlag = False, data_dir: DataDirOption = None) -> None:
    """Replace the password with which the `fleet up` on this machine uses its broker, and Flower's password.

    Its server and Flower restart for a few seconds; drones and orders continue. `fleet up` prints the new password of
    Flower.
    """
    data = data_directory(data_dir)
    if not data.broker.exists():
        raise no_fleet(data)
    pid = data.holder()
    if pid is None:
        data.remember(data.remembered().with_new_passwords())
        _tell_broker("Broker and Flower have new passwords from the next start on: fleet up", False, as_json=as_json)
        return
    local = server_file()
    if str(local.get("pid")) != str(pid) or not local.get("replaces_broker_password"):
        raise Conflict(
            f"the `fleet up` in {data.root} cannot replace the passwords while it runs",
            code="E-KEYS-RUNNING",
            why="it was started with another FLEET_HOME",
            next="fleet stop && fleet keys rotate broker && fleet up",
        )
    old = settings_of(data, os.environ)
    os.kill(pid, signal.SIGUSR1)
    _wait_until_refused(old.broker_url, str(old.ca_file or ""))
    _tell_broker("Broker and Flower have new passwords, and the old ones are refused.", True, as_json=as_json)


def _tell_broker(text: str, in_use: bool, *, as_json: bool) -> None:
    if as_json:
        print_json({"in_use": in_use})
    else:
        say(text)


def _wait_until_refused(broker_url: str, ca_file: str) -> None:
    import redis

    deadline = time.monotonic() + BROKER_SECONDS
    while time.monotonic() < deadline:
        try:
            with redis.Redis.from_url(broker_url, **redis_tls(broker_url, ca_file)) as broker:
                broker.ping()
        except redis.AuthenticationError:
            return
        except redis.ConnectionError:
            pass  # closed together with those that used the old password
        time.sleep(0.2)
    raise FleetFault(
        f"the old password is still valid after {BROKER_SECONDS:.0f} s",
        code="E-KEYS-TIMEOUT",
        why="server and Flower are still restarting, or could not restart",
        next="fleet logs",
    )


def _replaced(drone: dict[str, Any]) -> str:
    if drone["running"]:
        return f"Drone {drone['name']} replaces its keys when its current runs have ended ({drone['running']})."
    return f"Drone {drone['name']} replaces its keys now, or when it comes back."


def _revoked(drone: dict[str, Any]) -> str:
    return f"The keys of drone {drone['name']} are revoked. Next, on its machine: drone register --name {drone['name']}"


_STEPS = {
    "added": "Added a new master key to the file; the old one is still valid.",
    "resealed": "Encrypted everything under the new key. Waiting 10 s for what was being stored meanwhile.",
    "settled": "Nothing is encrypted under the old key any more.",
    "dropped": "Removed the old key from the file.",
}


def _tell_rotated(new: str, done: Rotation) -> None:
    say(f"Master key {new}: {done.secrets} secrets and {done.checkpoints} checkpoints were encrypted under it.")
    _tell_unreadable(done.unreadable)
    if done.dropped:
        say("Make a backup of the new key now: backups of the database from now on need it.")
    else:
        say("Next: remove the old key from FLEET_MASTER_KEY, and restart every process.")


def _tell_unreadable(count: int) -> None:
    if count:
        say(f"{count} secrets or checkpoints cannot be decrypted with any of these keys: enter those secrets again.")


@contextmanager
def _core(data_dir: Path | None) -> Iterator[Core]:
    """The parts of the control plane on this machine, without starting any of it."""
    from control_plane.server.assemble import open_core

    core = open_core(own_settings(data_dir))
    try:
        yield core
    finally:
        core.broker.close()
        core.database.dispose()
