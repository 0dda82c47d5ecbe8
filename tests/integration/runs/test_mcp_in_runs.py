"""MCP servers in a whole run: whose are started, how the model calls them, and what a cancel says of them."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from drone.installation.policy import Policy
from drone.runs.pipe import EndRun
from shared.events import ErrorStep, ToolResultStep
from shared.names import new_id
from shared.outcome import ExitStatus
from tests.support import mcp_program
from tests.support.repositories import push_commit
from tests.support.runs import Bench, small_repository
from tests.support.sandboxes import processes_with
from tests.support.scripted import ScriptedFactory, says


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, small_repository(tmp_path / "remote.git"))


def raw(*flags: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [mcp_program.__file__, "raw", *flags]}


def owner(bench: Bench, **servers: Any) -> None:
    (bench.directory / "home").mkdir(exist_ok=True)
    (bench.directory / "home" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


def project(bench: Bench, **servers: Any) -> None:
    push_commit(bench.directory / "remote.git", {".dronefleet/mcp.json": json.dumps({"mcpServers": servers})})


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def told(bench: Bench) -> list[str]:
    return [event.body.what for event in bench.events if isinstance(event.body, ErrorStep)]


def test_the_model_calls_the_tools_of_the_owners_server_and_those_that_cannot_be_used_are_said(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    owner(bench, mine=raw(), missing={"command": "/no/such/program"}, wrong={})

    end = bench.run(scripted([call("mcp__mine__echo", text="heard"), says("Done.")]).url)

    assert end.exit_status == ExitStatus.STOPPED
    assert bench.last(ToolResultStep).output == "heard"
    assert [what.partition(" is left out")[0].partition(" of the owner")[0] for what in told(bench)] == [
        "MCP server 'wrong'",
        "MCP server 'missing' ended with exit code 127: /no/such/program: No such file or directory",
    ]


def test_a_projects_servers_are_started_only_where_the_owner_allows_it(bench: Bench, scripted: ScriptedFactory) -> None:
    project(bench, theirs=raw())
    server = scripted([{**says("Done."), "repeat": True}])
    for allowed in (False, True):
        bench.policy = Policy(mcp_servers=allowed)
        bench.run(server.url)
    offered = [[tool["function"]["name"] for tool in request["tools"]] for request in server.requests]
    assert ["mcp__theirs__echo" in names for names in offered] == [False, True]


def test_a_cancel_during_a_call_counts_the_server_on_the_receipt(bench: Bench, scripted: ScriptedFactory) -> None:
    word = new_id()
    owner(bench, mine=raw("--word", word, "--ignore-term"))
    cancel = threading.Timer(0.5, bench.controls.receive, [EndRun(wish="cancel", reason="not needed")])
    bench.on_doing = lambda text: cancel.start() if text == "running mcp__mine__hang" else None

    end = bench.run(scripted([call("mcp__mine__hang"), says("Done.")]).url)

    assert end.exit_status == ExitStatus.CANCELED
    assert end.receipt is not None
    assert (end.receipt.found, end.receipt.ended, end.receipt.survivors) == (1, 1, 0)
    assert processes_with(word) == []
