"""Tools of MCP servers, and calls that only read, in a run with real tools, servers, sandbox and journal."""

from __future__ import annotations

import json
import sys
from itertools import groupby
from typing import Any

import pytest

from drone.installation.policy import Policy
from shared.events import ErrorStep, ToolCallStep, ToolResultStep
from shared.outcome import ExitStatus
from tests.support import mcp_program
from tests.support.local_runs import call
from tests.support.repositories import push_commit
from tests.support.runs import Bench
from tests.support.scripted import ScriptedFactory, says
from tests.support.transcripts import problems

pytestmark = pytest.mark.usefixtures("warm_model")


def program(kind: str, *flags: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [mcp_program.__file__, kind, *flags]}


def owner(bench: Bench, **servers: Any) -> None:
    """Let these be the servers of the machine's owner."""
    (bench.directory / "home").mkdir(exist_ok=True)
    (bench.directory / "home" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


def asks(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


# --- whose servers -------------------------------------------------------------------------------


def test_the_model_calls_the_tools_of_the_owners_server_and_those_that_cannot_be_used_are_said(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    owner(bench, mine=program("raw"), missing={"command": "/no/such/program"}, wrong={})

    end = bench.run(scripted([call("mcp__mine__echo", text="heard"), says("Done.")]).url)

    assert (end.exit_status, bench.last(ToolResultStep).output) == (ExitStatus.STOPPED, "heard")
    said = [step.what.partition(" is left out")[0].partition(" of the owner")[0] for step in bench.of(ErrorStep)]
    assert said[0] == "MCP server 'wrong'"
    assert said[1].startswith("MCP server 'missing' ended with exit code 127: ")
    assert said[1].endswith("/no/such/program: No such file or directory")
    assert len(said) == 2


def test_a_projects_servers_are_started_only_where_the_owner_allows_it(bench: Bench, scripted: ScriptedFactory) -> None:
    servers = json.dumps({"mcpServers": {"theirs": program("raw")}})
    push_commit(bench.directory / "remote.git", {".dronefleet/mcp.json": servers})
    server = scripted([says("Done.", repeat=True)])
    for allowed in (False, True):
        bench.policy = Policy(mcp_servers=allowed)
        bench.run(server.url)
    offered = [[tool["function"]["name"] for tool in request["tools"]] for request in server.requests]
    assert ["mcp__theirs__echo" in names for names in offered] == [False, True]


# --- calls that only read ------------------------------------------------------------------------


def test_files_and_searches_are_read_at_the_same_time_and_answered_in_order(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    push_commit(bench.directory / "remote.git", {f"{name}.txt": f"{name} is here\n" * 50 for name in "abcdef"})
    reads = [("file_read", {"mode": "lines", "path": f"{name}.txt", "start_line": 50}) for name in "abc"]
    searches = [("grep", {"pattern": f"{name} is", "max_results": 1}) for name in "def"]
    mixed = [each for pair in zip(reads, searches, strict=True) for each in pair]
    server = scripted([asks(*mixed), says("Done.")])
    bench.run(server.url)
    found = [step.output.split()[-3 if step.output.startswith("    ") else 0] for step in bench.of(ToolResultStep)]
    assert found == ["a", "d.txt", "b", "e.txt", "c", "f.txt"]
    assert problems(server.requests[-1]["messages"]) == []
    kinds = [body.kind for body in bench.of(ToolCallStep, ToolResultStep)]
    assert [(kind, len(list(group))) for kind, group in groupby(kinds)] == [
        *(("tool_call", 4), ("tool_result", 4), ("tool_call", 2), ("tool_result", 2))
    ]
