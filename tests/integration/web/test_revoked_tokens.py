"""What a revoked token leaves behind: no session, no login link, no open stream."""

from __future__ import annotations

from dataclasses import replace

import pytest

from control_plane.declarations import tokens, users
from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.declarations.users import UserRequest
from control_plane.web.stream import Pace
from tests.support.fleet import Api, Doc, PlayedRun


@pytest.fixture
def token(api: Api) -> Doc:
    """A second admin's token, which a test may revoke."""
    answer: Doc = api.client.call(tokens.CREATE_API, ApiTokenRequest(role="admin", name="kim"))
    return answer


def revoke(api: Api, token: Doc) -> None:
    api.client.call(tokens.REVOKE_API, token_id=token["id"])


def test_a_session_ends_with_its_token(api: Api, token: Doc) -> None:
    with api.browser(token=token["token"]) as browser:
        assert browser.get("/api/v1/whoami").json()["role"] == "admin"
        revoke(api, token)
        answers = [browser.get("/"), browser.post("/api/v1/api-tokens", json={"role": "admin"})]
    assert [(each.status_code, each.json()["code"]) for each in answers] == [(401, "E-SESSION")] * 2


def test_a_login_link_ends_with_its_token(api: Api, token: Doc) -> None:
    with api.http(token["token"]) as http:
        link = http.post("/api/v1/login-links").json()["secret"]
    revoke(api, token)
    with api.http(None) as browser:
        answer = browser.post("/login", data={"link": link})
    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)


def test_a_login_link_made_by_a_session_ends_with_the_token_of_the_session(api: Api, token: Doc) -> None:
    with api.browser(token=token["token"]) as browser:
        link = browser.post("/api/v1/login-links").json()["secret"]
    with api.browser(link=link) as second:
        assert second.get("/").status_code == 200
        revoke(api, token)
        assert second.get("/").status_code == 401


def test_a_quiet_stream_ends_soon_after_its_token_was_revoked_or_its_user_removed(
    api: Api, token: Doc, run: PlayedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No heartbeat falls into the test: only the check of the token can end the stream.
    live = replace(api.app.state.live, pace=Pace(heartbeat_s=60, allowed_s=0.3))
    monkeypatch.setitem(api.app.state._state, "live", live)
    api.client.call(users.ADD, UserRequest(email="kim@example.org", name="Kim", role="viewer"))
    own = api.client.call(tokens.CREATE_API, ApiTokenRequest(role="viewer", user="kim@example.org"))
    with api.browser(token=token["token"]) as browser, api.http(own["token"]) as kim:
        for client, end in (
            (browser, lambda: revoke(api, token)),
            (kim, lambda: api.client.call(users.REMOVE, user="kim@example.org")),
        ):
            with client.stream("GET", f"/api/v1/orders/{run.order_id}/events") as stream:
                chunks = stream.iter_bytes()
                assert b"event: order" in next(chunks)
                end()
                assert b"event: end" not in b"".join(chunks)


def test_a_stream_is_checked_often_enough_to_end_within_five_seconds() -> None:
    assert Pace().allowed_s <= 4


def test_a_token_that_was_created_in_a_session_of_another_ends_with_it(api: Api, token: Doc) -> None:
    with api.browser(token=token["token"]) as browser:
        child = browser.post("/api/v1/api-tokens", json={"role": "viewer", "name": "screen"}).json()
    assert child["made_by"] == token["id"]
    ended = api.client.call(tokens.REVOKE_API, token_id=token["id"])["ended"]
    assert (ended["api_tokens"], ended["login_sessions"]) == ([child["id"]], 1)
    with api.http(child["token"]) as screen:
        assert screen.get("/api/v1/whoami").json()["code"] == "E-TOKEN-REVOKED"
