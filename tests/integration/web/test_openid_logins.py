"""Log-in with an identity provider: a real one in a process of its own, and one that lies in every part."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc.jwk import OctKey, RSAKey

from control_plane.declarations import orders, tokens, users
from control_plane.declarations.users import UserEdit, UserRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.access.users import add
from control_plane.services import openid
from control_plane.web.app import PROVIDER_CALLS
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.clocks import SleepyClock
from tests.support.database import CoreFactory
from tests.support.fleet import BROWSER_KEY, KEY_HEADER, Api, PlayedRun, api_on
from tests.support.openid_providers import CLIENT, LyingProvider, MockProvider, lying_provider, mock_provider
from tests.support.organizations import add_organization

KIM = "kim@example.org"
SECRET = "s" * 32


@dataclass
class Door:
    """A fleet whose people log in with a provider; Kim is a viewer."""

    api: Api
    browser: httpx.Client

    def begun(self, liar: LyingProvider, **claims: object) -> str:
        """The state of a log-in that was begun; the provider will vouch with these claims."""
        sent = query(self.begin().headers["location"])
        liar.claims = {"nonce": sent["nonce"], **claims}
        return sent["state"]

    def begin(self, next: str = "/", address: str = "") -> httpx.Response:
        headers = {"X-Forwarded-For": address} if address else {}
        return self.browser.get("/login/openid", params={"next": next}, headers=headers)

    def finish(self, code: str, state: str) -> httpx.Response:
        form = {"code": code, "state": state, "browser_key": BROWSER_KEY}
        return self.browser.post("/login/openid", data=form)

    def log_in(self) -> httpx.Response:
        """With a provider that accepts every code."""
        return self.finish("any", query(self.begin().headers["location"])["state"])

    @property
    def is_logged_in(self) -> bool:
        return self.browser.get("/api/v1/whoami").status_code == 200


def query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def door_of(
    issuer: str, url: str, valkey: BrokerServer, core_factory: CoreFactory, **options: object
) -> Iterator[Door]:
    settings = {"oidc_issuer": issuer, "oidc_client_id": CLIENT, "oidc_client_secret": SECRET, **options}
    with api_on(url, valkey, core_factory, **settings) as api, api.http(None, **{KEY_HEADER: BROWSER_KEY}) as browser:
        api.client.call(users.ADD, UserRequest(email=KIM, name="Kim Lee", role="viewer"))
        yield Door(api, browser)


@pytest.fixture(scope="module")
def provider() -> Iterator[MockProvider]:
    with mock_provider() as running:
        running.add("kim-1", email=KIM, email_verified=True, name="Kim")
        yield running


@pytest.fixture
def liar() -> Iterator[LyingProvider]:
    with lying_provider() as running:
        yield running


@pytest.fixture
def door(provider: MockProvider, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[Door]:
    yield from door_of(provider.issuer, sqlite_url, valkey, core_factory)


@pytest.fixture
def lied_to(liar: LyingProvider, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[Door]:
    yield from door_of(liar.issuer, sqlite_url, valkey, core_factory)


def code_of(answer: httpx.Response) -> str:
    """The error code on a page."""
    return next((word for word in answer.text.replace("<", " ").replace(">", " ").split() if word.startswith("E-")), "")


# --- a real provider ----------------------------------------------------------------------------


def test_a_user_logs_in_with_the_provider_and_acts_in_their_own_name(door: Door, provider: MockProvider) -> None:
    assert "/login/openid?next=/sessions" in door.browser.get("/login?next=/sessions").text
    back = provider.approve(door.begin("/sessions").headers["location"], "kim-1")
    page = door.browser.get(back)
    assert 'name="code"' in page.text
    done = door.finish(**{name: query(back)[name] for name in ("code", "state")})
    assert (done.status_code, done.headers["location"]) == (303, "/sessions")
    assert door.browser.get("/api/v1/whoami").json() == {"organization": "default", "user": "Kim Lee", "role": "viewer"}
    listed = door.api.client.call(tokens.LIST_LOGIN_SESSIONS)
    assert [(each["user"], each["token_id"]) for each in listed] == [("Kim Lee", None)]


def test_a_person_of_the_provider_who_is_no_user_is_told_what_to_ask_for(door: Door, provider: MockProvider) -> None:
    provider.add("eve", email="eve@example.org", email_verified=True)
    back = query(provider.approve(door.begin().headers["location"], "eve"))
    answer = door.finish(back["code"], back["state"])
    assert (answer.status_code, code_of(answer), door.is_logged_in) == (403, "E-OPENID-USER", False)
    assert "fleet user add eve@example.org" in answer.text


def test_a_code_works_once_and_only_in_the_browser_that_began(door: Door, provider: MockProvider) -> None:
    back = query(provider.approve(door.begin().headers["location"], "kim-1"))
    with door.api.http(None) as other:
        stolen = other.post("/login/openid", data={"code": back["code"], "state": back["state"]})
    assert (stolen.status_code, code_of(stolen)) == (422, "E-OPENID-STATE")
    wrong = door.finish(back["code"], "other")
    assert (wrong.status_code, code_of(wrong)) == (422, "E-OPENID-STATE")
    assert door.finish(back["code"], back["state"]).status_code == 303
    again = door.finish(back["code"], back["state"])
    assert (again.status_code, code_of(again)) == (422, "E-OPENID-STATE")


def test_a_provider_that_is_down_is_named_and_tokens_still_log_in(
    sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    with mock_provider() as gone:
        pass
    for door in door_of(gone.issuer, sqlite_url, valkey, core_factory):
        answer = door.begin()
        assert (answer.status_code, code_of(answer)) == (503, "E-OPENID-DOWN")
        assert gone.issuer in answer.text
        with door.api.browser() as browser:
            assert browser.get("/api/v1/whoami").status_code == 200


def test_without_a_provider_in_the_settings_the_page_names_none(api: Api) -> None:
    with api.http(None) as browser:
        assert "/login/openid" not in browser.get("/login").text
        assert code_of(browser.get("/login/openid")) == "E-OPENID-OFF"


def test_a_person_whom_the_provider_turned_away_is_told_its_reason(door: Door) -> None:
    answer = door.browser.get("/login/openid/callback", params={"error": "access_denied", "state": "x"})
    assert (answer.status_code, code_of(answer), "access_denied" in answer.text) == (403, "E-OPENID-ANSWER", True)


# --- what a provider may get wrong ----------------------------------------------------------------


def test_what_is_sent_binds_the_code_to_this_log_in(lied_to: Door, liar: LyingProvider) -> None:
    sent = query(lied_to.begin().headers["location"])
    assert (sent["code_challenge_method"], sent["response_type"], sent["scope"]) == (
        "S256",
        "code",
        "openid email profile",
    )
    liar.claims = {"nonce": sent["nonce"]}
    assert lied_to.finish("any", sent["state"]).status_code == 303
    assert "code_verifier=" in liar.asked[-1]


LIES = {
    "another issuer": {"iss": "https://evil.example"},
    "another audience": {"aud": "other"},
    "an audience of several": {"aud": [CLIENT, "other"]},
    "another nonce": {"nonce": "other"},
    "no nonce": {"nonce": None},
    "expired": {"exp": int(time.time()) - 3600},
    "no expiry": {"exp": None},
    "of the future": {"iat": int(time.time()) + 3600},
    "no subject": {"sub": None},
}
REFUSED = (401, "E-OPENID-ANSWER", False)
"""Status, code, and whether the browser is logged in."""


def test_an_id_token_with_a_wrong_claim_is_refused(lied_to: Door, liar: LyingProvider) -> None:
    found = {}
    for lie, claims in LIES.items():
        state = lied_to.begun(liar, **claims)
        answer = lied_to.finish("any", state)
        found[lie] = (answer.status_code, code_of(answer), lied_to.is_logged_in)
    assert found == dict.fromkeys(LIES, REFUSED)


def test_an_id_token_that_the_providers_key_did_not_sign_is_refused(lied_to: Door, liar: LyingProvider) -> None:
    right, found = liar.signing_key, {}
    for forgery in ("other key", "shared secret", "eyJhbGciOiJub25lIn0.e30.", "a.b.c", " "):
        liar.signing_key = right
        if forgery == "other key":
            liar.signing_key = RSAKey.generate_key(2048, parameters={"kid": "1"})
        elif forgery == "shared secret":
            liar.header, liar.signing_key = {"alg": "HS256", "kid": "1"}, OctKey.import_key(SECRET)  # type: ignore[assignment]
        else:
            liar.id_token = forgery
        # A refused code is used up, so each is a log-in of its own.
        state = lied_to.begun(liar)
        answer = lied_to.finish("any", state)
        found[forgery] = (answer.status_code, code_of(answer), lied_to.is_logged_in)
    assert set(found.values()) == {REFUSED}, found


def test_an_address_that_the_provider_does_not_confirm_is_refused(lied_to: Door, liar: LyingProvider) -> None:
    unconfirmed: list[dict[str, object]] = [{"email": None}, {"email_verified": False}, {"email_verified": "true"}]
    for claims in unconfirmed:
        state = lied_to.begun(liar, **claims)
        assert code_of(lied_to.finish("any", state)) == "E-OPENID-EMAIL"


def test_a_provider_that_names_another_issuer_or_an_unprotected_address_is_refused(
    lied_to: Door, liar: LyingProvider
) -> None:
    state = lied_to.begun(liar)
    liar.metadata = {"issuer": "https://evil.example"}
    answer = lied_to.begin()
    assert (answer.status_code, code_of(answer)) == (401, "E-OPENID-ISSUER")
    liar.metadata = {"authorization_endpoint": "http://provider.example/x"}
    assert code_of(lied_to.begin()) == "E-OPENID-ANSWER"
    for name in ("token_endpoint", "jwks_uri"):
        liar.metadata = {name: "http://provider.example/x"}
        assert code_of(lied_to.finish("any", state)) == "E-OPENID-ANSWER", name


# --- a provider in trouble --------------------------------------------------------------------------

PLACES = ["/.well-known/openid-configuration", "/token", "/keys"]
FAULTS = ["cut", "500", "<html>Bad gateway</html>", "[]", "[" * 100_000]


def test_a_log_in_that_meets_a_provider_in_trouble_says_so_and_is_finished_later(
    lied_to: Door, liar: LyingProvider
) -> None:
    state = lied_to.begun(liar)
    for place, fault in product(PLACES, FAULTS):
        liar.faults = {place: fault}
        answer = lied_to.finish("any", state)
        told = (answer.status_code, code_of(answer), liar.issuer in answer.text)
        assert told == (503, "E-OPENID-DOWN", True), (place, fault)
    liar.faults = {}
    assert lied_to.finish("any", state).status_code == 303


def test_a_provider_that_does_not_answer_is_waited_for_only_so_long(
    lied_to: Door, liar: LyingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openid, "_TIMEOUT_S", 0.5)
    state = lied_to.begun(liar)
    hold, given_up = liar.released.wait, list[bool]()
    monkeypatch.setattr(liar.released, "wait", lambda seconds: given_up.append(hold(seconds)))
    for place in PLACES:
        liar.faults = {place: "hang"}
        assert code_of(lied_to.finish("any", state)) == "E-OPENID-DOWN", place
    # The provider would still not answer.
    assert given_up == []


def test_log_ins_that_hang_at_the_provider_keep_nobody_else_waiting(
    liar: LyingProvider, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    liar.faults = {PLACES[0]: "hang"}
    for door in door_of(liar.issuer, sqlite_url, valkey, core_factory, trusted_proxies="127.0.0.1"):
        with ThreadPoolExecutor(60) as pool:
            # More than the threads that all other requests share.
            hanging = [pool.submit(door.begin, address=f"192.0.2.{number}") for number in range(60)]
            wait_until(lambda: len(liar.hanging) == PROVIDER_CALLS)
            with door.api.browser() as browser:
                assert browser.get("/api/v1/whoami").status_code == 200
            assert not any(each.done() for each in hanging)
            liar.released.set()
        assert {code_of(each.result()) for each in hanging} == {"E-OPENID-DOWN"}


def test_an_address_that_now_belongs_to_another_person_does_not_lead_to_the_account(
    lied_to: Door, liar: LyingProvider
) -> None:
    for subject, expected in (("kim-1", 303), ("kim-2", 403)):
        state = lied_to.begun(liar, sub=subject)
        assert lied_to.finish("any", state).status_code == expected


# --- the session ------------------------------------------------------------------------------------


@pytest.fixture
def kims(lied_to: Door, liar: LyingProvider) -> Door:
    """Kim is an admin, and logged in."""
    lied_to.api.client.call(users.EDIT, UserEdit(role="admin"), user=KIM)
    state = lied_to.begun(liar)
    assert lied_to.finish("any", state).status_code == 303
    return lied_to


def test_a_session_of_the_provider_creates_nothing_that_would_outlive_it(kims: Door) -> None:
    for path, body in (("api-tokens", {"role": "viewer"}), ("join-tokens", {}), ("login-links", {})):
        answer = kims.browser.post(f"/api/v1/{path}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "E-OPENID-SESSION")


def test_it_has_the_role_that_its_user_has_now_and_ends_with_them(kims: Door) -> None:
    client = kims.api.client
    # A member elsewhere keeps the user's id, so the session could become valid again with a new membership.
    elsewhere = add_organization(kims.api.core, system_caller(kims.api.core), "other")
    add(kims.api.core, elsewhere, UserRequest(email=KIM, name="Kim Lee", role="viewer"))
    client.call(users.EDIT, UserEdit(role="viewer"), user=KIM)
    assert kims.browser.get("/api/v1/whoami").json()["role"] == "viewer"
    client.call(users.EDIT, UserEdit(disabled=True), user=KIM)
    assert not kims.is_logged_in
    client.call(users.EDIT, UserEdit(disabled=False), user=KIM)
    assert kims.is_logged_in
    client.call(users.REMOVE, user=KIM)
    assert not kims.is_logged_in
    client.call(users.ADD, UserRequest(email=KIM, name="Kim", role="admin"))
    assert not kims.is_logged_in


def test_a_user_whom_the_provider_removes_is_out_after_an_hour_and_their_order_continues(
    liar: LyingProvider, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    clock = SleepyClock()
    for door in door_of(liar.issuer, sqlite_url, valkey, core_factory, clock=clock):
        api, run = door.api, run_of_kim(door, liar)
        liar.faults = {"/token": '{"error": "invalid_grant"}'}
        clock.asleep = 3590
        assert door.is_logged_in
        clock.asleep = 3601
        assert not door.is_logged_in
        denied = door.log_in()
        assert (denied.status_code, code_of(denied), door.is_logged_in) == (401, "E-OPENID-ANSWER", False)
        assert api.client.call(orders.SHOW, order_id=run.order_id)["status"] == "running"
        run.says("done")
        run.ends()
        assert api.client.call(orders.SHOW, order_id=run.order_id)["status"] == "succeeded"


def run_of_kim(door: Door, liar: LyingProvider) -> PlayedRun:
    """A running order that Kim, who is logged in with the provider, has submitted."""
    door.api.client.call(users.EDIT, UserEdit(role="operator"), user=KIM)
    door.api.add_work()
    state = door.begun(liar)
    assert door.finish("any", state).status_code == 303
    order = door.browser.post("/api/v1/orders", json={"prompt": "Fix it", "project": "demo"}).raise_for_status()
    return door.api.add_drone().take(order.json())


def test_a_user_who_is_no_admin_sees_and_ends_only_sessions_of_their_own(lied_to: Door, liar: LyingProvider) -> None:
    lied_to.api.client.call(users.ADD, UserRequest(email="jo@example.org", name="Jo", role="viewer"))
    for email, subject in (("jo@example.org", "jo"), (KIM, "kim")):
        state = lied_to.begun(liar, email=email, sub=subject)
        assert lied_to.finish("any", state).status_code == 303
    every = {each["user"]: each["id"] for each in lied_to.api.client.call(tokens.LIST_LOGIN_SESSIONS)}
    assert set(every) == {"Jo", "Kim Lee"}
    own = lied_to.browser.get("/api/v1/login-sessions").json()
    assert [each["id"] for each in own] == [every["Kim Lee"]]
    assert lied_to.browser.delete(f"/api/v1/login-sessions/{every['Jo']}").status_code == 404
