"""Connections: who the client behind a proxy is, and how long a request may take to begin."""

from __future__ import annotations

import socket
from contextlib import closing, suppress

import pytest

from control_plane.declarations import tokens
from control_plane.web import server
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.fleet import Api, Follower, PlayedRun, api_on

HALF = b"GET /login HTTP/1.1\r\nHost: a\r\nX-Slow: "


def guesses(api: Api, *forwarded: str) -> list[int]:
    """The statuses of 21 log-ins with a wrong token, each by way of other addresses."""
    with api.http(None) as http:
        headers = [{"X-Forwarded-For": ", ".join((f"192.0.2.{number}", *forwarded))} for number in range(21)]
        return [http.post("/login", data={"token": "fa_x"}, headers=each).status_code for each in headers]


def test_the_limit_of_log_ins_counts_the_connection_whatever_its_headers_say(api: Api) -> None:
    assert guesses(api) == [401] * 20 + [429]


def test_a_trusted_proxy_says_who_the_client_is_and_nobody_before_it_does(
    sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    with api_on(sqlite_url, valkey, core_factory, trusted_proxies="127.0.0.0/8, ::1") as api:
        assert guesses(api) == [401] * 21
        assert guesses(api, "198.51.100.7") == [401] * 20 + [429]
        with api.http(None, **{"X-Forwarded-For": "203.0.113.9"}) as browser:
            browser.post("/login", data={"token": api.token})
        assert [each["address"] for each in api.client.call(tokens.LIST_LOGIN_SESSIONS)] == ["203.0.113.9"]


def is_closed(connection: socket.socket, drip: bytes = b"") -> bool:
    """Whether the server closed the connection; sends `drip` before it looks."""
    with suppress(BlockingIOError):
        try:
            connection.sendall(drip)
            return connection.recv(100_000) == b""
        except ConnectionError:
            return True
    return False


def test_a_connection_whose_request_does_not_begin_in_time_is_closed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.BoundedHeadProtocol, "seconds", 0.3)
    for first, drip in ((b"", b""), (HALF, b"x"), (HALF + b"1\r\n\r\n" + HALF, b"x"), (b"\r\n", b"\r\n")):
        with closing(socket.create_connection(("127.0.0.1", api.port))) as connection:
            connection.sendall(first)
            connection.setblocking(False)
            wait_until(lambda: is_closed(connection, drip), every=0.05)  # noqa: B023


def test_a_request_that_began_in_time_may_take_longer(api: Api, run: PlayedRun) -> None:
    follower = Follower(api, run.order_id, raw=True)
    wait_until(lambda: follower.seqs == [1])
    assert api._server is not None
    at_work = [each for each in api._server.server_state.connections if not each._awaits_request]  # type: ignore[union-attr]
    assert [each._deadline for each in at_work] == [None]  # type: ignore[union-attr]
    run.ends()
    assert follower.ended()["status"] == "succeeded"


def test_a_request_may_take_ten_seconds_to_begin_and_an_idle_connection_outlives_the_patience_of_clients(
    api: Api,
) -> None:
    assert server.BoundedHeadProtocol.seconds == 10
    assert api._server is not None
    # nginx keeps an idle connection for 60 s: then a request would meet the end of the connection.
    assert api._server.config.timeout_keep_alive == server.IDLE_S > 60
