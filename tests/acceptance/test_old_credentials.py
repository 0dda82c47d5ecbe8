"""What was revoked or replaced is refused wherever it was good, while an order continues."""

from __future__ import annotations

import base64
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from control_plane.client.fleet import FleetClient
from control_plane.declarations import providers, tokens
from control_plane.declarations.providers import ProviderEdit
from control_plane.declarations.tokens import ApiTokenRequest, JoinTokenRequest
from drone.installation.home import DroneHome
from drone.model.scripted.server import ScriptedServer
from shared.envelope import new_private_key, public_key
from shared.events import ABILITIES
from tests.support import wait_until, warm_processes
from tests.support.fleet import BROWSER_KEY, KEY_HEADER
from tests.support.repositories import calc_project
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.timeout(300), pytest.mark.apart]
Headers = dict[str, str]
ACCEPTED, REFUSED, AWAY = "accepted", "refused", "away"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@dataclass
class Door:
    """One place where one credential is good until it ends."""

    what: str
    ask: Callable[[], str]
    """Uses the credential; returns one of the answers above, or another one if the place is out of order."""

    def accepts(self) -> bool:
        return self.ask() == ACCEPTED


@dataclass
class Work:
    """An order that runs until it is released."""

    fleet: WholeFleet
    order_id: str

    def release(self) -> None:
        [workspace] = self.fleet.data.glob("drones/local-1/workspace/sessions/*/work")
        (workspace / "go").touch()


@pytest.fixture
def fleet(start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path) -> WholeFleet:
    """A fleet with one drone and Flower, whose model requires a key."""
    fleet = start_fleet(drones=1, options=("--flower-port", "0"))
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    with fleet.client() as client:
        client.call(providers.EDIT, ProviderEdit(api_key="sk-before"), name="scripted")
    return fleet


def test_no_old_credential_is_accepted_and_a_running_order_continues(fleet: WholeFleet, tmp_path: Path) -> None:
    with fleet.client() as client:
        kim = client.call(tokens.CREATE_API, ApiTokenRequest(role="admin", name="kim"))
    work = begun(fleet, kim["token"])

    doors = [
        *api_token_is_revoked(work, kim),
        *browser_is_logged_out(work),
        *drone_is_revoked(fleet),
        *passwords_are_replaced(fleet),
        *master_key_is_replaced(fleet, tmp_path / "old.key"),
    ]

    work.release()
    order = fleet.ended(work.order_id)
    assert (order["status"], order["attempt"], len(order["runs"])) == ("succeeded", 1, 1)
    assert fleet.ended(fleet.submit("Note it, script:note")["id"])["status"] == "succeeded"
    wait_until(flower_door(fleet).accepts, seconds=60)
    assert {door.what: door.ask() for door in doors} == {door.what: REFUSED for door in doors}
    assert len(doors) > 20


def begun(fleet: WholeFleet, token: str) -> Work:
    """An order of this token's holder, in the middle of a command."""
    with FleetClient(fleet.url, token) as client:
        work = Work(fleet, client.submit({"prompt": "Wait, script:gate", "project": "demo"})["id"])
    wait_until(
        lambda: "tool_call" in {step["kind"] for step in fleet.order(work.order_id)["steps"]}, seconds=60, every=0.5
    )
    return work


# --- what ends, and where it was good -------------------------------------------------------------


def api_token_is_revoked(work: Work, kim: dict[str, Any]) -> list[Door]:
    """A token, and what was made with it: another token, a log-in link, a browser's session and a join token."""
    url = work.fleet.url
    with FleetClient(url, kim["token"]) as client:
        child = client.call(tokens.CREATE_API, ApiTokenRequest(role="viewer", name="child"))["token"]
        link = client.call(tokens.CREATE_LOGIN_LINK)["secret"]
        join_token = client.call(tokens.CREATE_JOIN, JoinTokenRequest())["token"]
    browser = logged_in(url, token=kim["token"])
    used = [
        *token_doors("token", work, kim["token"]),
        *token_doors("token made with it", work, child),
        *reading_doors("its browser", work, browser),
    ]
    end(work.fleet, used, "api-token", "revoke", kim["id"])
    # These are good only once.
    unused = [
        http_door("its log-in link", "POST", f"{url}/login", data={"link": link}),
        registration_door("its join token", url, join_token, "thief", new_private_key()),
    ]
    return [*used, *unused]


