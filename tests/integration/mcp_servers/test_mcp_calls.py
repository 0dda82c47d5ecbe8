"""MCP servers are started together, and whatever one does, there is one clear result for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from drone.mcp_servers import ServerConfig
from drone.mcp_servers.listing import MOST_TOOLS
from drone.mcp_servers.server_log import LOG_BYTES
from drone.mcp_servers.stdio import LARGEST_MESSAGE
from shared.errors import Preempted
from shared.names import new_id
from tests.support import wait_until
from tests.support.mcp_program import SCHEMA, tool
from tests.support.mcp_servers import McpBench, config, limited
from tests.support.sandboxes import processes_with, raise_when


def test_a_server_that_is_missing_broken_or_silent_is_a_problem_and_the_others_work(mcp: McpBench) -> None:
    missing = config("missing", command="/no/such/program")
    broken = config("broken", command="false")
    word = new_id()
    silent = mcp.raw("--silent", "--word", word, name="silent", start_timeout=1)
    text = config("text", command="yes")

    tools = mcp.connect(missing, broken, mcp.raw(), silent, text)

    # A drone that is not root's starts it through `prlimit`, which then says that there is no such program.
    assert [each.replace("prlimit: failed to execute ", "") for each in tools.servers.problems] == [
        "MCP server 'missing' ended with exit code 127: /no/such/program: No such file or directory",
        "MCP server 'broken' ended with exit code 1",
        "MCP server 'silent' did not start within 1 s (`start_timeout`, at most 300)",
        "MCP server 'text' printed too much on stdout that is not an MCP message",
    ]
    assert tools.text("mcp__raw__echo", text="here") == "here"
    wait_until(lambda: not processes_with(word))


def test_servers_start_at_the_same_time_and_a_cancel_meanwhile_ends_them(mcp: McpBench) -> None:
    word = new_id()
    silent = [mcp.raw("--silent", "--word", word, name=f"s{number}") for number in range(4)]
    # A server has a keeper with the same arguments.
    mcp.check = raise_when(lambda: len(processes_with(word)) == 2 * len(silent), Preempted())

    with pytest.raises(Preempted):
        mcp.connect(*(each.model_copy(update={"start_timeout": 600.0}) for each in silent))

    assert processes_with(word) == []
    assert mcp.sandbox.tally.counts.survivors == 0


def test_what_servers_say_besides_goes_to_a_bounded_log_and_not_to_the_terminal(
    mcp: McpBench, capfd: pytest.CaptureFixture[str]
) -> None:
    mcp.connect(mcp.raw("--complain", "3000000", "--noise", "900")).servers.close()

    log = mcp.logs / "mcp-server-1-raw.log"
    assert LOG_BYTES < log.stat().st_size < LOG_BYTES + 100
    assert "[on stdout] nonsense" in log.read_text()
    assert capfd.readouterr() == ("", "")


KEEPER_AND_SERVER = ("keeper", "server")
"""Both have the server's arguments."""


def written(file: Path, text: str) -> Callable[[], bool]:
    return lambda: file.exists() and file.read_text() == text


def test_tools_of_a_server_made_with_the_sdk_are_told_and_called_and_a_cancel_reaches_it(mcp: McpBench) -> None:
    tools, file = mcp.connect(mcp.sdk()), mcp.workspace / "state"
    add, shout = (tools.by_name[f"mcp__sample__{name}"] for name in ("add", "shout"))
    assert list(tools.by_name) == [f"mcp__sample__{name}" for name in ("add", "shout", "fail", "wait", "huge")]
    assert (add.spec.description, sorted(add.spec.parameters["properties"])) == ("Add two numbers.", ["a", "b"])
    assert [(each.read_only, each.spec.parallel) for each in (add, shout)] == [(True, True), (False, False)]
    assert tools.call("mcp__sample__add", {"a": 1, "b": 2}).output == "3"
    mcp.check = raise_when(written(file, "begun"), Preempted())
    with pytest.raises(Preempted):
        tools.call("mcp__sample__wait", {"file": str(file)})
    mcp.check = lambda: None
    wait_until(written(file, "canceled"))
    assert tools.text("mcp__sample__add", a=1, b=1) == "2"


BROKEN = [
    ("wrong", "no such file"),
    ("die", "Error: the MCP server 'raw' ended with exit code 7; the next call starts it again, without"),
    ("die_talking", "Error: the MCP server 'raw' ended with exit code 1: my disk is full; the next call"),
    ("flood", f"Error: the MCP server 'raw' sent a message larger than {LARGEST_MESSAGE:,} bytes; the next call"),
    ("huge", f"Error: the MCP server 'raw' sent a message larger than {LARGEST_MESSAGE:,} bytes; the next call"),
    ("deep", "Error: the MCP server 'raw' sent an unreadable answer"),
    ("other_form", "Error: the MCP server 'raw' sent an answer that is not valid MCP"),
]
"""A tool, and how its error begins."""


