"""Who gets in: tokens, sessions, other sites, how much may be sent and how slowly, and what ends with a token."""

from __future__ import annotations

import re
import socket
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from control_plane.contract.declarations import tokens
from control_plane.contract.declarations.tokens import ApiTokenRequest
from control_plane.db.access import ApiToken, WebSession
from control_plane.web import server
from control_plane.web.stream import Pace
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.fleet import Api, Follower, PlayedRun, api_on


def test_health_says_that_database_and_broker_answer_and_is_degraded_without_the_broker(api: Api) -> None:
    with api.http(None) as stranger:
        health = stranger.get("/api/v1/health").json()
        with api.broker.refusing_writes():
            answers = [stranger.get("/api/v1/health")]
        api.broker.stop()
        answers.append(stranger.get("/api/v1/health"))
    assert (health["status"], health["database"], health["broker"]) == ("ok", True, True)
    assert [(answer.status_code, answer.json()["status"]) for answer in answers] == [(200, "degraded")] * 2


def test_reading_needs_no_write_to_the_database_and_the_last_uses_are_written_later(api: Api) -> None:
    ago = api.core.clock.now() - timedelta(minutes=2)
    with api.http(api.token_for("operator")) as script, api.browser(token=api.token_for("viewer")) as browser:
        with api.core.database.write() as db:
            db.execute(update(WebSession).values(last_used_at=ago, address=""))
        with api.core.database.write():
            answers = [script.get("/api/v1/orders"), browser.get("/orders")]
    assert [answer.status_code for answer in answers] == [200, 200]
    api.app.state.last_uses.flush(api.core)
    with api.core.database.read() as db:
        used = db.scalars(select(ApiToken.last_used_at).where(ApiToken.role == "operator")).one()
        session = db.scalars(select(WebSession)).one()
    assert (used is not None, session.last_used_at != ago, session.address) == (True, True, "127.0.0.1")


def test_a_drone_cannot_act_as_a_person_nor_a_person_as_a_drone(api: Api) -> None:
    drone = api.add_drone()
    with api.http(drone.token) as as_drone, api.http() as as_person:
        refused = as_drone.get("/api/v1/orders"), as_person.post("/api/v1/runs/000000000000/push-grant")
    assert [answer.json()["code"] for answer in refused] == ["E-TOKEN-KIND", "E-TOKEN-KIND"]


def test_a_body_over_two_megabytes_is_refused_also_if_it_hides_its_length(api: Api) -> None:
    with api.http() as http:
        answer = http.post("/api/v1/orders", content=(b"x" * 100_000 for _ in range(30)))
    assert (answer.status_code, answer.json()["code"]) == (413, "E-BODY-SIZE")


def test_only_a_right_bearer_token_spares_a_cookie_the_check_of_the_site(api: Api) -> None:
    cross_site = {"Sec-Fetch-Site": "cross-site"}
    headers = [{"Authorization": each} for each in ("Basic eDp5", "Bearer", "Digest username=x", "fa_x", "")]
    with api.browser() as browser:
        for authorization in ({}, *headers):
            for site in (cross_site, {"Origin": "null"}):
                answer = browser.post("/logout", headers={**authorization, **site})
                assert (answer.status_code, answer.json()["code"]) == (403, "E-OTHER-SITE"), authorization
        wrong = browser.get("/api/v1/whoami", headers={"Authorization": "Bearer fa_wrong"})
        assert (wrong.status_code, wrong.json()["code"]) == (401, "E-TOKEN-UNKNOWN")
        # A proxy that asks for a password has the browser send it with every request.
        own = browser.post("/logout", headers={**headers[0], "Sec-Fetch-Site": "same-origin", "Origin": api.url})
        assert (own.status_code, browser.get("/api/v1/whoami").status_code) == (303, 401)
    with api.http() as script:
        assert script.post("/api/v1/login-links", headers=cross_site).status_code == 201


def test_every_answer_forbids_foreign_scripts_and_frames_and_no_page_needs_any(api: Api) -> None:
    with api.browser() as browser:
        paths = ("/", "/login", "/api/v1/drones", "/static/js/app.js", "/static/css/base.css", "/static/none")
        answers = [browser.get(path) for path in paths]
    policies = [answer.headers["content-security-policy"] for answer in answers]
    assert all("default-src 'none'" in policy and "unsafe" not in policy for policy in policies)
    assert all(answer.headers["x-content-type-options"] == "nosniff" for answer in answers)
    foreign = re.compile(r"(?:src|href|url|import)\s*[=(]\s*[\"']?(?:https?:)?//")
    assert not [answer.url for answer in answers if foreign.search(answer.text)]
    templates = Path(__file__).parents[3] / "control_plane" / "web" / "templates"
    # An exported order is no page: it is downloaded, and has a policy of its own.
    templated = "".join(path.read_text() for path in templates.rglob("*.html") if path.name != "export.html")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! src=)|\| *safe", templated)


