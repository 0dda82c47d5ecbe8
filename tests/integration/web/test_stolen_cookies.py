"""A session cookie alone: browsers also send it to other servers of the same host, so it must not be worth much."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from control_plane.declarations import orders
from control_plane.web.access import is_open
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.fleet import BROWSER_KEY, KEY_HEADER, Api, PlayedRun, api_on
from tests.support.routes import addresses

READABLE = ("/", "/side", "/orders", "/sessions", "/orders/{order}", "/search", "/live/now")


@contextmanager
def thief_of(api: Api) -> Iterator[httpx.Client]:
    """A client with the cookie of an admin's browser, and nothing else of it."""
    with api.browser() as browser, api.http(None) as thief:
        thief.cookies = browser.cookies
        yield thief


def refused(answer: httpx.Response) -> bool:
    return answer.status_code == 403 and answer.json()["code"] == "E-BROWSER-KEY"


def test_the_cookie_alone_changes_nothing_on_any_route(api: Api) -> None:
    changing = [each for each in addresses(api.app) if each[0] != "GET" and not is_open(*each)]
    with thief_of(api) as thief:
        passed = [each for each in changing if each != ("POST", "/logout") and not refused(thief.request(*each))]
    # To choose what the session's own stream tells takes nothing from its owner.
    assert (len(changing) > 60, passed) == (True, [("POST", "/live/000000000000/topics")])


def test_the_cookie_alone_reads_no_route_of_the_api_but_what_pages_link_to(api: Api) -> None:
    reading = [each for each in addresses(api.app) if each[0] == "GET" and each[1].startswith("/api/")]
    with thief_of(api) as thief:
        answers = {path: thief.get(path) for _, path in reading if not is_open("GET", path)}
    passed = [path.rpartition("0/")[2] for path, answer in answers.items() if not refused(answer)]
    assert (len(answers) > 40, sorted(passed)) == (True, ["events", "log/000000000000", "patch"])


def test_the_cookie_alone_reads_pages_and_logs_out(api: Api, run: PlayedRun) -> None:
    with thief_of(api) as thief:
        for path in READABLE:
            assert thief.get(path.format(order=run.order_id)).status_code == 200
        assert thief.post("/logout").status_code == 303
        assert thief.get("/").status_code == 401


def test_a_form_is_accepted_with_the_browsers_key_and_with_no_other(api: Api) -> None:
    api.add_work()
    form = {"prompt": "Fix it", "project": "demo"}
    with thief_of(api) as thief:
        for wrong in ({}, {"browser_key": ""}, {"browser_key": BROWSER_KEY[:-1]}, {"browser_key": "0" * 64}):
            assert refused(thief.post("/actions/submit", data={**form, **wrong}))
        assert thief.post("/actions/submit", data={**form, "browser_key": BROWSER_KEY}).status_code == 303
    assert len(api.client.call(orders.LIST)) == 1


def test_the_key_is_not_taken_from_an_address_a_cookie_or_another_session(api: Api) -> None:
    with thief_of(api) as thief:
        thief.cookies.set("browser_key", BROWSER_KEY)
        assert refused(thief.post("/api/v1/login-links", params={"browser_key": BROWSER_KEY}, json={}))
    with api.browser() as browser, api.http(None) as other:
        other.post("/login", data={"token": api.token, "browser_key": "o" * 64})
        browser.cookies = other.cookies
        assert refused(browser.post("/api/v1/login-links"))


def test_a_browser_that_logs_in_without_a_key_reads_and_changes_nothing(api: Api) -> None:
    for key in ("", "short", "k" * 31, None):
        with api.http(None) as browser:
            browser.post("/login", data={"token": api.token, **({} if key is None else {"browser_key": key})})
            assert browser.get("/").status_code == 200
            assert refused(browser.post("/api/v1/login-links", headers={KEY_HEADER: key or ""})), key


def test_a_session_that_was_begun_without_scripts_sends_forms_and_reaches_nothing_else(api: Api) -> None:
    api.add_work()
    order = {"prompt": "Fix it", "project": "demo"}
    with api.http(None) as browser, api.http(None) as keyed:
        browser.post("/login", data={"token": api.token, "without_key": "true"})
        assert browser.post("/actions/submit", data=order).status_code == 303
        assert refused(browser.post("/api/v1/login-links"))
        assert refused(browser.get("/api/v1/orders"))
        assert refused(browser.post("/actions/submit", json=order))
        # A browser with a key cannot be talked out of it.
        keyed.post("/login", data={"token": api.token, "without_key": "true", "browser_key": BROWSER_KEY})
        assert refused(keyed.post("/actions/submit", data=order))


def test_no_answer_contains_the_key(api: Api, run: PlayedRun) -> None:
    with api.browser() as browser:
        pages = [browser.get(path.format(order=run.order_id)) for path in READABLE]
        listed = browser.get("/api/v1/login-sessions")
    assert len(listed.json()) == 1
    assert not [each for each in (*pages, listed) if BROWSER_KEY in each.text + str(each.headers)]


def test_over_tls_only_a_cookie_that_the_host_itself_set_is_accepted(
    sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    with api_on(sqlite_url, valkey, core_factory, public_url="https://fleet.example") as api, api.browser() as browser:
        cookie = next(iter(browser.cookies.jar))
        set_by_others = cookie.name.removeprefix("__Host-")
        answers = [
            browser.get("/api/v1/whoami", headers={"Cookie": f"{name}={cookie.value}"})
            for name in (cookie.name, set_by_others)
        ]
    assert cookie.name == f"__Host-fleet_session_{api.port}"
    assert (cookie.secure, cookie.path, cookie.domain_specified) == (True, "/", False)
    assert [each.status_code for each in answers] == [200, 401]
