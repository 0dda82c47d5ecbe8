"""Log-in with an identity provider: a real one in a process of its own, and one that lies in every part."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey

from control_plane.contract.declarations import orders, tokens, users
from control_plane.contract.declarations.users import UserEdit, UserRequest
from control_plane.core.lookups.organizations import system_caller
from control_plane.operations.access.users import add
from control_plane.services import openid
from control_plane.web.app import PROVIDER_CALLS
from control_plane.web.throttle import Throttle
from tests.support import free_port, wait_until
from tests.support.broker import BrokerServer
from tests.support.clocks import SleepyClock
from tests.support.database import CoreFactory
from tests.support.fleet import BROWSER_KEY, KEY_HEADER, Api, api_on
from tests.support.organizations import add_organization

Doc = dict[str, Any]
CLIENT = "dronefleet"
KIM = "kim@example.org"
SECRET = "s" * 32
METADATA = "/.well-known/openid-configuration"


@dataclass
class MockProvider:
    """The program `oidc-provider-mock`: people log in at it by their id alone."""

    issuer: str

    def add(self, subject: str, **claims: object) -> None:
        httpx.put(f"{self.issuer}/users/{quote(subject)}", json=claims).raise_for_status()

    def approve(self, url: str, subject: str) -> dict[str, str]:
        """What it sends the browser of this person back with."""
        answer = httpx.post(url, data={"sub": subject})
        assert answer.status_code == 302, answer.text
        return query(answer.headers["location"])

    def answers(self) -> bool:
        try:
            return httpx.get(f"{self.issuer}{METADATA}").is_success
        except httpx.HTTPError:
            return False


@pytest.fixture(scope="module")
def provider() -> Iterator[MockProvider]:
    port = free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    running = MockProvider(f"http://localhost:{port}")
    try:
        wait_until(running.answers)
        running.add("kim-1", email=KIM, email_verified=True, name="Kim")
        yield running
    finally:
        process.terminate()
        process.wait(timeout=60)


@cache
def key_pair(name: str) -> ECKey:
    """A key of this name, generated once."""
    return ECKey.generate_key("P-256", parameters={"kid": "1"})


@dataclass
class LyingProvider:
    """A provider whose answers a test bends; it exchanges every code for an ID token with `claims`."""

    server: ThreadingHTTPServer
    metadata: Doc = field(default_factory=dict)
    claims: Doc = field(default_factory=dict)
    signing_key: ECKey | OctKey = field(default_factory=lambda: key_pair("published"))
    algorithm: str = "ES256"
    id_token: str | None = None
    """Instead of a signed one."""
    asked: list[str] = field(default_factory=list)
    """The bodies of requests for tokens."""
    faults: dict[str, str] = field(default_factory=dict)
    """What happens at an address instead of an answer: `cut`, `500`, `hang`, else the text that it answers."""
    released: threading.Event = field(default_factory=threading.Event)
    """Ends what hangs."""
    hanging: list[str] = field(default_factory=list)
    """The addresses of requests that hang or hung."""

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, path: str) -> Doc:
        if path == METADATA:
            ends = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
            urls = {name: f"{self.issuer}{end}" for name, end in ends.items()}
            return {"issuer": self.issuer, **urls, **self.metadata}
        if path == "/keys":
            return {"keys": [key_pair("published").as_dict(private=False)]}
        return {"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": self._id_token()}

    def _id_token(self) -> str:
        now = int(time.time())
        usual = {"iss": self.issuer, "aud": CLIENT, "sub": "kim", "iat": now, "exp": now + 60}
        person = {"email": KIM, "email_verified": True}
        claims = {name: value for name, value in {**usual, **person, **self.claims}.items() if value is not None}
        return self.id_token or jwt.encode({"alg": self.algorithm, "kid": "1"}, claims, self.signing_key)


@pytest.fixture
def liar() -> Iterator[LyingProvider]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _LyingHandler)
    provider = LyingProvider(server)
    server.provider = provider  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield provider
    provider.released.set()
    server.shutdown()
    server.server_close()
    thread.join(timeout=60)


class _LyingHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        provider: LyingProvider = self.server.provider  # type: ignore[attr-defined]
        fault = provider.faults.get(self.path)
        if fault == "hang":
            provider.hanging.append(self.path)
            provider.released.wait(60)
        if fault in {"hang", "cut"}:
            self.close_connection = True
            return
        body = (fault or json.dumps(provider.answer(self.path))).encode()
        self.send_response(500 if fault == "500" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.provider.asked.append(asked)  # type: ignore[attr-defined]
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


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

    def finish(self, state: str, code: str = "any") -> httpx.Response:
        form = {"code": code, "state": state, "browser_key": BROWSER_KEY}
        return self.browser.post("/login/openid", data=form)

    def log_in(self, liar: LyingProvider, **claims: object) -> httpx.Response:
        return self.finish(self.begun(liar, **claims))

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


@pytest.fixture
def door(provider: MockProvider, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[Door]:
    yield from door_of(provider.issuer, sqlite_url, valkey, core_factory)


@pytest.fixture
def lied_to(liar: LyingProvider, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[Door]:
    yield from door_of(liar.issuer, sqlite_url, valkey, core_factory)


def code_of(answer: httpx.Response) -> str:
    """The error code on a page."""
    return next((word for word in answer.text.replace("<", " ").replace(">", " ").split() if word.startswith("E-")), "")


def test_a_user_logs_in_with_the_provider_and_acts_in_their_own_name_and_who_is_no_user_does_not(
    door: Door, provider: MockProvider
) -> None:
    provider.add("eve", email="eve@example.org", email_verified=True)
    answer = door.finish(**provider.approve(door.begin().headers["location"], "eve"))
    assert (answer.status_code, code_of(answer), door.is_logged_in) == (403, "E-OPENID-USER", False)
    assert "fleet user add eve@example.org" in answer.text

    assert "/login/openid?next=/sessions" in door.browser.get("/login?next=/sessions").text
    back = provider.approve(door.begin("/sessions").headers["location"], "kim-1")
    assert 'name="code"' in door.browser.get("/login/openid/callback", params=back).text
    done = door.finish(back["state"], back["code"])
    assert (done.status_code, done.headers["location"]) == (303, "/sessions")
    assert door.browser.get("/api/v1/whoami").json() == {"organization": "default", "user": "Kim Lee", "role": "viewer"}
    listed = door.api.client.call(tokens.LIST_LOGIN_SESSIONS)
    assert [(each["user"], each["token_id"]) for each in listed] == [("Kim Lee", None)]


def test_a_code_works_once_and_only_in_the_browser_that_began(door: Door, provider: MockProvider) -> None:
    back = provider.approve(door.begin().headers["location"], "kim-1")
    code, state = back["code"], back["state"]
    with door.api.http(None) as other:
        refused = [other.post("/login/openid", data={"code": code, "state": state}), door.finish("other", code)]
    assert door.finish(state, code).status_code == 303
    refused.append(door.finish(state, code))
    assert [(each.status_code, code_of(each)) for each in refused] == [(422, "E-OPENID-STATE")] * 3


def test_over_tls_the_cookie_of_a_log_in_is_deleted_with_the_marks_that_it_was_set_with(
    liar: LyingProvider, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    for door in door_of(liar.issuer, sqlite_url, valkey, core_factory, public_url="https://fleet.example"):
        state = door.begun(liar)
        (begun,) = door.browser.cookies.jar
        door.browser.headers["Cookie"] = f"{begun.name}={begun.value}"  # which the client would send over TLS alone
        ended = door.finish(state)
    (deleted,) = (each for each in ended.headers.get_list("set-cookie") if each.startswith(f"{begun.name}="))
    assert (begun.name[:7], begun.secure, "Max-Age=0" in deleted, "Secure" in deleted) == ("__Host-", True, True, True)


def test_a_provider_that_is_off_down_or_turns_a_person_away_is_named_and_tokens_still_log_in(
    api: Api, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    with api.http(None) as browser:
        assert "/login/openid" not in browser.get("/login").text
        assert code_of(browser.get("/login/openid")) == "E-OPENID-OFF"
    issuer = f"http://localhost:{free_port()}"
    for door in door_of(issuer, sqlite_url, valkey, core_factory):
        down = door.begin()
        denied = door.browser.get("/login/openid/callback", params={"error": "access_denied", "state": "x"})
        with door.api.browser() as browser:
            assert browser.get("/api/v1/whoami").status_code == 200
    assert (down.status_code, code_of(down), issuer in down.text) == (503, "E-OPENID-DOWN", True)
    assert (denied.status_code, code_of(denied), "access_denied" in denied.text) == (403, "E-OPENID-ANSWER", True)


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
UNCONFIRMED: list[Doc] = [{"email": None}, {"email_verified": False}, {"email_verified": "true"}]


def test_an_id_token_with_a_wrong_claim_is_refused(lied_to: Door, liar: LyingProvider) -> None:
    """And one that the provider's key did not sign, and an address that the provider does not confirm."""
    forged: dict[str, dict[str, Any]] = {
        "another key": {"signing_key": key_pair("other")},
        "the shared secret": {"signing_key": OctKey.import_key(SECRET), "algorithm": "HS256"},
        "no algorithm": {"id_token": "eyJhbGciOiJub25lIn0.e30."},
        "no token": {"id_token": "a.b.c"},
        "nothing": {"id_token": " "},
    }

    def refusal(state: str) -> tuple[int, str, bool]:
        # There are 20 attempts a minute.
        lied_to.api.app.state.throttle = Throttle()
        answer = lied_to.finish(state)
        return answer.status_code, code_of(answer), lied_to.is_logged_in

    found = {lie: refusal(lied_to.begun(liar, **claims)) for lie, claims in LIES.items()}
    addresses = [refusal(lied_to.begun(liar, **claims))[1:] for claims in UNCONFIRMED]
    right = vars(liar).copy()
    for forgery, changes in forged.items():
        vars(liar).update({**right, **changes})
        # A refused code is used up, so each is a log-in of its own.
        found[forgery] = refusal(lied_to.begun(liar))
    assert found == dict.fromkeys((*LIES, *forged), (401, "E-OPENID-ANSWER", False))
    assert addresses == [("E-OPENID-EMAIL", False)] * len(UNCONFIRMED)


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
        assert code_of(lied_to.finish(state)) == "E-OPENID-ANSWER", name


