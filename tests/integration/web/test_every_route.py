"""Every route, without a token, with the wrong kind of token, with a role that is too low, from another site."""

from __future__ import annotations

from control_plane.declarations.operation import every_operation
from control_plane.web.local_page import local_page
from tests.support.fleet import Api
from tests.support.routes import addresses, call

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
    {"Origin": "http://127.0.0.1"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://127.0.0.1.evil.example"},
    {"Origin": "HTTPS://user@evil.example"},
    {"Origin": ""},
    {"Origin": "http://["},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": ""},
]
"""Headers of pages of other sites, of other ports of this host, and of sandboxed frames."""
TRICKS = [
    "https://evil.example/",
    "HTTPS://evil.example",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "\t//evil.example",
    " //evil.example",
    "https:evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "evil.example",
    "@evil.example",
    "http://[",
    "//[",
    "/\u2028/evil.example",
    "",
]


def test_every_route_but_the_open_ones_answers_401_without_a_token(api: Api) -> None:
    with api.http(None) as stranger:
        answers = {route: stranger.request(*route) for route in addresses(api.app)}
    refused = {route: each.headers["content-type"] for route, each in answers.items() if each.status_code == 401}
    assert (len(refused) > 110, answers.keys() - refused.keys()) == (True, OPEN)
    assert set(refused.values()) == {"application/problem+json"}


def test_a_drones_token_is_accepted_on_no_route_for_people(api: Api) -> None:
    pages = {each for each in addresses(api.app) if not each[1].startswith(("/api/", "/hooks/"))} - OPEN
    with api.http(api.add_drone().token) as drone:
        answers = {f"page {method} {path}": drone.request(method, path) for method, path in pages}
        answers |= {operation.route: call(drone, operation) for operation in every_operation()}
    passed = {route: each.text for route, each in answers.items() if each.status_code != 403}
    # It only leads to another page.
    assert (len(answers) > 100, passed) == (True, {"page POST /logout": ""})


def test_a_viewer_is_refused_every_operation_above_the_role(api: Api) -> None:
    with api.http(api.token_for("viewer")) as viewer:
        answers = {operation.name: call(viewer, operation) for operation in ABOVE_VIEWER}
    passed = {name: each.text for name, each in answers.items() if each.status_code != 403}
    assert (len(answers) > 50, passed) == (True, {})


def test_an_operator_is_refused_every_operation_of_admins(api: Api) -> None:
    with api.http(api.token_for("operator")) as operator:
        answers = {operation.name: call(operator, operation) for operation in OF_ADMINS}
    passed = {name: each.text for name, each in answers.items() if each.status_code != 403}
    assert (len(answers) > 25, passed) == (True, {})


def test_a_viewer_changes_nothing_on_the_pages(api: Api) -> None:
    api.add_work()
    order = api.submit()["id"]
    form = {"order_id": order, "prompt": "x", "project": "demo", "text": "x"}
    actions = ("submit", "cancel_order", "say", "approve", "deny", "answer_order", "retry", "resume")
    with api.browser(token=api.token_for("viewer")) as viewer:
        statuses = {name: viewer.post(f"/actions/{name}", data=form).status_code for name in actions}
    assert set(statuses.values()) == {403}, statuses


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


def test_a_log_in_never_leads_to_another_site() -> None:
    assert {target: local_page(target) for target in TRICKS} == dict.fromkeys(TRICKS, "/")
    assert local_page("/orders/1?all=1") == "/orders/1?all=1"


def test_the_page_and_the_answer_of_a_log_in_lead_only_to_pages_of_ours(api: Api) -> None:
    with api.http(None) as browser:
        form = browser.get("/login", params={"next": "//evil.example"})
        answer = browser.post("/login", data={"token": api.token, "next": "/%09/evil.example/\r\nX-Evil: 1"})
        broken = browser.get("/login", params={"next": "http://["})
    assert "evil.example" not in form.text
    assert (answer.headers["location"], "x-evil" in answer.headers, broken.status_code) == ("/", False, 200)
