"""Flower at `/flower`: behind the log-in of the pages, with their protection against other sites, and audited."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest

from control_plane.declarations import audit
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.fleet import KEY_HEADER, Api, api_on
from tests.support.flower import PASSWORD, api_with_flower

REVOKE = "/flower/api/task/revoke/000000000000"
PAGES = ("/flower/", "/flower/workers", "/flower/tasks", "/flower/broker", "/flower/metrics", "/flower/api/tasks")
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def flower(sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[Api]:
    with api_with_flower(sqlite_url, valkey, core_factory) as api:
        yield api


def test_flower_is_for_admins_of_everything_and_keeps_cookies_and_passwords_to_itself(flower: Api) -> None:
    drone, html = flower.add_drone(), {"Accept": "text/html"}
    with (
        flower.browser() as admin,
        flower.browser(token=flower.token_for("operator")) as operator,
        flower.http(flower.token_for("admin")) as of_one,
        flower.http(drone.token) as machine,
        flower.http(None) as nobody,
    ):
        shown = [admin.get(page) for page in PAGES]
        refused = [operator.get(page, headers=html) for page in PAGES]
        logged_out = [nobody.get(page, headers=html) for page in PAGES]
        codes = {http.get("/flower/").json()["code"] for http in (operator, of_one, machine)}
        linked = "Flower" in operator.get("/").text

        assert [answer.status_code for answer in shown] == [200] * len(PAGES)
        assert not any("set-cookie" in answer.headers or PASSWORD in answer.text for answer in shown)
        assert "'unsafe-inline'" not in shown[0].headers["content-security-policy"].partition("style-src")[0]
        assert "'unsafe-inline'" not in admin.get("/").headers["content-security-policy"]
        assert KEY_HEADER in admin.get("/flower/static/js/flower.js").text
    assert (codes, linked) == ({"E-ROLE", "E-EVERYWHERE", "E-TOKEN-KIND"}, False)
    assert [answer.status_code for answer in refused] == [403] * len(PAGES)
    # A page that says who may.
    assert all("This requires the role admin; your token has the role operator" in answer.text for answer in refused)
    assert [answer.headers["location"] for answer in logged_out] == [f"/login?next={page}" for page in PAGES]
    address = f"{flower.core.settings.flower_upstream}/flower/api/workers"
    assert httpx.get(address, headers={"Authorization": f"Bearer {flower.token}"}).status_code == 401


def test_a_change_in_flower_needs_the_browsers_key_and_the_own_site_and_is_audited(flower: Api) -> None:
    with flower.browser() as admin:
        other_site = admin.post(REVOKE, headers={"Sec-Fetch-Site": "cross-site"})
        without_key = admin.post(REVOKE, headers={KEY_HEADER: ""})
        done = admin.post(REVOKE)
        listed = admin.post("/flower/tasks/datatable", data={"draw": 1, "start": 0, "length": 5, "order[0][column]": 0})

    assert (other_site.json()["code"], without_key.status_code, done.status_code) == ("E-OTHER-SITE", 403, 200)
    assert listed.status_code == 200
    records = [each for each in flower.client.call(audit.LIST) if each["action"] == "change_in_flower"]
    assert {each["outcome"] for each in records} == {"began", "changed"}
    assert {each["target"] for each in records} == {f"POST {REVOKE}"}


def test_without_flower_the_page_says_how_to_start_it(api: Api) -> None:
    with api.http() as admin:
        answer = admin.get("/flower/")

    assert (answer.status_code, answer.json()["code"]) == (404, "E-FLOWER-OFF")


def test_runs_link_to_their_tasks_for_those_who_may_use_flower(
    sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    settings = {"flower_upstream": "http://127.0.0.1:9", "flower_password": PASSWORD}
    with api_on(sqlite_url, valkey, core_factory, **settings) as api:
        api.add_work()
        order = api.submit()
        run = api.add_drone().take(order)
        shown = []
        for token in (api.token, api.token_for("admin"), api.token_for("viewer")):
            with api.http(token) as http:
                shown.append(http.get(f"/api/v1/orders/{order['id']}").json()["runs"][0]["flower"])
        assert shown == [f"{api.core.settings.url}/flower/task/{run.id}", None, None]


class _Recorder(BaseHTTPRequestHandler):
    """Keeps the headers of each request, and answers with a cookie and a redirect to another site."""

    received: list[dict[str, str]]

    def do_GET(self) -> None:
        self.received.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(302)
        self.send_header("Set-Cookie", "fleet_session_8420=planted; Path=/")
        self.send_header("Location", "https://evil.example/")
        self.send_header("Content-Length", "0")
        self.end_headers()


def test_no_cookie_token_or_foreign_redirect_passes_the_proxy(
    sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    _Recorder.received = []
    with HTTPServer(("127.0.0.1", 0), _Recorder) as upstream:
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        settings = {"flower_upstream": f"http://127.0.0.1:{upstream.server_port}", "flower_password": PASSWORD}
        with (
            api_on(sqlite_url, valkey, core_factory, **settings) as api,
            api.browser() as browser,
            api.http() as script,
        ):
            answers = [browser.get("/flower/"), script.get("/flower/")]
        upstream.shutdown()

    assert len(_Recorder.received) == 2
    assert all(not {"cookie", KEY_HEADER.lower()} & set(each) for each in _Recorder.received)
    assert {each["authorization"] for each in _Recorder.received} == {httpx.BasicAuth("fleet", PASSWORD)._auth_header}
    assert not any({"set-cookie", "location"} & set(answer.headers) for answer in answers)
