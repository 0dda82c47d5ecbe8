"""The audit log of requests: through which door and from where each came, and how many refusals are recorded."""

from __future__ import annotations

import socket
from collections import Counter
from pathlib import Path

import pytest

from control_plane.contract.declarations import audit
from control_plane.contract.declarations.audit import AuditFilter
from control_plane.contract.declarations.projects import REMOVE
from control_plane.operations.audit import refusal_tally
from control_plane.web.live.topics import TOPICS
from shared.errors import NotFound
from tests.support.fleet import Api, Doc
from tests.support.fleet_tools import WAYS, reached
from tests.support.routes import NOBODY, NOT_FOR_VIEWERS, addresses_of_pages

MISSING = "/api/v1/projects/missing"


def records(api: Api, **filters: object) -> list[Doc]:
    """Newest first."""
    return list(api.client.call(audit.LIST, AuditFilter(everywhere=True, **filters)))


def newest(api: Api) -> tuple[str, ...]:
    record = records(api, limit=1)[0]
    return tuple(record[name] for name in ("door", "actor_kind", "action", "target", "outcome", "code", "address"))


REFUSED = ("remove_project", "missing", "refused", "E-PROJECT-404", "127.0.0.1")


def test_the_door_and_the_address_of_a_request_are_recorded(api: Api, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        api.client.call(REMOVE, slug="missing")
    assert newest(api) == ("cli", "token", *REFUSED)
    with api.http() as script:
        script.delete(MISSING)
    assert newest(api) == ("api", "token", *REFUSED)
    with api.browser() as browser:
        browser.delete(MISSING)
    assert newest(api) == ("page", "session", *REFUSED)
    record = records(api, limit=1)[0]
    assert record["actor"].startswith("login session ")
    assert records(api, actor=record["actor_id"], outcome="refused", limit=1) == [record]
    for way in WAYS:
        with reached(way, api.url, api.token, tmp_path) as client:
            client.refused("cancel_order", order_id=f"for-{way}")
        assert newest(api) == ("mcp", "token", "cancel_order", f"for-{way}", "refused", "E-ORDER-404", "127.0.0.1")


def test_a_known_callers_refusal_is_recorded_once_wherever_it_is_refused(api: Api, tmp_path: Path) -> None:
    head = f"POST /api/v1/projects HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {api.token}\r\n"
    with socket.create_connection(("127.0.0.1", api.core.settings.port)) as leaving:
        # Whoever leaves before the request is complete was not refused.
        leaving.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
    with api.http() as script:
        script.get("/api/v1/nonsense")
        script.post("/api/v1/projects", json={"slug": 1})
        script.post("/api/v1/projects", content=b"x" * 2_200_000)
    with reached("http", api.url, api.token_for("admin"), tmp_path) as client:
        client.refused("list_projects", organization="elsewhere")
    with api.browser() as browser, api.http(None) as thief, api.http(api.add_drone().token) as drone:
        thief.cookies = browser.cookies
        thief.delete(MISSING)
        drone.get("/api/v1/projects")
    refused = records(api, outcome="refused", limit=10)
    assert [(each["door"], each["target"], each["code"]) for each in refused] == [
        ("drone", "GET /api/v1/projects", "E-TOKEN-KIND"),
        ("page", "DELETE /api/v1/projects/missing", "E-BROWSER-KEY"),
        ("mcp", "POST /mcp", "E-ORGANIZATION-404"),
        ("api", "POST /api/v1/projects", "E-BODY-SIZE"),
        ("api", "POST /api/v1/projects", "E-REQUEST"),
        ("api", "GET /api/v1/nonsense", "E-HTTP-404"),
    ]
    assert refused[0]["actor"] == "mila"


def test_what_pages_leave_out_for_a_role_is_not_recorded_as_refused(api: Api) -> None:
    """In the log, it would read as if the user had asked for it."""
    topics = [("topic", name) for name, topic in TOPICS.items() if not topic.takes_id]
    paths = [path for path in addresses_of_pages(api) if NOBODY not in path and path not in NOT_FOR_VIEWERS]
    for role in ("viewer", "operator"):
        with api.browser(token=api.token_for(role)) as browser:
            for path in paths:
                browser.get(path)
            assert browser.get("/live/now", params=topics).status_code == 200
    # What is refused is a page without what its address needs.
    assert {each["code"] for each in records(api, outcome="refused")} == {"E-REQUEST"}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many refusals of one sender in a minute have records of their own: fewer than usual."""
    monkeypatch.setattr(refusal_tally, "SINGLY", 10)
    return 10


def recorded(api: Api, most: int) -> tuple[set[str], int]:
    """Which kinds of senders were refused, and how often; of each minute there are so many records at most."""
    api.app.state.tally.flush(api.core, everything=True)
    written = records(api, outcome="refused", limit=1000)
    assert len(written) <= most * len({each["at"][:16] for each in written})
    return {each["actor_kind"] for each in written}, sum(each["count"] for each in written)


def test_many_refusals_of_a_drone_fill_a_hundred_records_and_a_sum_for_each_minute(api: Api, few: int) -> None:
    with api.http(api.add_drone().token) as hostile:
        for each in range(4 * few):
            hostile.get(f"/api/v1/orders/{each}")
    assert recorded(api, few + 1) == ({"drone"}, 4 * few)


def test_many_refusals_of_a_token_fill_a_hundred_records_and_a_sum_for_each_minute(api: Api, few: int) -> None:
    """Of each reason a sum."""
    with api.http(api.token_for("viewer")) as viewer:
        for each in range(2 * few):
            viewer.delete(f"/api/v1/drones/{each}")
            viewer.get(f"/api/v1/orders?org=elsewhere{each}")
    assert recorded(api, few + 2) == ({"token"}, 4 * few)


def test_refusals_of_unknown_senders_are_summed_and_written_when_the_server_stops(api: Api) -> None:
    for token in (None, "fa_unknown"):
        with api.http(token) as stranger:
            for each in range(20):
                stranger.get(f"/api/v1/orders/{each}")
    api.stop()
    api.restart()
    written = [each for each in records(api, outcome="refused") if each["actor_kind"] == "unknown"]
    counts = Counter[tuple[str, str]]()
    for each in written:
        counts[each["code"], each["address"]] += each["count"]
    assert counts == {("E-TOKEN-MISSING", "127.0.0.1"): 20, ("E-TOKEN-UNKNOWN", "127.0.0.1"): 20}
    assert len(written) < 10


def test_a_drone_joins_is_given_an_order_ends_it_and_leaves(api: Api) -> None:
    api.add_work()
    drone = api.add_drone()
    run = drone.take(api.submit())
    run.says("done")
    run.ends()
    with api.http(drone.token) as http:
        http.delete("/api/v1/registrations/self").raise_for_status()
    found = [each for each in records(api)[::-1] if each["actor"] == "mila"]
    assert {(each["door"], each["organization"]) for each in found[:2]} == {("drone", "default")}
    assert [(each["action"], each["target"].split()[0]) for each in found] == [
        ("register_drone", "join"),
        ("order_succeeded", run.order_id),
        ("unregister_drone", "mila"),
    ]
