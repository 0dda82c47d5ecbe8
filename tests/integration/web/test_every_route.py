"""Every route: without a token, with a wrong one, from another site, under another name, with a stolen cookie."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from sqlalchemy import select

from control_plane.contract.declarations import audit, orders, tokens
from control_plane.contract.declarations.audit import AuditFilter
from control_plane.contract.declarations.operation import every_operation
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.metadata import METADATA
from control_plane.web.access import is_open
from control_plane.web.destinations import local_page
from control_plane.web.rendering import TEMPLATES
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.filled import fill
from tests.support.fleet import BROWSER_KEY, KEY_HEADER, Api, PlayedRun, api_on
from tests.support.routes import NOBODY, addresses, call, named

OPEN = {
    ("GET", "/api/v1/health"),
    ("POST", "/api/v1/registrations"),
    ("GET", "/openapi.json"),
    ("GET", "/login"),
    ("POST", "/login"),
    ("GET", "/login/openid"),
    ("GET", "/login/openid/callback"),
    ("POST", "/login/openid"),
    ("GET", "/answer/000000000000"),
    ("POST", "/answer/000000000000"),
    ("GET", "/metrics"),
}
"""Besides hooks, which answer 401 to what is not signed. The addresses of answers contain the secret themselves, and
metrics, which are off here, have a token of their own."""
ABOVE_VIEWER = [operation for operation in every_operation() if operation.role != "viewer"]
OF_ADMINS = [operation for operation in every_operation() if operation.role == "admin"]
FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://127.0.0.1.evil.example"},
    {"Origin": "http://["},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": ""},
]
"""Headers of pages of other sites, of other ports of this host, and of sandboxed frames."""
TRICKS = [
    "https://evil.example/",
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    " //evil.example",
    "https:evil.example",
    "javascript:alert(1)",
    "@evil.example",
    "http://[",
    "/\u2028/evil.example",
    "",
]


def answer_to(http: httpx.Client, method: str, path: str) -> httpx.Response:
    """The answer, read to its end unless it is a stream, which has none."""
    with http.stream(method, path) as answer:
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):
            answer.read()
        return answer


def test_every_route_but_the_open_ones_answers_401_without_a_token(api: Api) -> None:
    """Also an address that does not exist, and one that takes no such method."""
    routes = addresses(api.app)
    with api.http(None) as stranger:
        answers = {each: answer_to(stranger, *each) for each in [*routes, ("GET", "/api/v1/none"), ("PUT", "/none")]}
    refused = {route: each for route, each in answers.items() if each.status_code == 401}
    assert (answers.keys() - refused.keys(), len(routes) > 120) == (OPEN, True)
    assert {each.headers["content-type"] for each in refused.values()} == {"application/problem+json"}
    assert {each.headers["www-authenticate"].split()[0] for each in refused.values()} == {"Bearer"}


def test_a_drones_token_is_accepted_on_no_route_for_people(api: Api) -> None:
    pages = {each for each in addresses(api.app) if not each[1].startswith(("/api/", "/hooks/"))} - OPEN
    with api.http(api.add_drone().token) as drone:
        statuses = {f"page {method} {path}": answer_to(drone, method, path).status_code for method, path in pages}
        statuses |= {operation.route: call(drone, operation).status_code for operation in every_operation()}
    passed = {route: status for route, status in statuses.items() if status != 403}
    # It only leads to another page.
    assert (len(statuses) > 100, passed) == (True, {"page POST /logout": 303})


def test_a_viewer_is_refused_every_operation_above_the_role(api: Api) -> None:
    """And an operator those of admins, and a viewer the forms of pages as well."""
    passed = {}
    for role, forbidden in (("viewer", ABOVE_VIEWER), ("operator", OF_ADMINS)):
        with api.http(api.token_for(role)) as http:
            answers = {(role, operation.name): call(http, operation) for operation in forbidden}
        assert len(answers) > 25
        passed |= {place: each.text for place, each in answers.items() if each.status_code != 403}
    api.add_work()
    form = {"order_id": api.submit()["id"], "prompt": "x", "project": "demo", "text": "x"}
    with api.browser(token=api.token_for("viewer")) as viewer:
        sent = {
            name: viewer.post(f"/actions/{name}", data=form) for name in ("submit", "cancel_order", "say", "approve")
        }
    passed |= {("page", name): each.text for name, each in sent.items() if each.status_code != 403}
    assert passed == {}


def test_a_form_of_another_site_changes_nothing_on_any_route(api: Api) -> None:
    changing = [each for each in addresses(api.app) if each[0] != "GET"]
    with api.browser() as browser:
        # Each route meets two of the headers, and one route all of them.
        tries = [(route, FOREIGN[(n + m) % len(FOREIGN)]) for n, route in enumerate(changing) for m in (0, 5)]
        tries += [(("POST", "/actions/submit"), headers) for headers in FOREIGN]
        passed = [
            (route, headers)
            for route, headers in tries
            if browser.request(*route, headers=headers).json().get("code") != "E-OTHER-SITE"
        ]
        assert browser.get("/").status_code == 200
    assert (len(changing) > 60, passed) == (True, [])


def test_a_log_in_never_leads_to_another_site(api: Api) -> None:
    assert {target: local_page(target) for target in TRICKS} == dict.fromkeys(TRICKS, "/")
    assert local_page("/orders/1?all=1") == "/orders/1?all=1"
    with api.http(None) as browser:
        form = browser.get("/login", params={"next": "//evil.example"})
        answer = browser.post("/login", data={"token": api.token, "next": "/%09/evil.example/\r\nX-Evil: 1"})
        broken = browser.get("/login", params={"next": "http://["})
    assert "evil.example" not in form.text
    assert (answer.headers["location"], "x-evil" in answer.headers, broken.status_code) == ("/", False, 200)


def test_no_address_that_is_only_opened_changes_anything(api: Api) -> None:
    """A link, a picture of another site, or a program that previews links opens any address."""

    def stored() -> dict[str, list[str]]:
        kept = {}
        with api.core.database.read() as db:
            for table in (each for each in METADATA.sorted_tables if not each.name.startswith("audit")):
                columns = [each for each in table.columns if each.name != "last_used_at"]
                kept[table.name] = sorted(map(repr, db.execute(select(*columns)).all()))
        return kept

    filled = fill(api, system_caller(api.core), "mark")
    paths = [path for method, path in addresses(api.app) if method == "GET"]
    things = [
        re.sub(rf"([a-z-]+)/{NOBODY}", lambda at: f"{at[1]}/{filled.names.get(at[1], NOBODY)}", each) for each in paths
    ]
    link = api.client.call(tokens.CREATE_LOGIN_LINK)["url"].removeprefix(api.url)
    with api.browser() as browser:
        before = stored()
        statuses = [answer_to(browser, "GET", each).status_code for each in {link, *things, *named(paths, filled)}]
        after = stored()
    assert [name for name, rows in after.items() if rows != before[name]] == []
    assert statuses.count(200) > 60


LINK = re.compile(r'href="(/api/v1/[^"]+)"')
READABLE = ("/", "/side", "/orders", "/sessions", "/orders/{order}", "/search", "/live/now")


@contextmanager
def thief_of(api: Api) -> Iterator[httpx.Client]:
    """A client with the cookie of an admin's browser, and nothing else of it."""
    with api.browser() as browser, api.http(None) as thief:
        thief.cookies = browser.cookies
        yield thief


