"""The drones that `fleet up` starts: registered with a join token, through the same interface as all others."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import drones, tokens
from control_plane.contract.declarations.tokens import JoinTokenRequest
from control_plane.server.embedded.children import without_fleet_secrets
from control_plane.server.embedded.data_dir import DataDir
from control_plane.server.embedded.parts import DRONE
from control_plane.server.embedded.plan import Plan
from shared.errors import FleetFault
from shared.states import DroneStatus

REGISTER_SECONDS = 60


def home_of(data: DataDir, number: int) -> tuple[str, Path]:
    """The name of embedded drone `number` (from 1) and its home."""
    name = f"local-{number}"
    return name, data.drones / name


def registered_ids(data: DataDir) -> list[str]:
    """The ids of the drones that were registered here, including by an earlier `fleet up`."""
    return [id_of(path.parent) for path in sorted(data.drones.glob("*/drone.json"))]


def register_missing(client: FleetClient, data: DataDir, plan: Plan) -> list[tuple[str, Path]]:
    """Original name and home of each of the drones, which work for every organization; new ones are registered first.

    So are those that were removed or whose keys were revoked. Those that know the server or the broker by another
    address are registered again under the name that they have now, which changes nothing else. Raises FleetFault, with
    the output of `drone register`, if one cannot be registered.
    """
    embedded = [home_of(data, number) for number in range(1, plan.options.drones + 1)]
    expected = (client.url, plan.public_broker_url, plan.options.ca_file)
    listed = by_id(client)
    for name, home in embedded:
        known = listed.get(id_of(home))
        if must_register(home, expected, known):
            _register(client, known["name"] if known else name, home, plan.options.ca_file)
    return embedded


def by_id(client: FleetClient) -> dict[str, dict[str, Any]]:
    """The documents of the living drones by their ids, which stay when drones are renamed."""
    return {drone["id"]: drone for drone in client.call(drones.LIST)}


def id_of(home: Path) -> str:
    """The id of the drone that is registered in this home; '' if there is none."""
    try:
        return str(json.loads((home / "drone.json").read_text())["drone_id"])
    except FileNotFoundError:
        return ""


def must_register(home: Path, addresses: tuple[str, str, str], known: Mapping[str, Any] | None) -> bool:
    """Whether the drone cannot work with what is in its home; `known`: its document, None if it was removed."""
    return known is None or known["keys_revoked_at"] is not None or _known_addresses(home) != addresses


def is_ready(known: Mapping[str, Any] | None) -> bool:
    """Whether the drone with this document runs and is heard, even if it takes no orders now."""
    return known is not None and known["status"] not in {DroneStatus.OFFLINE, DroneStatus.UNRESPONSIVE}


def _known_addresses(home: Path) -> tuple[str, str, str] | None:
    """The server's and the broker's address and the authorities that the drone knows; None if it is not registered."""
    try:
        known, secrets = (json.loads((home / name).read_text()) for name in ("drone.json", "credentials.json"))
    except FileNotFoundError:
        return None
    broker = urlsplit(secrets["broker_url"])
    return known["server_url"], f"{broker.scheme}://{broker.netloc.rpartition('@')[2]}/0", known.get("ca_file", "")


def _register(client: FleetClient, name: str, home: Path, ca_file: str) -> None:
    token = client.call(tokens.CREATE_JOIN, JoinTokenRequest(expires_s=120, uses=1, serves=["*"]))["token"]
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    done = subprocess.run(
        [
            *DRONE,
            "register",
            "--url",
            client.url,
            "--token",
            "-",
            "--name",
            name,
            *(["--ca", ca_file] if ca_file else []),
        ],
        input=f"{token}\n",
        capture_output=True,
        text=True,
        timeout=REGISTER_SECONDS,
        env={**without_fleet_secrets(), "DRONE_HOME": str(home)},
        check=False,
    )
    if done.returncode != 0:
        raise FleetFault(
            f"the embedded drone {name} could not be registered",
            code="E-UP-DRONE",
            why=done.stderr.strip()[-800:],
            next=f"DRONE_HOME={home} drone doctor",
        )
