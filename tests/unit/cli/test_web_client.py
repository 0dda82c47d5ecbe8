"""The client's reading of streams and refusals, without a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import httpx
import pytest

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.client.following import Patience, follow, open_stream
from control_plane.contract.client.http import HttpCalls
from control_plane.contract.client.refusals import refusal, unreachable
from control_plane.contract.declarations import audit, drones, orders, organizations, retention
from control_plane.contract.declarations.operation import LONGEST
from control_plane.web.mcp_server.proxy import ToolCalls
from shared.errors import Conflict, FleetFault, Invalid, NotFound, Unauthenticated, Unreachable
from tests.support.clocks import HandClock
from tests.support.streams import Script, opened

URL = "http://fleet.example"
Calls = TypeVar("Calls", bound=HttpCalls)


def test_events_are_read_whatever_the_size_of_the_pieces() -> None:
    for size in (1, 2, 7, 1000):
        stream = (
            'event: step\r\ndata: {"a": "\u2028"}\nid: 7\n\n: a comment\n\ndata: one\ndata: two\n\nevent: cut\ndata'
        )
        raw = stream.encode()
        with opened(raw[at : at + size] for at in range(0, len(raw), size)) as events:
            messages = [(each.event, each.data) for each in events]
        assert messages == [("step", '{"a": "\u2028"}'), ("message", "one\ntwo")], size


def test_another_servers_page_is_named_as_such() -> None:
    conflict = refusal(URL, httpx.Response(409, json={"code": "E-X", "detail": "it is so"}))
    assert (type(conflict), conflict.what, conflict.code) == (Conflict, "it is so", "E-X")
    error = refusal(URL, httpx.Response(404, html="<h1>nginx</h1>"))
    assert error.code == "E-SERVER-STRANGE"
    assert "nginx" not in error.what


def test_a_connection_that_fails_is_unreachable_and_says_what_next() -> None:
    cases: list[tuple[Exception, str]] = [
        (httpx.ConnectError("refused"), "E-SERVER-DOWN"),
        (httpx.ConnectTimeout(""), "E-SERVER-DOWN"),
        (httpx.ReadTimeout(""), "E-SERVER-SILENT"),
        (httpx.RemoteProtocolError("cut"), "E-SERVER-SILENT"),
        (httpx.UnsupportedProtocol("ftp"), "E-SERVER-URL"),
    ]
    for cause, code in cases:
        error = unreachable(URL, cause)
        assert isinstance(error, Unreachable), cause
        assert (error.code, error.exit_code) == (code, 5), cause
        assert error.next, cause


def test_a_name_that_would_be_another_address_is_not_sent() -> None:
    for name in ("", ".", ".."):
        with pytest.raises(NotFound):
            FleetClient(URL).call(drones.SHOW, name=name)


def served_by(calls: Calls, answer: Callable[[httpx.Request], httpx.Response]) -> Calls:
    """The client, with this in place of its server."""
    calls._http = httpx.Client(transport=httpx.MockTransport(answer), base_url=URL)
    return calls


def test_what_goes_through_a_large_database_is_waited_for_longer_but_not_a_server_that_is_down() -> None:
    within = []

    def answer(request: httpx.Request) -> httpx.Response:
        within.append((request.extensions["timeout"]["read"], request.extensions["timeout"]["connect"]))
        return httpx.Response(200, json={"jsonrpc": "2.0", "result": {}})

    client = served_by(FleetClient(URL), answer)
    for operation in (audit.VERIFY, organizations.REMOVE, retention.RUN):
        client.call(operation, **dict.fromkeys(operation.names, "x"))
    tools = served_by(ToolCalls(URL), answer)
    for name in ("delete_organization", "list_orders"):
        tools.send("tools/call", {"name": name}, None)
    tools.send("tools/list", {}, None)
    assert within == [(LONGEST, 10.0)] * 4 + [(30.0, 10.0)] * 2


def test_a_submit_that_was_cut_off_is_repeated_with_its_key_until_a_server_answers_again() -> None:
    """Without one, the error names the key, with which the command may be repeated."""
    cut, down, clock = httpx.RemoteProtocolError("cut"), httpx.ConnectError("refused"), HandClock()
    proxy, database = (
        httpx.Response(502, text="Bad Gateway"),
        httpx.Response(503, json={"code": "E-DB", "detail": "it restarts"}),
    )
    keys, script = [], [cut, down, database, None]

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        said = script.pop(0)
        if isinstance(said, Exception):
            raise said
        return said or httpx.Response(201, json={"id": "x"})

    def submit() -> Any:
        client = served_by(FleetClient(URL, clock=clock), answer)
        return client.call(orders.SUBMIT, orders.SubmitRequest(prompt="x", project="demo"))

    assert (submit(), len(keys), len(set(keys))) == ({"id": "x"}, 4, 1)
    keys.clear()
    script = [proxy, proxy, None]
    assert (submit(), len(keys), len(set(keys))) == ({"id": "x"}, 3, 1)
    keys.clear()
    script = [cut, *[down] * 50]
    with pytest.raises(Unreachable) as raised:
        submit()
    assert (raised.value.code, set(keys)) == ("E-SERVER-SILENT", {keys[0]})
    assert raised.value.next.startswith(f"fleet submit … --idempotency-key {keys[0]} ")
    assert 4 < len(keys) < 20
    keys.clear()
    script = [down]
    with pytest.raises(Unreachable) as raised:
        submit()
    assert (raised.value.code, len(keys)) == ("E-SERVER-DOWN", 1)


def test_a_key_or_token_that_no_header_can_carry_is_refused_before_it_is_sent() -> None:
    for text in ("schlüssel", "two\nlines"):
        with pytest.raises(Invalid, check=lambda refusal: refusal.code == "E-REQUEST"):
            FleetClient(URL).call(orders.SUBMIT, orders.SubmitRequest(prompt="x", project="demo"), idempotency_key=text)
        with pytest.raises(Unauthenticated) as raised:
            FleetClient(URL, text, token_from="FLEET_API_TOKEN").call(drones.SHOW, name="x")
        assert (raised.value.code, "FLEET_API_TOKEN" in raised.value.why) == ("E-TOKEN-UNKNOWN", True)


def steps(*numbers: int) -> bytes:
    return b"".join(b'event: step\ndata: {"seq": %d}\n\n' % number for number in numbers)


END = b'event: end\ndata: {"id": "x"}\n\n'
GONE = Unreachable("gone", code="E-SERVER-DOWN")


def test_a_broken_stream_is_taken_up_behind_the_last_step_and_doubles_are_left_out() -> None:
    script = Script(steps(1, 2), GONE, steps(2, 3), steps(4) + END)
    events = list(follow(script.connect, 0, Patience(), HandClock()))
    assert [data["seq"] for event, data in events if event == "step"] == [1, 2, 3, 4]
    assert script.asked == [0, 2, 2, 3]
    assert [data["state"] for event, data in events if event == "connection"] == [
        "lost",
        "lost",
        "back",
        "lost",
        "back",
    ]


def test_an_address_that_answers_with_pages_is_not_followed() -> None:
    pages = httpx.MockTransport(lambda _: httpx.Response(200, html="<h1>It works!</h1>"))
    with httpx.Client(transport=pages, base_url=URL) as http:
        events = follow(lambda last: open_stream(http, "/events", last, "default"), 0, Patience(), HandClock())
        with pytest.raises(FleetFault) as raised:
            next(events)
    assert raised.value.code == "E-SERVER-STRANGE"


def test_following_ends_with_a_refusal_or_the_end_of_patience_and_not_for_what_cannot_be_read() -> None:
    refused = Script(steps(1), NotFound("no order", code="E-ORDER-404"))
    with pytest.raises(NotFound):
        list(follow(refused.connect, 0, Patience(), HandClock()))
    gone = Script(steps(1), *[GONE] * 50)
    with pytest.raises(Unreachable):
        list(follow(gone.connect, 0, Patience(give_up_after_s=30), HandClock()))
    assert 4 < len(gone.asked) < 20
    late = Script(GONE, GONE, b"event: step\ndata: oops\n\n", steps(1) + END)
    events = list(follow(late.connect, 0, Patience(from_the_start=True), HandClock()))
    assert events[-1] == ("end", {"id": "x"})