def lacks_key(answer: httpx.Response) -> bool:
    return answer.status_code == 403 and answer.json()["code"] == "E-BROWSER-KEY"


def test_the_cookie_alone_changes_nothing_on_any_route(api: Api) -> None:
    """And reads nothing of the API but what pages link to."""
    asked = [each for each in addresses(api.app) if not is_open(*each) and each != ("POST", "/logout")]
    asked = [each for each in asked if each[0] != "GET" or each[1].startswith("/api/")]
    with thief_of(api) as thief:
        passed = {each for each in asked if not lacks_key(thief.request(*each))}
    changing = {each for each in passed if each[0] != "GET"}
    # To choose what the session's own stream tells takes nothing from its owner.
    assert (len(asked) > 100, changing) == (True, {("POST", "/live/000000000000/topics")})
    reading = sorted(path.rpartition("0/")[2] for _, path in passed - changing)
    assert reading == ["events", "export", "log/000000000000", "patch", "raw/000000000000", "trajectory"]


def test_the_cookie_alone_opens_what_pages_link_to(api: Api) -> None:
    """A browser that follows a link cannot send the key. The link names the organization that the page shows."""
    found = {link for each in TEMPLATES.rglob("*.html") for link in LINK.findall(each.read_text())}
    with thief_of(api) as thief:
        refused = {each for each in found if lacks_key(thief.get(re.sub(r"\{\{.+?\}\}", NOBODY, each)))}
    assert (len(found) > 3, refused) == (True, set())
    assert {each for each in found if not each.endswith("?org={{ caller.organization }}")} == set()


def test_the_cookie_alone_reads_pages_in_which_the_key_is_not_and_logs_out(api: Api, run: PlayedRun) -> None:
    with api.browser() as browser:
        listed = browser.get("/api/v1/login-sessions")
    with thief_of(api) as thief:
        answers = [listed, *(thief.get(path.format(order=run.order_id)) for path in READABLE)]
        assert (thief.post("/logout").status_code, thief.get("/").status_code) == (303, 401)
    assert {each.status_code for each in answers} == {200}
    assert not [each for each in answers if BROWSER_KEY in each.text + str(each.headers)]


