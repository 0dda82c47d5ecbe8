"""MCP servers are started together and in bounded time; what is wrong with one of them is a sentence, and no more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drone.mcp_servers import servers
from drone.mcp_servers.listing import LARGEST_SCHEMA, LONGEST_DESCRIPTION, MOST_TOOLS
from drone.mcp_servers.server_log import LOG_BYTES
from shared.errors import Preempted
from shared.names import new_id
from tests.support import wait_until
from tests.support.mcp_program import SCHEMA, tool
from tests.support.mcp_servers import McpBench, config
from tests.support.sandboxes import processes_with, raise_when


def offering(mcp: McpBench, *tools: dict[str, Any], **entry: Any) -> Any:
    """The tools of a server that lists these, and what is said of them."""
    return mcp.connect(mcp.raw("--tools", json.dumps(tools), **entry)).servers


def test_a_server_that_is_missing_broken_or_silent_is_a_problem_and_the_others_work(mcp: McpBench) -> None:
    missing = config("missing", command="/no/such/program")
    broken = config("broken", command="false")
    word = new_id()
    silent = mcp.raw("--silent", "--word", word, name="silent", start_timeout=1)
    text = config("text", command="yes")

    tools = mcp.connect(missing, broken, mcp.raw(), silent, text)

    assert tools.servers.problems == [
        "MCP server 'missing' ended with exit code 127: /no/such/program: No such file or directory",
        "MCP server 'broken' ended with exit code 1",
        "MCP server 'silent' did not start within 1 s",
        "MCP server 'text' printed too much on stdout that is not an MCP message",
    ]
    assert tools.text("mcp__raw__echo", text="here") == "here"
    wait_until(lambda: not processes_with(word))


def test_slow_servers_are_waited_for_at_the_same_time(mcp: McpBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "LONGEST_START", 600.0)
    word = new_id()
    silent = [mcp.raw("--silent", "--word", word, name=f"s{number}") for number in range(4)]
    # A server has a keeper with the same arguments.
    mcp.check = raise_when(lambda: len(processes_with(word)) == 2 * len(silent), Preempted())

    with pytest.raises(Preempted):
        mcp.connect(*(each.model_copy(update={"start_timeout": 600.0}) for each in silent))


def test_a_cancel_while_servers_start_ends_them(mcp: McpBench) -> None:
    word = new_id()
    mcp.check = raise_when(lambda: bool(processes_with(word)), Preempted())

    with pytest.raises(Preempted):
        mcp.connect(mcp.raw("--silent", "--word", word))

    assert processes_with(word) == []
    assert mcp.sandbox.tally.counts.survivors == 0


def test_tools_are_sorted_by_the_order_of_servers_then_as_listed(mcp: McpBench) -> None:
    mine = json.dumps([tool("z"), tool("a")])

    tools = mcp.connect(mcp.raw("--tools", mine, name="b"), mcp.raw("--tools", mine, name="a"))

    assert list(tools.by_name) == ["mcp__b__z", "mcp__b__a", "mcp__a__z", "mcp__a__a"]


def test_only_the_tools_that_are_wanted_are_told_of(mcp: McpBench) -> None:
    servers = offering(mcp, tool("one"), tool("two"), tools=["two", "three"])

    assert [each.spec.name for each in servers.tools] == ["mcp__raw__two"]
    assert servers.problems == ["MCP server 'raw' has no tool 'three'"]


def test_a_tool_that_no_model_can_be_told_of_is_left_out(mcp: McpBench) -> None:
    large = {**SCHEMA, "description": "x" * LARGEST_SCHEMA}

    servers = offering(mcp, {"name": "large", "inputSchema": large}, tool("good"))

    assert [each.spec.name for each in servers.tools] == ["mcp__raw__good"]
    assert servers.problems == [
        "MCP server 'raw': its tool 'large' is ignored: the schema of its arguments is larger than 32,000 bytes"
    ]


def test_a_list_of_tools_that_is_not_in_the_form_of_mcp_is_a_problem(mcp: McpBench) -> None:
    cases: list[dict[str, Any]] = [{"inputSchema": SCHEMA}, {"name": "list", "inputSchema": {"type": "array"}}]
    for wrong in cases:
        servers = offering(mcp, tool("good"), wrong)

        assert servers.tools == [], wrong
        assert servers.problems[0].startswith("MCP server 'raw' sent an answer that is not valid MCP: "), wrong


def test_a_long_description_is_cut_and_a_missing_one_made_up(mcp: McpBench) -> None:
    servers = offering(
        mcp,
        {"name": "long", "description": "x" * 5_000, "inputSchema": SCHEMA},
        {"name": "none", "inputSchema": {"type": "object"}},
    )

    assert len(servers.tools[0].spec.description) == LONGEST_DESCRIPTION
    assert servers.tools[1].spec.description == "none of the MCP server raw"
    assert servers.tools[1].spec.parameters == {"properties": {}, "type": "object"}


@pytest.mark.parametrize("flags", [("--endless",), ()])
def test_of_very_many_tools_the_first_are_told_of(mcp: McpBench, flags: tuple[str, ...]) -> None:
    many = json.dumps([tool(f"t{number}") for number in range(200)])

    servers = mcp.connect(mcp.raw("--tools", many, *flags)).servers

    assert [each.spec.name for each in servers.tools] == [f"mcp__raw__t{number}" for number in range(MOST_TOOLS)]
    assert servers.problems == ["MCP server 'raw' has too many tools; only the first 128 are available"]


def test_what_servers_say_besides_goes_to_a_bounded_log_and_not_to_the_terminal(
    mcp: McpBench, capfd: pytest.CaptureFixture[str]
) -> None:
    mcp.connect(mcp.raw("--complain", "3000000", "--noise", "900")).servers.close()

    log = mcp.logs / "mcp-server-1-raw.log"
    assert LOG_BYTES < log.stat().st_size < LOG_BYTES + 100
    assert "[on stdout] nonsense" in log.read_text()
    assert capfd.readouterr() == ("", "")