def test_an_unexpected_error_shows_a_number_and_not_its_text(api: Api) -> None:
    # A row that nothing of ours writes, so that nothing of ours expects it.
    with api.core.database.write() as db:
        db.connection().exec_driver_sql("UPDATE organizations SET created_at = 'no time at all'")
    with api.http() as http:
        answer = http.get("/api/v1/whoami")
    number = re.search(r"[0-9a-f]{12}", answer.json()["detail"])
    assert (answer.status_code, answer.json()["code"]) == (500, "E-UNEXPECTED")
    assert number is not None
    assert number.group() in api.log.read_text()
    assert "no time at all" not in answer.text


def test_pages_lead_a_stranger_to_the_log_in_and_a_pasted_token_starts_a_session(api: Api) -> None:
    with api.http(None, Accept="text/html") as browser:
        answer = browser.get("/orders/abc?all=1")
        back = browser.post("/login", data={"token": api.token, "next": "/orders/abc?all=1"})
        cookie = next(iter(browser.cookies.jar))
        assert browser.get("/").status_code == 200
        # An address of any length.
        form = browser.get("/login", params={"next": f"/orders?text={'x' * 1000}"})
        assert (form.status_code, 'name="next" value="/"' in form.text) == (200, True)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/orders/abc%3Fall%3D1")
    assert back.headers["location"] == "/orders/abc?all=1"
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert (cookie.get_nonstandard_attr("SameSite"), cookie.secure) == ("lax", False)


HALF = b"GET /login HTTP/1.1\r\nHost: a\r\nX-Slow: "


def guesses(api: Api, *forwarded: str) -> list[int]:
    """The statuses of 21 log-ins with a wrong token, each by way of other addresses."""
    with api.http(None) as http:
        headers = [{"X-Forwarded-For": ", ".join((f"192.0.2.{number}", *forwarded))} for number in range(21)]
        return [http.post("/login", data={"token": "fa_x"}, headers=each).status_code for each in headers]


def test_a_trusted_proxy_says_who_the_client_is_and_nobody_before_it_does(
    api: Api, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    assert guesses(api) == [401] * 20 + [429]
    with api_on(sqlite_url, valkey, core_factory, trusted_proxies="127.0.0.0/8, ::1") as behind:
        assert guesses(behind) == [401] * 21
        assert guesses(behind, "198.51.100.7") == [401] * 20 + [429]
        with behind.http(None, **{"X-Forwarded-For": "203.0.113.9"}) as browser:
            browser.post("/login", data={"token": behind.token})
        assert [each["address"] for each in behind.client.call(tokens.LIST_LOGIN_SESSIONS)] == ["203.0.113.9"]


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
    assert server.BoundedHeadProtocol.seconds == 10
    # nginx keeps an idle connection for 60 s: then a request would meet the end of the connection.
    assert api._server.config.timeout_keep_alive == server.IDLE_S > 60


def test_a_quiet_stream_ends_soon_after_the_token_of_its_session_was_revoked(
    api: Api, run: PlayedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Pace().allowed_s <= 4
    # No heartbeat falls into the test: only the check of the token can end the stream.
    live = replace(api.app.state.live, pace=Pace(heartbeat_s=60, allowed_s=0.3))
    monkeypatch.setitem(api.app.state._state, "live", live)
    token = api.client.call(tokens.CREATE_API, ApiTokenRequest(role="admin", name="kim"))
    with (
        api.browser(token=token["token"]) as browser,
        browser.stream("GET", f"/api/v1/orders/{run.order_id}/events") as stream,
    ):
        chunks = stream.iter_bytes()
        assert b"event: order" in next(chunks)
        api.client.call(tokens.REVOKE_API, token_id=token["id"])
        assert b"event: end" not in b"".join(chunks)
        refused = browser.get("/api/v1/whoami")
    assert (refused.status_code, refused.json()["code"]) == (401, "E-SESSION")