def browser_is_logged_out(work: Work) -> list[Door]:
    """A session alone, whose token stays good; and the link that began it."""
    with work.fleet.client() as client:
        link = client.call(tokens.CREATE_LOGIN_LINK)["secret"]
        browser = logged_in(work.fleet.url, link=link)
        [session] = client.call(tokens.LIST_LOGIN_SESSIONS)
    used = reading_doors("browser", work, browser)
    end(work.fleet, used, "login-session", "rm", session["id"])
    return [*used, http_door("used log-in link", "POST", f"{work.fleet.url}/login", data={"link": link})]


def drone_is_revoked(fleet: WholeFleet) -> list[Door]:
    """Key, token and password of a drone that is not running."""
    station = fleet.workstation("oka")
    home = DroneHome(Path(station.environment["DRONE_HOME"]))
    credentials = home.credentials()
    used = [
        http_door("drone's token", "GET", f"{fleet.url}/api/v1/registrations/self", bearer(credentials.api_token)),
        broker_door("drone's password", credentials.broker_url),
        open_broker_door("drone's open connection", credentials.broker_url),
    ]
    end(fleet, used, "keys", "rotate", "drone", "oka", "--force", "--yes")
    key = home.private_key()
    return [*used, registration_door("drone's key", fleet.url, station.join_token, "oka", key)]


def passwords_are_replaced(fleet: WholeFleet) -> list[Door]:
    """The control plane's password for the broker, and that of Flower."""
    known = json.loads((fleet.data / "up.json").read_text())
    broker_url = f"redis://control:{known['broker_password']}@127.0.0.1:{known['broker_port']}/0"
    used = [
        broker_door("broker's password", broker_url),
        open_broker_door("open connection to the broker", broker_url),
        flower_door(fleet),
    ]
    end(fleet, used, "keys", "rotate", "broker")
    return used


def master_key_is_replaced(fleet: WholeFleet, copy: Path) -> list[Door]:
    """The key under which the database's secrets are encrypted, also those that are stored after its end."""
    shutil.copy(fleet.data / "master.key", copy)
    used = [master_key_door(fleet, copy)]
    end(fleet, used, "keys", "rotate", "master")
    with fleet.client() as client:
        client.call(providers.EDIT, ProviderEdit(api_key="sk-after"), name="scripted")
    return used


def end(fleet: WholeFleet, doors: list[Door], *command: str) -> None:
    """Run the command that ends the credentials of these doors, and wait until each has refused once."""
    for door in doors:
        wait_until(door.accepts, seconds=60)
    done = fleet.fleet(*command)
    assert done.returncode == 0, done.stderr
    # Each is asked until its first refusal: log-ins are limited to 20 a minute.
    for door in doors:
        wait_until(lambda door=door: not door.accepts(), seconds=60)


# --- doors ----------------------------------------------------------------------------------------


def http_door(what: str, method: str, url: str, who: Headers | None = None, **request: Any) -> Door:
    headers = {"Accept": "application/json, text/event-stream", **(who or {})}

    def ask() -> str:
        try:
            with httpx.stream(method, url, headers=headers, timeout=60, trust_env=False, **request) as answer:
                accepted = answer.is_success or "set-cookie" in answer.headers
                status = answer.status_code
        except httpx.TransportError:
            return AWAY
        return ACCEPTED if accepted else REFUSED if status in {401, 409} else str(status)

    return Door(what, ask)


