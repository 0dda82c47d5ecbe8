"""The one stream of a browser: what open pages are told, and what they are not."""

from __future__ import annotations

import html
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
from httpx_sse import EventSource
from sqlalchemy import update

from control_plane.contract.declarations import orders, projects, sessions, tokens
from control_plane.contract.declarations.batches import BatchRequest
from control_plane.contract.declarations.graphs import GraphRequest
from control_plane.contract.declarations.orders import SHOW, CancelRequest
from control_plane.contract.declarations.organizations import ADD, OrganizationRequest
from control_plane.contract.declarations.projects import ProjectEdit
from control_plane.contract.declarations.sessions import SessionEdit
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.db.teams import Task
from control_plane.operations import graphs
from control_plane.operations.batches import submitting
from control_plane.web.forms.filters import Filters
from control_plane.web.live import page_stream
from control_plane.web.live import topics as live_topics
from control_plane.web.live.page_stream import MOST_TOPICS
from control_plane.web.live.topics import GONE, SHELL, TOPICS
from shared.events import AssistantStep, Usage
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.fleet import Api, Follower, PlayedRun, api_on
from tests.support.made import submit
from tests.support.postgres import PostgresServer
from tests.support.team_rows import add_agent, add_task


@dataclass
class LiveStream:
    """One open stream, as a browser's shared worker holds it, read in a thread."""

    browser: httpx.Client
    topics: Mapping[str, str]
    """With the versions that the pages have."""
    events: list[tuple[str, Any]] = field(default_factory=list)
    closed: bool = False
    ended: bool = False
    """Whether the server itself closed it."""
    response: httpx.Response | None = None

    def of(self, kind: str) -> list[Any]:
        """The data of all events of this kind so far."""
        return [data for event, data in list(self.events) if event == kind]

    def versions(self) -> dict[str, str]:
        """The version of each topic as last told."""
        return {each["topic"]: each["version"] for each in self.of("changed")}

    def told(self, topic: str) -> int:
        """How often this topic was told to have changed."""
        return len([each for each in self.of("changed") if each["topic"] == topic])

    def follow(self, topics: Mapping[str, str]) -> httpx.Response:
        """Follow other topics from now on."""
        return self.browser.post(f"/live/{self.of('hello')[0]['stream']}/topics", json=dict(topics))

    def read(self) -> None:
        query = [("topic", f"{topic}={version}") for topic, version in self.topics.items()]
        with (
            suppress(httpx.TransportError, httpx.StreamError),
            self.browser.stream("GET", "/live", params=query, timeout=None) as self.response,
        ):
            for message in EventSource(self.response).iter_sse():
                self.events.append((message.event, json.loads(message.data)))
            self.ended = True
        self.closed = True


@contextmanager
def live(browser: httpx.Client, *topics: str, **versions: str) -> Iterator[LiveStream]:
    """A stream that said hello; it is closed at the end."""
    with httpx.Client(
        base_url=browser.base_url, headers=browser.headers, cookies=browser.cookies, trust_env=False
    ) as own:
        stream = LiveStream(own, {**dict.fromkeys(topics, ""), **versions})
        thread = threading.Thread(target=stream.read, daemon=True)
        thread.start()
        wait_until(lambda: stream.of("hello"))
        try:
            yield stream
        finally:
            # The socket of one that the server closed is gone.
            if (
                stream.response is not None
                and not stream.closed
                and (network := stream.response.extensions.get("network_stream"))
            ):
                network.get_extra_info("socket").shutdown(2)
            thread.join(60)
            assert not thread.is_alive()


def versions(browser: httpx.Client, *topics: str) -> dict[str, str]:
    answer = browser.get("/live/now", params=[("topic", each) for each in topics]).raise_for_status().json()
    return dict(answer["versions"])


def test_a_stream_says_the_version_of_each_topic(api: Api, run: PlayedRun) -> None:
    topics = "orders", "fleet", f"order:{run.order_id}"
    with api.browser() as browser, live(browser, *topics) as stream:
        wait_until(lambda: stream.versions() == versions(browser, *topics))


