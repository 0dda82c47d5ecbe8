"""Requests that were sent to a name that is not the control plane's, as those of a page that was rebound to it."""

from __future__ import annotations

import httpx
import pytest

from control_plane.declarations import audit
from control_plane.declarations.audit import AuditFilter
from tests.support.fleet import Api
from tests.support.routes import addresses

REBOUND = {"Host": "evil.example:8420"}
ANY_NAME = {("GET", "/api/v1/health"), ("POST", "/api/v1/registrations")}


def refused(answers: dict[tuple[str, str], httpx.Response]) -> set[tuple[str, str]]:
    return {route for route, each in answers.items() if (each.status_code, each.json()["code"]) == (403, "E-HOST")}


@pytest.mark.parametrize("credentials", ["none", "session"])
def test_no_route_answers_under_another_name(api: Api, credentials: str) -> None:
    routes = {each for each in addresses(api.app) if not each[1].startswith("/hooks/")} - ANY_NAME
    routes |= {("POST", "/mcp"), ("GET", "/static/css/base.css"), ("GET", "/favicon.ico"), ("GET", "/nonsense")}
    client = {"none": lambda: api.http(None), "session": api.browser}[credentials]
    with client() as caller:
        answers = {route: caller.request(*route, headers=REBOUND) for route in routes}
        page = caller.get("/orders", headers={**REBOUND, "Accept": "text/html"})
    assert (len(routes) > 120, routes - refused(answers)) == (True, set())
    # A browser gets a page that says which name to use.
    assert (page.status_code, "E-HOST" in page.text, api.core.settings.url in page.text) == (403, True, True)


def test_load_balancers_scripts_drones_and_code_hosts_may_use_any_name(api: Api) -> None:
    drone = api.add_drone()
    with api.http() as script:
        answers = [script.get(path, headers=REBOUND) for path in ("/api/v1/orders", "/orders", "/mcp")]
    assert [each.status_code for each in answers] == [200, 403, 403]
    with api.http(drone.token) as machine, api.http(None) as stranger:
        left = machine.delete("/api/v1/registrations/self", headers=REBOUND)
        answers = [
            stranger.get("/api/v1/health", headers=REBOUND),
            stranger.post("/api/v1/registrations", json={}, headers=REBOUND),
            stranger.post("/hooks/missing", json={}, headers=REBOUND),
        ]
    assert (left.status_code, [each.status_code for each in answers]) == (204, [200, 422, 401])


def test_a_drones_token_under_another_name_does_not_admit_the_session_beside_it(api: Api) -> None:
    with api.browser() as browser:
        for token in ("fa_unknown", "fd_unknown", api.add_drone().token):
            answer = browser.get("/api/v1/orders", headers={**REBOUND, "Authorization": f"Bearer {token}"})
            page = browser.get("/", headers={**REBOUND, "Authorization": f"Bearer {token}"})
            assert (answer.status_code in {401, 403}, page.json()["code"]) == (True, "E-HOST")


def test_what_was_sent_to_another_name_is_counted_in_the_audit_log(api: Api) -> None:
    with api.http(None, **REBOUND) as stranger:
        stranger.get("/api/v1/orders")
    api.app.state.tally.flush(api.core, everything=True)
    found = api.client.call(audit.LIST, AuditFilter(everywhere=True, code="E-HOST", door="api", limit=1))
    assert [(each["actor_kind"], each["address"]) for each in found] == [("unknown", "127.0.0.1")]
