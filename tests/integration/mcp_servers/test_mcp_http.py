"""MCP servers at an HTTP address: both forms of the protocol, headers that stay where they belong, bounds."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable

import pytest

from drone.mcp_servers.stdio import LARGEST_MESSAGE
from shared.errors import Preempted
from tests.support import HeldPort, wait_until
from tests.support.mcp_program import text
from tests.support.mcp_servers import (
    ByHand,
    McpBench,
    Reply,
    Request,
    config,
    http_server,
    limited,
    with_sessions,
)
from tests.support.sandboxes import raise_when

TOO_LARGE = f"it is larger than {LARGEST_MESSAGE:,} bytes"


def at_calls(reply: Callable[[Request], Reply]) -> Callable[[Request], Reply]:
    """A server that is as it should be until a tool is called."""
    return lambda request: reply(request) if request.method == "tools/call" else with_sessions(request)


def always(reply: Reply) -> Callable[[Request], Reply]:
    """A server that answers everything with this."""
    return lambda _: reply


def test_tools_of_a_server_made_with_the_sdk_are_called_over_http_and_a_cancel_reaches_it(mcp: McpBench) -> None:
    file = mcp.workspace / "state"
    with http_server() as url:
        tools = mcp.connect(config("web", url=url))
        assert tools.by_name["mcp__web__add"].read_only
        assert tools.text("mcp__web__add", a=20, b=3) == "23"
        assert tools.call("mcp__web__fail").is_error
        assert TOO_LARGE in tools.text("mcp__web__huge")
        mcp.check = raise_when(file.exists, Preempted())
        with pytest.raises(Preempted):
            tools.call("mcp__web__wait", {"file": str(file)})
        wait_until(lambda: file.read_text() == "canceled")
        mcp.check = lambda: None
        assert tools.text("mcp__web__add", a=1, b=1) == "2"


def test_tools_of_a_server_without_sessions_that_answers_with_json_are_called_too(mcp: McpBench) -> None:
    with http_server("--stateless", "--json") as url:
        tools = mcp.connect(config("web", url=url))
        assert tools.text("mcp__web__add", a=20, b=3) == "23"
        assert TOO_LARGE in tools.text("mcp__web__huge")
        assert tools.text("mcp__web__add", a=1, b=1) == "2"


def test_the_older_form_with_a_session_works_also_after_the_server_forgot_it_or_went_away(mcp: McpBench) -> None:
    with ByHand(with_sessions) as server:
        tools = mcp.connect(config("old", url=server.url, headers={"X-Key": "mine"}))
        assert tools.text("mcp__old__session") == "session-1"
        server.sessions = 7
        assert "lost the session: it was restarted" in tools.text("mcp__old__session")
        assert tools.text("mcp__old__session") == "session-8"
    gone = tools.call("mcp__old__session").output
    assert gone.startswith("Error: the MCP server 'old' failed: ConnectError")
    assert gone.endswith("; the next call connects again, without its previous state")
    with ByHand(with_sessions, server.address) as again:
        assert tools.text("mcp__old__session") == "session-1"
        tools.servers.close()
        assert again.requests[-1].method == "DELETE"
    assert {request.headers.get("X-Key") for request in (*server.requests, *again.requests)} == {"mine"}


def test_a_redirect_to_another_host_is_not_followed(mcp: McpBench) -> None:
    for status in (301, 307):
        with ByHand(with_sessions) as other:
            with ByHand(always(Reply(status, headers={"Location": other.url}))) as server:
                tools = mcp.connect(config("moved", url=server.url, headers={"X-Key": "mine"}))

            assert other.requests == []
            assert tools.servers.problems[0].startswith("MCP server 'moved' answered with an error: Redirect to ")


def test_an_address_that_is_no_mcp_server_or_silent_is_a_problem(mcp: McpBench) -> None:
    json_type = {"Content-Type": "application/json"}
    cases: list[tuple[Reply, str]] = [
        (Reply(401), "(HTTP 401)"),
        (Reply(500, b"boom"), "(HTTP 500)"),
        (Reply(200, b"<html>", {"Content-Type": "text/html"}), "Unexpected content type: text/html"),
        (Reply(200, b"{", json_type), "sent an unreadable answer"),
        (Reply(200, b"\xff\xfe", json_type), "sent an unreadable answer"),
        (Reply(200, b"{}", json_type), "sent an unreadable answer"),
    ]
    for reply, why in cases:
        with ByHand(always(reply)) as server:
            problems = mcp.connect(config("web", url=server.url)).servers.problems
        assert (why in problems[0], len(problems[0]) < 400) == (True, True), reply
    with HeldPort() as closed_port:
        (problem,) = mcp.connect(config("web", url=f"http://127.0.0.1:{closed_port}/mcp")).servers.problems
    assert problem.startswith("MCP server 'web' failed: ConnectError")
    released = threading.Event()
    with ByHand(lambda _: Reply(200 if released.wait(60) else 500)) as server:
        problems = mcp.connect(config("web", url=server.url, start_timeout=1)).servers.problems
        released.set()
    assert problems == ["MCP server 'web' did not start within 1 s (`start_timeout`, at most 300)"]


def test_a_call_that_is_not_answered_is_given_up_in_time_and_the_session_goes_on(mcp: McpBench) -> None:
    answers = iter([True])
    released = threading.Event()

    def once_silent(request: Request) -> Reply:
        if next(answers, False):
            released.wait(60)
        return Reply.json(request, {"content": [text("in time")]})

    with ByHand(at_calls(once_silent)) as server:
        tools = mcp.connect(config("web", url=server.url))

        with limited(tools, 1):
            assert tools.text("mcp__web__session") == "Error: the MCP server 'web' did not answer within 1 s"
        assert tools.text("mcp__web__session") == "in time"
        assert server.sessions == 1
        released.set()


def test_a_call_that_goes_wrong_is_one_error_and_nothing_in_the_log(
    mcp: McpBench, caplog: pytest.LogCaptureFixture
) -> None:
    cases: list[tuple[Reply, str]] = [
        (Reply(200, b"[" * (LARGEST_MESSAGE + 1), {"Content-Type": "application/json"}), TOO_LARGE),
        (Reply(200, b"data: " + b"x" * LARGEST_MESSAGE, {"Content-Type": "text/event-stream"}), "SSE stream failed"),
        (
            Reply(200, gzip.compress(b"x"), {"Content-Type": "application/json", "Content-Encoding": "gzip"}),
            "compressed answer, which was not requested",
        ),
        (Reply(503), "(HTTP 503)"),
    ]
    for reply, why in cases:
        with ByHand(at_calls(always(reply))) as server:
            result = mcp.connect(config("web", url=server.url)).call("mcp__web__session")

        assert result.is_error, reply
        assert why in result.output, reply
        assert len(result.output) < 600, reply
        assert caplog.records == [], reply