def test_steps_change_a_list_only_from_time_to_time_and_anything_else_at_once(
    api: Api, run: PlayedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, read = list[float](), TOPICS["orders"].source
    counted = lambda *about: (reads.append(time.monotonic()), read(*about))[1]  # noqa: E731
    slow = replace(TOPICS["orders"], every_s=3600.0, steps_s=3600.0, source=counted)
    monkeypatch.setitem(TOPICS, "orders", slow)  # type: ignore[arg-type]
    api.wait_for_hub()
    order = f"order:{run.order_id}"
    with api.browser() as browser, live(browser, "orders", order) as stream:
        wait_until(lambda: stream.told("orders") and stream.told(order))
        reads.clear()
        for _ in range(3):
            told = stream.told(order)
            run.step(AssistantStep(text="paid", usage=Usage(input_tokens=10, cost_usd=0.5)))
            wait_until(lambda told=told: stream.told(order) > told)
        assert reads == []
        run.asks("c1", "shell", "Publishes commits")
        wait_until(lambda: stream.told("orders") == 2)
        monkeypatch.setitem(TOPICS, "orders", replace(slow, steps_s=0.1))  # type: ignore[arg-type]
        run.step(AssistantStep(text="paid", usage=Usage(input_tokens=10, cost_usd=0.5)))
        wait_until(lambda: stream.told("orders") == 3)
        api.submit()
        wait_until(lambda: stream.told("orders") > 3)


def test_an_order_that_changes_without_a_step_is_told_at_once(
    api: Api, run: PlayedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TOPICS, "order", replace(TOPICS["order"], every_s=3600.0))  # type: ignore[arg-type]
    api.wait_for_hub()
    order = f"order:{run.order_id}"
    with api.browser() as browser, live(browser, order) as stream:
        wait_until(lambda: stream.told(order))
        api.client.call(orders.CANCEL, CancelRequest(), order_id=run.order_id)
        wait_until(lambda: stream.told(order) == 2)


def test_a_step_is_told_before_lists_are_read(api: Api, run: PlayedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    lists, order = ("shell", "inbox", "orders", "fleet"), f"order:{run.order_id}"
    reading, told = threading.Event(), threading.Event()
    for name in lists:
        monkeypatch.setitem(TOPICS, name, replace(TOPICS[name], every_s=3600.0))  # type: ignore[arg-type]
    api.wait_for_hub()
    with api.browser() as browser, live(browser, *lists, order) as stream:
        wait_until(lambda: all(stream.told(each) for each in (*lists, order)))
        before = stream.told(order)
        for name in lists:
            read = TOPICS[name].source
            held = lambda *about, read=read: (reading.set(), told.wait(60), read(*about))[2]  # noqa: E731
            monkeypatch.setitem(TOPICS, name, replace(TOPICS[name], source=held))  # type: ignore[arg-type]
        run.asks("c1", "shell", "Publishes commits")
        wait_until(lambda: stream.told(order) > before)
        assert (reading.wait(60), told.is_set()) == (True, False)
        told.set()


SHOWN = {
    ("orders", "text=oldest&status=queued"): True,
    ("orders", "limit=100&all=yes"): True,
    ("orders", "limit=60"): True,
    ("orders", ""): False,
    ("orders", "text=order"): False,
    ("orders", "since=2001-01-01"): False,
    ("sessions", "text=oldest"): True,
    ("sessions", "limit=100"): True,
    ("sessions", ""): False,
    ("sessions", "project=demo"): False,
}
"""Lists, by the terms of their address, and whether they show the oldest of 53 orders and its session."""


def test_lists_wait_until_a_page_has_fetched_the_step_that_it_was_told_of(
    api: Api, run: PlayedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, reads, read = f"order:{run.order_id}", list[str](), TOPICS["orders"].source
    counted = lambda *about: (reads.append("orders"), read(*about))[1]  # noqa: E731
    slow = replace(TOPICS["orders"], every_s=3600.0, pause_s=0.0, steps_s=0.001, source=counted)
    monkeypatch.setitem(TOPICS, "orders", slow)  # type: ignore[arg-type]
    monkeypatch.setattr(page_stream, "FETCH_S", 3600.0)
    api.wait_for_hub()
    with api.browser() as browser, live(browser, "orders") as stream:
        wait_until(lambda: stream.told("orders"))
        stream.follow({"orders": stream.versions()["orders"], order: ""})
        wait_until(lambda: stream.told(order))
        reads.clear()
        for _ in range(3):
            told = stream.told(order)
            run.says("looked")
            wait_until(lambda told=told: stream.told(order) > told)
        assert reads == []


def test_a_narrowed_or_lengthened_list_is_told_of_each_row_that_it_shows_and_of_no_other(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_topics, "FRESH_S", 0.0)
    api.add_work()
    oldest = api.submit("The oldest")
    for number in range(51):
        submit(api.core, system_caller(api.core), f"Order {number}", project="demo")
    declared = {"orders": orders.LIST, "sessions": sessions.LIST}
    topics = {
        Filters.of(f"/{kind}", declared[kind], dict(parse_qsl(terms))).topic: shown
        for (kind, terms), shown in SHOWN.items()
    }
    with api.browser() as browser:
        before = versions(browser, *topics)
        api.client.call(orders.CANCEL, order_id=oldest["id"])
        api.client.call(sessions.EDIT, SessionEdit(name="Renamed"), session_id=oldest["session"])
        after = versions(browser, *topics)
        assert versions(browser, "orders:status%3Dnone", "orders:x") == {
            "orders:status%3Dnone": GONE,
            "orders:x": after["orders"],
        }
    assert {topic: after[topic] != version for topic, version in before.items()} == topics


BEYOND = {
    "/tasks": True,
    "/tasks?project=demo": True,
    "/tasks?text=newer": False,
    "/tasks?view=list": False,
    "/tasks?view=list&limit=100": True,
    "/tasks?status=in_progress": True,
    "/agents": True,
    "/agents/tester": True,
    "/agents/other": False,
    "/batches": True,
    "/graphs": True,
}
"""Pages, and whether they show the oldest of 52 tasks, which an agent works on, of 51 batches, or of 51 graphs."""


def test_pages_of_tasks_agents_batches_and_graphs_are_told_of_each_row_that_they_show_and_of_no_other(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_topics, "FRESH_S", 0.0)
    api.add_work()
    caller = system_caller(api.core)
    tester, other = (add_agent(api.core, caller, name) for name in ("tester", "other"))
    oldest = add_task(api.core, caller, tester, claim=False)
    for number in range(51):
        add_task(api.core, caller, other, claim=False, title="A newer one")
        row = {"id": "x", "project": "demo", "prompt": "x"}
        submitting.submit(api.core, caller, BatchRequest.model_validate({"name": f"Batch {number}", "rows": [row]}))
        order = {"name": f"order-{number}", "project": "demo", "prompt": "x"}
        graphs.submit(api.core, caller, GraphRequest.model_validate({"orders": [order]}))
    with api.core.database.write() as db:
        db.execute(update(Task).where(Task.id == oldest).values(status="in_progress"))
    with api.browser() as browser:
        topics = {path: followed_by(browser, path) for path in BEYOND}
        every = sorted({each for path in topics for each in topics[path]})
        before = versions(browser, *every)
        with api.core.database.write() as db:
            db.execute(update(Task).where(Task.id == oldest).values(title="Renamed"))
            db.execute(update(OrderGroup).where(OrderGroup.name == "Batch 0").values(name="Renamed"))
            db.execute(update(Order).where(Order.group_key == "order-0").values(status="failed"))
        after = versions(browser, *every)
    changed = {each for each in every if before[each] != after[each]}
    assert {path: bool(changed.intersection(topics[path])) for path in topics} == BEYOND


def followed_by(browser: httpx.Client, path: str) -> set[str]:
    """The topics of the page's parts; the page follows these and the sidebar's."""
    page = browser.get(path, headers={"Accept": "text/html"}).raise_for_status().text
    parts = {topic for each in re.findall(r'data-live="([^"]+)"', page) for topic in each.split()}
    assert parts == json.loads(html.unescape(re.findall(r'data-topics="([^"]+)"', page)[0])).keys()
    return parts - {SHELL}


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
    monkeypatch.setitem(TOPICS, "projects", replace(TOPICS["projects"], every_s=0.0))  # type: ignore[arg-type]
    monkeypatch.setattr(live_topics, "FRESH_S", 0.0)
    with api.browser() as browser, live(browser, "projects") as stream:
        wait_until(lambda: stream.told("projects"))
        assert stream.follow({"orders": ""}).status_code == 204
        wait_until(lambda: stream.told("orders"))
        before = stream.told("projects")
        api.client.call(projects.EDIT, ProjectEdit(description="changed"), slug="demo")
        told = stream.told("orders")
        api.submit()
        wait_until(lambda: stream.told("orders") > told)
        assert stream.told("projects") == before


def test_only_the_newest_versions_are_remembered(core: Core, admin: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_topics, "REMEMBERED", 1)
    monkeypatch.setattr(live_topics, "FRESH_S", 60.0)
    reads: list[str] = []
    for name in ("orders", "projects"):
        source = lambda *_, name=name: reads.append(name)  # noqa: E731
        monkeypatch.setitem(TOPICS, name, replace(TOPICS[name], source=source))  # type: ignore[arg-type]
    versions = live_topics.Versions(core)
    for name in ("orders", "orders", "projects", "projects", "orders"):
        versions.of(admin, [live_topics.Wanted(name)])
    assert reads == ["orders", "projects", "orders"]


def test_names_that_are_no_topics_are_ignored(api: Api, run: PlayedRun) -> None:
    strange = {"none": "", "projects:1": "", "order": "", "order:": "", "": "", "projects": ""}
    with api.browser() as browser, live(browser) as stream:
        answer = stream.follow(strange | {f"order:{number}": "" for number in range(2 * MOST_TOPICS)})
        assert answer.status_code == 204, answer.text
        wait_until(lambda: stream.told("projects"))
        wait_until(lambda: stream.told("order:5"))
        assert stream.versions()["order:5"] == GONE
        assert len(stream.versions()) <= MOST_TOPICS


def test_a_stream_belongs_to_one_session_and_organization_and_ends_with_the_session(api: Api) -> None:
    api.client.call(ADD, OrganizationRequest(name="elsewhere"))
    with api.browser() as browser, live(browser, "orders") as stream:
        session = api.client.call(tokens.LIST_LOGIN_SESSIONS)[0]["id"]
        with api.browser() as other:
            answer = other.post(f"/live/{stream.of('hello')[0]['stream']}/topics", json={})
        assert (answer.status_code, answer.json()["code"]) == (404, "E-STREAM-404")
        assert browser.post("/live/none/topics", json={}).status_code == 404
        browser.post("/organization", data={"organization": "elsewhere"})
        assert browser.post(f"/live/{stream.of('hello')[0]['stream']}/topics", json={}).status_code == 404
        api.client.call(tokens.END_LOGIN_SESSION, login_session_id=session)
        wait_until(lambda: stream.closed)
        assert browser.get("/live/now", headers={"Accept": "application/json"}).status_code == 401


def test_a_server_that_stops_waits_for_no_stream(api: Api) -> None:
    with api.browser() as browser, live(browser, "orders") as one, live(browser, "fleet") as other:
        api.stop()
        wait_until(lambda: one.closed and other.closed)
        assert (one.ended, other.ended) == (True, True)


def test_streams_outlive_a_database_that_is_away_and_then_say_what_has_changed(
    postgres_server: PostgresServer,
    postgres_url: str,
    valkey: BrokerServer,
    core_factory: CoreFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of pages, and the one of an order."""
    monkeypatch.setattr(page_stream, "BEAT_S", 0.2)
    monkeypatch.setitem(TOPICS, "orders", replace(TOPICS["orders"], every_s=0.2))  # type: ignore[arg-type]
    with api_on(postgres_url, valkey, core_factory) as api, api.browser() as browser, live(browser, "orders") as stream:
        api.add_work()
        run = api.add_drone().take(api.submit())
        follower = Follower(api, run.order_id)
        wait_until(lambda: follower.seqs == [1] and [each["reads"] for each in stream.of("beat")][-1:] == [True])
        postgres_server.stop()
        wait_until(lambda: not stream.of("beat")[-1]["reads"])
        run.drone.core.broker.changed(run.order_id)
        wait_until(lambda: "is waiting for the database" in api.log.read_text())
        postgres_server.start()
        run.says("back")
        wait_until(lambda: follower.seqs == [1, 2] and stream.versions() == versions(browser, "orders"))
        assert (stream.closed, follower.of("connection")) == (False, [])


def test_an_order_of_another_organization_is_told_as_gone(api: Api, run: PlayedRun) -> None:
    api.client.call(ADD, OrganizationRequest(name="elsewhere"))
    with api.http() as admin:
        made = admin.post("/api/v1/api-tokens", params={"org": "elsewhere"}, json={"role": "admin"}).json()
    with api.browser(token=made["token"]) as stranger:
        order = f"order:{run.order_id}"
        assert versions(stranger, order) == {order: GONE}
        with live(stranger, **{order: "0123456789ab.1"}) as stream:
            run.streams("secret")
            run.says("secret")
            wait_until(lambda: stream.told(order))
            assert (stream.versions(), stream.of("delta")) == ({order: GONE}, [])


def test_a_change_is_read_once_for_all_who_watch_and_again_after_the_next_change(
    api: Api, run: PlayedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, reads, meet = live_topics.Wanted("order", run.order_id), list[float](), threading.Barrier(5)
    order = TOPICS["order"]

    def counted(core: Core, caller: Caller, order_id: str) -> Any:
        reads.append(time.monotonic())
        return order.source(core, caller, order_id)

    monkeypatch.setitem(TOPICS, "order", replace(order, source=counted))  # type: ignore[arg-type]
    versions = live_topics.Versions(api.core)

    def look(moment: float) -> str:
        meet.wait(60)
        return versions.since(moment, system_caller(api.core), wanted)

    with ThreadPoolExecutor(5) as pool:
        for count in (1, 2):
            run.says("changed")
            moment = time.monotonic()
            assert len(set(pool.map(look, [moment] * 5))) == 1
            assert len(reads) == count
