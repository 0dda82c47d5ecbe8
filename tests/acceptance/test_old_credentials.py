"""What was revoked or replaced is refused wherever it was good, while orders continue."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import orders, providers, tokens
from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.contract.declarations.providers import ProviderEdit
from control_plane.contract.declarations.tokens import ApiTokenRequest
from drone.installation.home import DroneHome
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.campaign, pytest.mark.hostile, pytest.mark.timeout(300), pytest.mark.apart]
Headers = dict[str, str]
ACCEPTED, REFUSED, AWAY = "accepted", "refused", "away"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


Door = Callable[[], str]
"""Uses a credential at one place; returns one of the answers above, or another one if the place is out of order."""


@pytest.fixture
def fleet(start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path) -> WholeFleet:
    """A fleet with one drone and Flower, whose model requires a key."""
    fleet = start_fleet(drones=1, options=("--flower-port", "0"))
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    with fleet.client() as client:
        client.call(providers.EDIT, ProviderEdit(api_key="sk-before"), name="scripted")
    return fleet


def test_no_old_credential_is_accepted_and_a_running_order_continues(fleet: WholeFleet) -> None:
    with fleet.client() as client:
        kim = client.call(tokens.CREATE_API, ApiTokenRequest(role="admin", name="kim"))
    running, drones_key = begun(fleet, kim["token"]), home_of_the_drone(fleet).private_key()
    queued = fleet.submit("Note it, script:note")["id"]

    doors = {
        **an_api_token_is_revoked(fleet, running, kim),
        **a_working_drone_is_told_to_replace_its_keys(fleet),
        **the_passwords_of_broker_and_flower_are_replaced(fleet),
    }
    master_key = (fleet.data / "master.key").read_text().strip()
    assert fleet.json("keys", "rotate", "master")["unreadable"] == 0
    assert master_key not in (fleet.data / "master.key").read_text()

    [workspace] = fleet.data.glob("drones/local-1/workspace/sessions/*/work")
    (workspace / "go").touch()
    later = fleet.submit("Note it, script:note")["id"]
    ended = [fleet.ended(each) for each in (running, queued, later)]
    assert [(order["status"], order["attempt"], len(order["runs"])) for order in ended] == [("succeeded", 1, 1)] * 3
    wait_until(lambda: flower_door(fleet)() == ACCEPTED)
    wait_until(lambda: not fleet.json("drone", "show", "local-1")["keys_replacing"], seconds=60)
    assert home_of_the_drone(fleet).private_key() != drones_key
    assert {what: ask() for what, ask in doors.items()} == dict.fromkeys(doors, REFUSED)


def home_of_the_drone(fleet: WholeFleet) -> DroneHome:
    return DroneHome(fleet.data / "drones" / "local-1")


def begun(fleet: WholeFleet, token: str) -> str:
    """An order of this token's holder, in the middle of a command."""
    with FleetClient(fleet.url, token) as client:
        order_id = str(client.call(orders.SUBMIT, SubmitRequest(prompt="Wait, script:gate", project="demo"))["id"])
    wait_until(lambda: "tool_call" in {step["kind"] for step in fleet.order(order_id)["steps"]}, seconds=60, every=0.5)
    return order_id


# --- what ends, and where it was good -------------------------------------------------------------


def an_api_token_is_revoked(fleet: WholeFleet, order_id: str, kim: dict[str, Any]) -> dict[str, Door]:
    url, who = fleet.url, bearer(kim["token"])
    events = f"{url}/api/v1/orders/{order_id}/events"
    used = {
        "API": http_door("GET", f"{url}/api/v1/orders", who),
        "page": http_door("GET", f"{url}/", who),
        "MCP": http_door("POST", f"{url}/mcp", who, json=INITIALIZE),
        "log-in": http_door("POST", f"{url}/login", data={"token": kim["token"]}),
        "new stream": http_door("GET", events, who),
        "open stream": open_stream_door(events, who),
    }
    end(fleet, used, "api-token", "revoke", kim["id"])
    return used