def test_a_form_is_accepted_with_the_browsers_key_and_with_no_other(api: Api) -> None:
    api.add_work()
    form = {"prompt": "Fix it", "project": "demo"}
    with thief_of(api) as thief:
        for wrong in ({}, {"browser_key": ""}, {"browser_key": BROWSER_KEY[:-1]}, {"browser_key": "0" * 64}):
            assert lacks_key(thief.post("/actions/submit", data={**form, **wrong}))
        assert thief.post("/actions/submit", data={**form, "browser_key": BROWSER_KEY}).status_code == 303
        # The key is not taken from a cookie or an address, nor that of another session.
        thief.cookies.set("browser_key", BROWSER_KEY)
        assert lacks_key(thief.post("/api/v1/login-links", params={"browser_key": BROWSER_KEY}, json={}))
    with api.browser() as browser, api.http(None) as other:
        other.post("/login", data={"token": api.token, "browser_key": "o" * 64})
        browser.cookies = other.cookies
        assert lacks_key(browser.post("/api/v1/login-links"))
    assert len(api.client.call(orders.LIST)) == 1


@pytest.mark.parametrize("log_in", [{}, {"browser_key": ""}, {"browser_key": "k" * 31}])
def test_a_browser_that_logs_in_without_a_key_reads_and_changes_nothing(api: Api, log_in: dict[str, str]) -> None:
    with api.http(None, **{KEY_HEADER: log_in.get("browser_key", "")}) as browser:
        browser.post("/login", data={"token": api.token, **log_in})
        assert browser.get("/settings").status_code == 200
        assert lacks_key(browser.post("/api/v1/login-links"))


def test_a_session_that_was_begun_without_scripts_sends_forms_and_reaches_nothing_else(api: Api) -> None:
    api.add_work()
    order = {"prompt": "Fix it", "project": "demo"}
    with api.http(None) as browser, api.http(None) as keyed:
        browser.post("/login", data={"token": api.token, "without_key": "true"})
        assert browser.post("/actions/submit", data=order).status_code == 303
        others = browser.post("/api/v1/login-links"), browser.get("/api/v1/orders")
        # A browser with a key cannot be talked out of it.
        keyed.post("/login", data={"token": api.token, "without_key": "true", "browser_key": BROWSER_KEY})
        others += browser.post("/actions/submit", json=order), keyed.post("/actions/submit", data=order)
    assert all(map(lacks_key, others))


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


REBOUND = {"Host": "evil.example:8420"}
ANY_NAME = {("GET", "/api/v1/health"), ("POST", "/api/v1/registrations")}


def test_no_route_answers_under_another_name(api: Api) -> None:
    """Neither to a stranger nor to a session; and it is counted in the audit log."""
    others = {("POST", "/mcp"), ("GET", "/static/css/base.css"), ("GET", "/nonsense"), ("GET", "/api/v1/orders")}
    routes = {each for each in addresses(api.app) if not each[1].startswith("/hooks/")} - ANY_NAME | others
    for client, asked in ((api.http(None), others), (api.browser(), routes)):
        with client as caller:
            answers = {route: caller.request(*route, headers=REBOUND) for route in asked}
            page = caller.get("/orders", headers={**REBOUND, "Accept": "text/html"})
        told = {route: (each.status_code, each.json()["code"]) for route, each in answers.items()}
        assert told == dict.fromkeys(asked, (403, "E-HOST"))
        # A browser gets a page that says which name to use.
        assert (page.status_code, "E-HOST" in page.text, api.core.settings.url in page.text) == (403, True, True)
    assert len(routes) > 120
    api.app.state.tally.flush(api.core, everything=True)
    found = api.client.call(audit.LIST, AuditFilter(everywhere=True, code="E-HOST", door="api", limit=1))
    assert [(each["actor_kind"], each["address"]) for each in found] == [("unknown", "127.0.0.1")]


def test_load_balancers_scripts_drones_and_code_hosts_may_use_any_name_and_no_session_beside_their_token(
    api: Api,
) -> None:
    drone = api.add_drone()
    with api.http(**REBOUND) as script, api.http(drone.token, **REBOUND) as machine, api.http(None, **REBOUND) as other:
        answers = [script.get(path) for path in ("/api/v1/orders", "/orders", "/mcp")]
        answers += [other.get("/api/v1/health"), other.post("/api/v1/registrations", json={}), other.post("/hooks/x")]
        with api.browser() as browser:
            for token in ("fa_unknown", "fd_unknown", drone.token):
                headers = {**REBOUND, "Authorization": f"Bearer {token}"}
                assert browser.get("/api/v1/orders", headers=headers).status_code in {401, 403}
                assert browser.get("/", headers=headers).json()["code"] == "E-HOST"
        answers.append(machine.delete("/api/v1/registrations/self"))
    assert [each.status_code for each in answers] == [200, 403, 403, 200, 422, 401, 204]
