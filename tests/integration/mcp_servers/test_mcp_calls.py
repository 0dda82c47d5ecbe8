"""Tools of MCP servers as the model calls them: whatever a server does, there is one clear result for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from drone.mcp_servers.stdio import LARGEST_MESSAGE
from shared.errors import LimitsExceeded, Preempted
from shared.names import new_id
from tests.support import wait_until
from tests.support.mcp_limits import limited
from tests.support.mcp_servers import McpBench
from tests.support.sandboxes import processes_with, raise_when

KEEPER_AND_SERVER = ("keeper", "server")
"""Both have the server's arguments."""


def written(file: Path, text: str) -> Callable[[], bool]:
    return lambda: file.exists() and file.read_text() == text


def test_tools_of_a_server_made_with_the_sdk_are_told_and_called(mcp: McpBench) -> None:
    tools = mcp.connect(mcp.sdk())

    add = tools.by_name["mcp__sample__add"]
    assert list(tools.by_name) == [
        f"mcp__sample__{name}" for name in ("add", "nap", "shout", "fail", "wait", "huge", "meet")
    ]
    assert (add.spec.description, add.read_only) == ("Add two numbers.", True)
    assert sorted(add.spec.parameters["properties"]) == ["a", "b"]
    assert not tools.by_name["mcp__sample__shout"].read_only
    assert [tools.by_name[f"mcp__sample__{name}"].spec.parallel for name in ("add", "shout")] == [True, False]
    assert tools.call("mcp__sample__add", {"a": 1, "b": 2}).output == "3"


SHOWN = [("noisy", "after the noise"), ("bytes", "a\ufffdb␀c"), ("half_a_pair", "a?b"), ("nothing", "(no output)")]
"""A tool, and what its answer is shown as."""
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


def test_an_answer_is_shown_as_text(mcp: McpBench) -> None:
    tools = mcp.connect(mcp.raw())
    shown = [(name, tools.call(f"mcp__raw__{name}")) for name, _ in SHOWN]
    assert [(name, result.output) for name, result in shown if not result.is_error] == SHOWN


def test_what_goes_wrong_is_one_error_and_the_next_call_works(mcp: McpBench) -> None:
    tools = mcp.connect(mcp.raw(), mcp.raw(name="other"))
    other = tools.text("mcp__other__pid")
    for name, error in BROKEN:
        result = tools.call(f"mcp__raw__{name}")
        assert (result.is_error, len(result.output) < 600) == (True, True), name
        assert result.output.startswith(error)
        assert tools.text("mcp__raw__echo", text="still here") == "still here", name
    assert tools.text("mcp__other__pid") == other, "no other server went with it"


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


def test_a_server_that_cannot_be_started_again_is_one_error_for_each_call(mcp: McpBench) -> None:
    tools = mcp.connect(mcp.raw())
    mcp.program.unlink()
    tools.call("mcp__raw__die")

    result = tools.call("mcp__raw__echo")

    assert result.is_error
    assert "has ended, and restarting it failed: it ended with exit code 2" in result.output


def test_a_long_answer_is_shown_as_head_and_tail_with_the_whole_in_the_log(mcp: McpBench) -> None:
    result = mcp.connect(mcp.raw()).call("mcp__raw__long")

    assert result.output.startswith("0\n1\n")
    assert result.output.endswith("\n4998\n4999")
    assert "characters elided" in result.output
    assert result.log is not None
    assert result.log.read_text().splitlines() == [str(number) for number in range(5000)]


def test_arguments_that_are_no_object_or_in_no_message_are_an_error_and_megabytes_arrive(mcp: McpBench) -> None:
    tools = mcp.connect(mcp.raw())
    for arguments in ("{", "[1]", '"text"', "null", "[" * 100_000):
        result = tools.call("mcp__raw__echo", arguments)
        assert (result.is_error, len(result.output) < 300) == (True, True), arguments[:9]
        assert result.output.startswith("Error: mcp__raw__echo: the arguments are not")
    assert tools.call("mcp__raw__echo", '{"text": ' + "[" * 900 + "]" * 900 + "}").is_error
    assert tools.call("mcp__raw__echo", json.dumps({"text": "é" * 1_000_000})).output_bytes == 2_000_000


def test_a_cancel_comes_through_at_once_and_reaches_the_server(mcp: McpBench) -> None:
    tools, file = mcp.connect(mcp.sdk()), mcp.workspace / "state"
    mcp.check = raise_when(written(file, "begun"), Preempted())

    with pytest.raises(Preempted):
        tools.call("mcp__sample__wait", {"file": str(file)})
    mcp.check = lambda: None

    wait_until(written(file, "canceled"))
    assert tools.text("mcp__sample__add", a=1, b=1) == "2"


def test_a_limit_of_the_run_comes_through_a_call_that_hangs(mcp: McpBench) -> None:
    tools = mcp.connect(mcp.raw())
    mcp.check = raise_when(lambda: mcp.looks > 20, LimitsExceeded())

    with pytest.raises(LimitsExceeded):
        tools.call("mcp__raw__hang")


def test_of_several_calls_that_find_their_server_ended_one_starts_it_for_all(mcp: McpBench) -> None:
    tools = mcp.connect(mcp.raw())
    tools.call("mcp__raw__die")

    with ThreadPoolExecutor(4) as pool:
        pids = list(pool.map(lambda _: tools.text("mcp__raw__pid"), range(4)))

    assert len(set(pids)) == 1
    assert pids[0].isdigit()