def test_an_answer_is_shown_as_text_and_what_goes_wrong_is_one_error_after_which_the_next_call_works(
    mcp: McpBench,
) -> None:
    tools = mcp.connect(mcp.raw(), mcp.raw(name="other"))
    other = tools.text("mcp__other__pid")
    shown = {"noisy": "after the noise", "bytes": "a\ufffdb␀c", "half_a_pair": "a?b", "nothing": "(no output)"}
    assert {name: tools.text(f"mcp__raw__{name}") for name in shown} == shown
    long = tools.call("mcp__raw__long")
    assert (long.output.startswith("0\n1\n"), long.output.endswith("\n4998\n4999")) == (True, True)
    assert long.log is not None
    assert long.log.read_text().splitlines() == [str(number) for number in range(5000)]
    for name, error in BROKEN:
        result = tools.call(f"mcp__raw__{name}")
        assert (result.is_error, len(result.output) < 600) == (True, True), name
        assert result.output.startswith(error)
        assert tools.text("mcp__raw__echo", text="still here") == "still here", name
    assert tools.text("mcp__other__pid") == other, "no other server went with it"
    # Of several calls that find their server ended, one starts it for all.
    tools.call("mcp__raw__die")
    with ThreadPoolExecutor(4) as pool:
        pids = list(pool.map(lambda _: tools.text("mcp__raw__pid"), range(4)))
    assert (len(set(pids)), pids[0].isdigit()) == (1, True)
    mcp.program.unlink()
    tools.call("mcp__raw__die")
    gone = tools.call("mcp__raw__echo")
    assert gone.is_error
    assert "has ended, and restarting it failed: it ended with exit code 2" in gone.output


def test_a_server_that_never_answers_is_ended_at_its_time_limit_and_started_again(mcp: McpBench) -> None:
    word = new_id()
    tools = mcp.connect(mcp.raw("--word", word))
    before = tools.text("mcp__raw__pid")

    with limited(tools, 1):
        result = tools.call("mcp__raw__never")

    assert result.is_error
    assert "did not answer within 1 s; the next call starts it again" in result.output
    assert tools.text("mcp__raw__pid") != before
    assert len(processes_with(word)) == len(KEEPER_AND_SERVER)


def test_arguments_that_are_no_object_or_in_no_message_are_an_error_and_megabytes_arrive(mcp: McpBench) -> None:
    tools = mcp.connect(mcp.raw())
    for arguments in ("{", "[1]", '"text"', "null", "[" * 100_000):
        result = tools.call("mcp__raw__echo", arguments)
        assert (result.is_error, len(result.output) < 300) == (True, True), arguments[:9]
        assert result.output.startswith("Error: mcp__raw__echo: the arguments are not")
    assert tools.call("mcp__raw__echo", '{"text": ' + "[" * 900 + "]" * 900 + "}").is_error
    assert tools.call("mcp__raw__echo", json.dumps({"text": "é" * 1_000_000})).output_bytes == 2_000_000


def test_tools_are_told_of_as_their_servers_list_them_page_by_page_and_an_answer_that_is_no_list_is_a_problem(
    mcp: McpBench,
) -> None:
    """Which tools of a list are told of is tested in tests/unit/mcp_servers/test_mcp_tools.py."""

    def lists(name: str, *tools: dict[str, Any], **entry: Any) -> ServerConfig:
        return mcp.raw("--tools", json.dumps(tools), name=name, **entry)

    endless = mcp.raw("--endless", "--tools", json.dumps([tool(f"t{number}") for number in range(200)]), name="x")
    unnamed = lists("d", tool("good"), {"inputSchema": SCHEMA})
    listed = lists("e", tool("good"), {"name": "list", "inputSchema": {"type": "array"}})
    tools = mcp.connect(lists("b", tool("z"), tool("a")), lists("a", tool("y")), unnamed, listed, endless)

    assert list(tools.by_name)[:3] == ["mcp__b__z", "mcp__b__a", "mcp__a__y"]
    assert list(tools.by_name)[3:] == [f"mcp__x__t{number}" for number in range(MOST_TOOLS)]
    *invalid, many = tools.servers.problems
    for name, problem in zip("de", invalid, strict=True):
        assert problem.startswith(f"MCP server {name!r} sent an answer that is not valid MCP: ")
    assert many == "MCP server 'x' has too many tools; only the first 128 are available"