def token_doors(whose: str, work: Work, token: str) -> list[Door]:
    """All places where an API token is good."""
    url, who = work.fleet.url, bearer(token)
    return [
        *reading_doors(whose, work, who),
        http_door(f"{whose}: MCP", "POST", f"{url}/mcp", who, json=INITIALIZE),
        http_door(f"{whose}: log-in", "POST", f"{url}/login", data={"token": token}),
    ]


def reading_doors(whose: str, work: Work, who: Headers) -> list[Door]:
    """The places that tokens and sessions have in common."""
    url, events = work.fleet.url, f"{work.fleet.url}/api/v1/orders/{work.order_id}/events"
    return [
        http_door(f"{whose}: API", "GET", f"{url}/api/v1/orders", who),
        http_door(f"{whose}: page", "GET", f"{url}/", who),
        http_door(f"{whose}: new stream", "GET", events, who),
        open_stream_door(f"{whose}: open stream", events, who),
    ]


def bearer(token: str) -> Headers:
    return {"Authorization": f"Bearer {token}"}


def logged_in(url: str, **form: str) -> Headers:
    """What a browser that logs in sends from then on: its cookie and its key."""
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as browser:
        assert browser.post("/login", data={**form, "browser_key": BROWSER_KEY}).status_code == 303
        [(name, secret)] = browser.cookies.items()
    return {"Cookie": f"{name}={secret}", KEY_HEADER: BROWSER_KEY}


def open_stream_door(what: str, url: str, who: Headers) -> Door:
    """An event stream that is open; it is read until the server ends it."""
    receiving = threading.Event()

    def chunks() -> Iterator[bytes]:
        with httpx.stream("GET", url, headers=who, timeout=60, trust_env=False) as answer:
            yield from answer.raise_for_status().iter_bytes()

    def read() -> None:
        with suppress(httpx.HTTPError):
            for _ in chunks():
                receiving.set()

    reader = threading.Thread(target=read, name=what, daemon=True)
    reader.start()
    return Door(what, lambda: (ACCEPTED if receiving.is_set() else AWAY) if reader.is_alive() else REFUSED)


def registration_door(what: str, url: str, join_token: str, name: str, key: bytes) -> Door:
    body = {
        "secret": join_token.split("_")[1],
        "name": name,
        "machine_id": "elsewhere",
        "public_key": base64.b64encode(public_key(key)).decode(),
        "abilities": ABILITIES,
    }
    return http_door(what, "POST", f"{url}/api/v1/registrations", json=body)


def broker_door(what: str, url: str) -> Door:
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

    return Door(what, ask)


def open_broker_door(what: str, url: str) -> Door:
    """A connection to the broker that logged in before; once it was closed, it tries to log in again."""
    connection = redis.Redis.from_url(url).connection_pool.get_connection()

    def ask() -> str:
        try:
            connection.send_command("PING")
            connection.read_response()
        except redis.ConnectionError:
            return REFUSED
        return ACCEPTED

    return Door(what, ask)


def flower_door(fleet: WholeFleet) -> Door:
    """Flower, with its present password."""
    known = json.loads((fleet.data / "up.json").read_text())
    url = f"http://127.0.0.1:{known['flower_port']}/flower/api/workers"
    return http_door("Flower's password", "GET", url, auth=("fleet", known["flower_password"]))


def master_key_door(fleet: WholeFleet, file: Path) -> Door:
    """Whether this key decrypts any of the stored secrets."""

    def ask() -> str:
        environment = {**fleet.environment, "FLEET_MASTER_KEY_FILE": str(file)}
        done = warm_processes.run([*FLEET, "keys", "ls", "--json"], environment)
        assert done.returncode == 0, done.stderr
        [key] = json.loads(done.stdout)["master_keys"]
        return ACCEPTED if key["secrets"] + key["checkpoints"] else REFUSED

    return Door("master key", ask)
