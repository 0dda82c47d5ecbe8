"""The one stream of a browser: what open pages are told, and what they are not."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from control_plane.declarations import projects, tokens
from control_plane.declarations.orders import SHOW
from control_plane.declarations.organizations import ADD, OrganizationRequest
from control_plane.declarations.projects import ProjectEdit
from control_plane.web.live import topics as live_topics
from control_plane.web.live.page_stream import MOST_TOPICS
from control_plane.web.live.topics import GONE, TOPICS
from tests.support import wait_until
from tests.support.fleet import Api, PlayedRun
from tests.support.live_pages import live


def versions(browser: httpx.Client, *topics: str) -> dict[str, str]:
    answer = browser.get("/live/now", params=[("topic", each) for each in topics]).raise_for_status().json()
    return dict(answer["versions"])


def test_a_stream_says_hello_then_the_version_of_each_topic(api: Api, run: PlayedRun) -> None:
    order = f"order:{run.order_id}"
    with api.browser() as browser, live(browser, "orders", "fleet", order) as stream:
        wait_until(lambda: stream.versions() == versions(browser, "orders", "fleet", order))


def look_every(monkeypatch: pytest.MonkeyPatch, name: str, seconds: float) -> None:
    """Compute the version of this topic so often without news."""
    monkeypatch.setitem(TOPICS, name, replace(TOPICS[name], every_s=seconds))  # type: ignore[arg-type]


def test_a_new_order_changes_the_list_although_the_stream_would_not_look_by_itself(
    api: Api, run: PlayedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_every(monkeypatch, "orders", 3600.0)
    api.wait_for_hub()
    with api.browser() as browser, live(browser, orders=versions(browser, "orders")["orders"]) as stream:
        api.submit()
        wait_until(lambda: stream.told("orders") >= 1)
        assert stream.versions() == versions(browser, "orders")


def test_after_a_gap_only_what_changed_is_told(api: Api, run: PlayedRun) -> None:
    other = api.submit()["id"]
    topics = (f"order:{run.order_id}", f"order:{other}")
    with api.browser() as browser:
        known = versions(browser, "projects", *topics)
        run.says("while nobody listened")
        with live(browser, **known) as stream:
            wait_until(lambda: stream.told(topics[0]) == 1)
            run.says("and now that somebody does")
            wait_until(lambda: stream.told(topics[0]) == 2)
            assert (stream.told(topics[1]), stream.told("projects")) == (0, 0)


def test_text_in_flight_comes_after_the_step_before_it(api: Api, run: PlayedRun) -> None:
    order = f"order:{run.order_id}"
    with api.browser() as browser, live(browser, order) as stream:
        wait_until(lambda: stream.told(order))
        run.streams("Let me ", offset=0)
        wait_until(lambda: stream.of("delta"))
        run.says("Let me look.")
        run.streams("And then", offset=0)
        wait_until(lambda: any(each["text"] == "And then" for each in stream.of("delta")))
        kinds = [kind for kind, _ in stream.events if kind in {"changed", "delta"}]
        last = api.client.call(SHOW, order_id=run.order_id)["steps"][-1]["seq"]
    assert kinds == ["changed", "delta", "changed", "delta"]
    assert [each["after"] for each in stream.of("delta")] == [last - 1, last]


def test_topics_come_and_go_on_an_open_stream(api: Api, run: PlayedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    # A topic that is followed is then looked at in every round, before the ones that were added later.
    look_every(monkeypatch, "projects", 0.0)
    monkeypatch.setattr(live_topics, "FRESH_S", 0.0)
    with api.browser() as browser, live(browser, "projects") as stream:
        wait_until(lambda: stream.told("projects"))
        assert stream.follow({"orders": ""}).status_code == 204
        wait_until(lambda: stream.told("orders"))
        api.client.call(projects.EDIT, ProjectEdit(description="changed"), slug="demo")
        told = stream.told("orders")
        api.submit()
        wait_until(lambda: stream.told("orders") > told)
        assert stream.told("projects") == 1


def test_names_that_are_no_topics_are_ignored(api: Api, run: PlayedRun) -> None:
    strange = {"none": "", "orders:1": "", "order": "", "order:": "", "": "", "projects": ""}
    with api.browser() as browser, live(browser) as stream:
        answer = stream.follow(strange | {f"order:{number}": "" for number in range(2 * MOST_TOPICS)})
        assert answer.status_code == 204, answer.text
        wait_until(lambda: stream.told("projects"))
        wait_until(lambda: stream.told("order:5"))
        assert stream.versions()["order:5"] == GONE
        assert len(stream.versions()) <= MOST_TOPICS


def test_a_stream_belongs_to_the_session_that_opened_it(api: Api) -> None:
    with api.browser() as browser, api.browser() as other, live(browser, "orders") as stream:
        answer = other.post(f"/live/{stream.of('hello')[0]['stream']}/topics", json={})
        assert (answer.status_code, answer.json()["code"]) == (404, "E-STREAM-404")
        assert browser.post("/live/none/topics", json={}).status_code == 404


def test_an_order_of_another_organization_is_told_as_gone(api: Api, run: PlayedRun) -> None:
    api.client.call(ADD, OrganizationRequest(name="elsewhere"))
    with api.http() as admin:
        made = admin.post("/api/v1/api-tokens", params={"org": "elsewhere"}, json={"role": "admin"}).json()
    with api.browser(token=made["token"]) as stranger:
        order = f"order:{run.order_id}"
        assert versions(stranger, order) == {order: GONE}
        with live(stranger, order) as stream:
            run.streams("secret")
            run.says("secret")
            wait_until(lambda: stream.told(order))
            assert (stream.versions(), stream.of("delta")) == ({order: GONE}, [])


def test_a_stream_ends_with_its_session(api: Api) -> None:
    with api.browser() as browser, live(browser, "orders") as stream:
        session = api.client.call(tokens.LIST_LOGIN_SESSIONS)[0]["id"]
        api.client.call(tokens.END_LOGIN_SESSION, login_session_id=session)
        wait_until(lambda: stream.closed)
        assert browser.get("/live/now", headers={"Accept": "application/json"}).status_code == 401
