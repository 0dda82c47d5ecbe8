"""The two doors of the fleet's MCP server: who gets in, which protocol is spoken, and what a failure looks like."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from sqlalchemy import text

from control_plane.contract.declarations import tokens
from tests.support import wait_until
from tests.support.command_tree import invoke
from tests.support.fleet import Api
from tests.support.fleet_tools import LEGACY, MODERN, WAYS, over_http, over_stdio, reached
from tests.support.whole_fleet import FLEET

Doc = dict[str, Any]
CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def alone(home: Path, **more: str) -> dict[str, str]:
    """The environment of somebody who knows of no fleet."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FLEET_")}
    return {**inherited, "FLEET_HOME": str(home), "XDG_STATE_HOME": str(home), **more}


def test_without_a_token_of_a_user_nothing_is_read_and_a_problem_document_says_so(api: Api) -> None:
    with (
        api.http(None) as stranger,
        api.http(api.add_drone().token) as drone,
        api.browser(link=api.client.call(tokens.CREATE_LOGIN_LINK)["secret"]) as browser,
    ):
        answers = [stranger.post("/mcp", content=b"x" * 3_000_000)]
        # The session of a browser opens no tools.
        for authorization in ({}, {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer"}):
            answers.append(browser.post("/mcp", json=INITIALIZE, headers={**ACCEPT, **authorization}))
        machine = drone.post("/mcp", json=INITIALIZE, headers=ACCEPT)
    assert [(each.status_code, each.json()["code"]) for each in answers] == [(401, "E-TOKEN-MISSING")] * 4
    assert answers[0].headers["content-type"] == "application/problem+json"
    assert (machine.status_code, machine.json()["code"]) == (403, "E-TOKEN-KIND")


STRANGE: list[tuple[Doc, str]] = [({"Host": each}, "E-HOST") for each in ("rebound.example", "[")]
STRANGE += [({"Origin": each}, "E-OTHER-SITE") for each in ("https://elsewhere.example", "null")]
OURS = [{"Host": "localhost:1"}, {"Host": "10.1.2.3"}, {"Origin": "http://localhost:6274"}]


def test_a_page_of_another_site_is_refused_though_it_has_a_token_and_so_is_what_is_no_message(api: Api) -> None:
    with api.http() as client:
        answers = [client.post("/mcp", json=INITIALIZE, headers={**ACCEPT, **headers}) for headers, _ in STRANGE]
        own = [client.post("/mcp", json=INITIALIZE, headers={**ACCEPT, **headers}) for headers in OURS]
        streams = [client.get("/mcp"), client.delete("/mcp")]
        large = client.post("/mcp", content=b'{"x": "' + b"x" * 2_200_000)
        broken = client.post("/mcp", content=b"{ no json", headers={**ACCEPT, "Content-Type": "application/json"})
    assert [each.json()["result"]["serverInfo"]["name"] for each in own] == ["dronefleet"] * len(OURS)
    assert not any("mcp-session-id" in each.headers for each in own)
    assert [(each.status_code, each.json()["code"]) for each in answers] == [(403, code) for _, code in STRANGE]
    assert [(each.status_code, each.headers["allow"]) for each in streams] == [(405, "POST"), (405, "POST")]
    assert (large.status_code, large.json()["code"]) == (413, "E-BODY-SIZE")
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, -32700)


@pytest.mark.parametrize("way", WAYS)
def test_the_present_revision_is_spoken_with_many_calls_at_once_and_typed_errors(
    api: Api, way: str, tmp_path: Path
) -> None:
    api.add_work()
    with reached(way, api.url, api.token, tmp_path) as client:
        assert client.version == MODERN
        assert "submit_order" in (client.client.instructions or "")
        with pytest.raises(MCPError) as unknown:
            client.call("make_coffee")
        prompts = [{"prompt": f"part {number}", "project": "demo"} for number in range(10)]
        results = client.at_once("submit_order", prompts)
        assert [result.structured_content["prompt"] for result in results] == [each["prompt"] for each in prompts]
        with api.core.database.write():
            # Nobody else can write now, so that the call is at work when it is canceled.
            assert client.leave_soon("submit_order", 0.5, prompt="left", project="demo")
            assert len(client.get("list_orders")) == 10
        # It is carried out all the same.
        wait_until(lambda: client.get("list_orders", limit=1)[0]["prompt"] == "left")
        with api.core.database.write() as db:
            db.execute(text("UPDATE providers SET params = '{broken'"))
        told = client.refused("list_providers")
    assert unknown.value.code == -32602
    assert (unknown.value.data["code"], unknown.value.data["status"]) == ("E-MCP-TOOL", 404)
    # An unexpected error tells a number and nothing of the inside.
    assert (told["code"], told["status"]) == ("E-UNEXPECTED", 500)
    assert not [word for word in ("broken", "JSON") if word in json.dumps(told)]
    assert told["what"].split()[-1] in api.log.read_text()


def test_the_revision_before_with_its_handshake_is_spoken_too_and_the_fleet_may_come_later_and_go(
    api: Api, tmp_path: Path
) -> None:
    with over_http(api.url, api.token, mode=LEGACY) as client:
        assert (client.version, client.get("list_projects")) == ("2025-11-25", [])
        assert client.refused("get_order", order_id="none")["status"] == 404
    known = tmp_path / "server.json"
    with over_stdio(alone(tmp_path), mode=LEGACY) as client:
        assert client.version == "2025-11-25"
        assert "submit_order" in (client.client.instructions or "")
        assert client.refused("get_status")["code"] == "E-SERVER-UNKNOWN"
        known.write_text(json.dumps({"url": "http://127.0.0.1:9", "token": "fa_old"}))
        assert client.refused("get_status")["code"] == "E-SERVER-DOWN"
        known.write_text(json.dumps({"url": api.url, "token": "fa_old"}))
        told = client.refused("get_status")
        assert (told["code"], told["status"]) == ("E-TOKEN-UNKNOWN", 401)
        with pytest.raises(MCPError) as refused:
            client.list()
        assert refused.value.data["code"] == "E-TOKEN-UNKNOWN"
        known.write_text(json.dumps({"url": api.url, "token": api.token}))
        assert client.get("get_status")["organization"] == "default"
        listed = [tool.name for tool in client.list()]
        api.stop()
        assert client.refused("get_status")["code"] == "E-SERVER-DOWN"
        assert [tool.name for tool in client.list()] == listed
        api.start()
        assert client.get("get_status")["organization"] == "default"


def test_it_writes_nothing_but_the_protocol_on_stdout_and_ends_with_its_input(tmp_path: Path) -> None:
    lines = ["this is no message", json.dumps(INITIALIZE), json.dumps({**INITIALIZE, "id": 2, "method": "nonsense"})]
    done = invoke("fleet", "mcp", env=alone(tmp_path), stdin="\n".join(lines) + "\n")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    assert [answer["result"]["serverInfo"]["name"] for answer in answers if answer.get("id") == 1] == ["dronefleet"]


def test_ctrl_c_ends_it_with_130(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([*FLEET, "mcp"], env=alone(tmp_path), stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(INITIALIZE) + "\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