def a_working_drone_is_told_to_replace_its_keys(fleet: WholeFleet) -> dict[str, Door]:
    credentials = home_of_the_drone(fleet).credentials()
    used = {
        "drone's token": http_door("GET", f"{fleet.url}/api/v1/registrations/self", bearer(credentials.api_token)),
        "drone's password": broker_door(credentials.broker_url),
        "drone's open connection": open_broker_door(credentials.broker_url),
    }
    assert {ask() for ask in used.values()} == {ACCEPTED}
    # Its old keys end when its order has ended.
    assert fleet.json("keys", "rotate", "drone", "local-1")["keys_replacing"] is True
    return used


def the_passwords_of_broker_and_flower_are_replaced(fleet: WholeFleet) -> dict[str, Door]:
    known = json.loads((fleet.data / "up.json").read_text())
    broker_url = f"redis://control:{known['broker_password']}@127.0.0.1:{known['broker_port']}/0"
    used = {
        "broker's password": broker_door(broker_url),
        "open connection to the broker": open_broker_door(broker_url),
        "Flower's password": flower_door(fleet),
    }
    end(fleet, used, "keys", "rotate", "broker")
    return used


def end(fleet: WholeFleet, doors: dict[str, Door], *command: str) -> None:
    """Run the command that ends the credentials of these doors, and wait until each has refused once."""
    for ask in doors.values():
        wait_until(lambda ask=ask: ask() == ACCEPTED)
    done = fleet.fleet(*command)
    assert done.returncode == 0, done.stderr
    # Each is asked until its first refusal: log-ins are limited to 20 a minute.
    for ask in doors.values():
        wait_until(lambda ask=ask: ask() != ACCEPTED)


# --- doors ----------------------------------------------------------------------------------------


def bearer(token: str) -> Headers:
    return {"Authorization": f"Bearer {token}"}


def http_door(method: str, url: str, who: Headers | None = None, **request: Any) -> Door:
    headers = {"Accept": "application/json, text/event-stream", **(who or {})}

    def ask() -> str:
        try:
            with httpx.stream(method, url, headers=headers, timeout=60, trust_env=False, **request) as answer:
                accepted = answer.is_success or "set-cookie" in answer.headers
                status = answer.status_code
        except httpx.TransportError:
            return AWAY
        return ACCEPTED if accepted else REFUSED if status in {401, 409} else str(status)

    return ask


def open_stream_door(url: str, who: Headers) -> Door:
    """An event stream that is open; it is read until the server ends it."""
    receiving = threading.Event()

    def chunks() -> Iterator[bytes]:
        with httpx.stream("GET", url, headers=who, timeout=60, trust_env=False) as answer:
            yield from answer.raise_for_status().iter_bytes()

    def read() -> None:
        with suppress(httpx.HTTPError):
            for _ in chunks():
                receiving.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    return lambda: (ACCEPTED if receiving.is_set() else AWAY) if reader.is_alive() else REFUSED


def broker_door(url: str) -> Door:
    """A log-in to the broker."""

    def ask() -> str:
        try:
            with redis.Redis.from_url(url) as broker:
                broker.ping()
        except redis.AuthenticationError:
            return REFUSED
        except redis.ConnectionError:
            return AWAY
        return ACCEPTED

    return ask


def open_broker_door(url: str) -> Door:
    """A connection to the broker that logged in before; once it was closed, it tries to log in again."""
    connection = redis.Redis.from_url(url).connection_pool.get_connection()

    def ask() -> str:
        try:
            connection.send_command("PING")
            connection.read_response()
        except redis.ConnectionError:
            return REFUSED
        return ACCEPTED

    return ask


def flower_door(fleet: WholeFleet) -> Door:
    """Flower, with its present password."""
    known = json.loads((fleet.data / "up.json").read_text())
    url = f"http://127.0.0.1:{known['flower_port']}/flower/api/workers"
    return http_door("GET", url, auth=("fleet", known["flower_password"]))