PLACES = ["/token", "/keys"]
FAULTS = ["cut", "500", "hang", "<html>Bad gateway</html>", "[]", "[" * 100_000]


def test_a_log_in_that_meets_a_provider_in_trouble_says_so_and_is_finished_later(
    lied_to: Door, liar: LyingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not answer is waited for only so long."""
    sent = query(lied_to.begin().headers["location"])
    asked = {name: sent[name] for name in ("code_challenge_method", "response_type", "scope")}
    assert asked == {"code_challenge_method": "S256", "response_type": "code", "scope": "openid email profile"}
    liar.claims = {"nonce": sent["nonce"]}
    monkeypatch.setattr(openid, "_TIMEOUT_S", 0.5)
    hold, given_up = liar.released.wait, list[bool]()
    monkeypatch.setattr(liar.released, "wait", lambda seconds: given_up.append(hold(seconds)))
    for place, fault in product(PLACES, FAULTS):
        liar.faults = {place: fault}
        answer = lied_to.finish(sent["state"])
        told = (answer.status_code, code_of(answer), liar.issuer in answer.text)
        assert told == (503, "E-OPENID-DOWN", True), (place, fault)
    # The provider would still not answer.
    assert given_up == []
    liar.faults = {}
    assert lied_to.finish(sent["state"]).status_code == 303
    assert "code_verifier=" in liar.asked[-1]


def test_log_ins_that_hang_at_the_provider_keep_nobody_else_waiting(
    liar: LyingProvider, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    liar.faults = {METADATA: "hang"}
    for door in door_of(liar.issuer, sqlite_url, valkey, core_factory, trusted_proxies="127.0.0.1"):
        with ThreadPoolExecutor(45) as pool:
            # More than the threads that all other requests share.
            hanging = [pool.submit(door.begin, address=f"192.0.2.{number}") for number in range(45)]
            wait_until(lambda: len(liar.hanging) == PROVIDER_CALLS)
            with door.api.browser() as browser:
                assert browser.get("/api/v1/whoami").status_code == 200
            assert not any(each.done() for each in hanging)
            liar.released.set()
        assert {code_of(each.result()) for each in hanging} == {"E-OPENID-DOWN"}


def test_a_session_has_the_role_that_its_user_has_now_creates_nothing_that_would_outlive_it_and_ends_with_them(
    lied_to: Door, liar: LyingProvider
) -> None:
    client, core = lied_to.api.client, lied_to.api.core
    client.call(users.EDIT, UserEdit(role="admin"), user=KIM)
    assert lied_to.log_in(liar).status_code == 303
    # An address that now belongs to another person does not lead to the account.
    with lied_to.api.http(None, **{KEY_HEADER: BROWSER_KEY}) as other:
        assert Door(lied_to.api, other).log_in(liar, sub="kim-2").status_code == 403
    for path, body in (("api-tokens", {"role": "viewer"}), ("join-tokens", {}), ("login-links", {})):
        answer = lied_to.browser.post(f"/api/v1/{path}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "E-OPENID-SESSION")
    # A member elsewhere keeps the user's id, so the session could become valid again with a new membership.
    elsewhere = add_organization(core, system_caller(core), "other")
    add(core, elsewhere, UserRequest(email=KIM, name="Kim Lee", role="viewer"))
    client.call(users.EDIT, UserEdit(role="viewer"), user=KIM)
    assert lied_to.browser.get("/api/v1/whoami").json()["role"] == "viewer"
    client.call(users.EDIT, UserEdit(disabled=True), user=KIM)
    assert not lied_to.is_logged_in
    client.call(users.EDIT, UserEdit(disabled=False), user=KIM)
    assert lied_to.is_logged_in
    client.call(users.REMOVE, user=KIM)
    assert not lied_to.is_logged_in
    client.call(users.ADD, UserRequest(email=KIM, name="Kim", role="admin"))
    assert not lied_to.is_logged_in


def test_a_user_whom_the_provider_removes_is_out_after_an_hour_and_their_order_continues(
    liar: LyingProvider, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    clock = SleepyClock()
    for door in door_of(liar.issuer, sqlite_url, valkey, core_factory, clock=clock):
        client = door.api.client
        client.call(users.EDIT, UserEdit(role="operator"), user=KIM)
        door.api.add_work()
        assert door.log_in(liar).status_code == 303
        order = door.browser.post("/api/v1/orders", json={"prompt": "Fix it", "project": "demo"}).raise_for_status()
        run = door.api.add_drone().take(order.json())
        liar.faults = {"/token": '{"error": "invalid_grant"}'}
        clock.asleep = 3590
        assert door.is_logged_in
        clock.asleep = 3601
        assert not door.is_logged_in
        denied = door.log_in(liar)
        assert (denied.status_code, code_of(denied), door.is_logged_in) == (401, "E-OPENID-ANSWER", False)
        run.ends()
        assert client.call(orders.SHOW, order_id=run.order_id)["status"] == "succeeded"
