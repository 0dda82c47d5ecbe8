"""Pages that stay up to date: one connection for all tabs, through restarts and without streams."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect
from sqlalchemy import select

from control_plane.contract.declarations import agents, graphs, orders
from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.drafts import LIST
from control_plane.contract.declarations.graphs import MOST, GraphOrder, GraphRequest
from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.core import Caller
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.drones import Drone
from control_plane.db.orders import Order, SteeringMessage
from control_plane.db.runs import Step
from control_plane.db.waits import Wait
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading
from shared.events import ApprovalStep
from tests.browser.conftest import Person, watch
from tests.support import wait_until
from tests.support.bad_proxy import BadProxy, bad_proxy
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.fleet import Api, PlayedRun, api_on
from tests.support.postgres import PostgresServer

pytestmark = [pytest.mark.browser, pytest.mark.long]
NO_SHARED_WORKER = "delete window.SharedWorker"
INSECURE = f"{NO_SHARED_WORKER}; delete Crypto.prototype.randomUUID; delete Navigator.prototype.locks"
"""What a plain-HTTP address lacks besides."""
HEARS_TOPICS = """() => void (window.heard = new Promise((done) => {
  new BroadcastChannel("fleet-live").onmessage = ({ data }) => data.topics && done();
}))"""
"""Notes in the leading tab that another one has said which topics it shows."""


PATHS = {"orders": "/orders", "session": "/orders/{}", "fleet": "/fleet", "inbox": "/"}
ROWS = {
    "orders": """rows("#orders li[data-row]", (row) => [
        row.id.slice(6), text(row, "a.cover"), text(row, ".drone"), text(row, ".state")])""",
    "session": """rows("#blocks .says", (said) => text(said, ".prose").trim())""",
    "fleet": """rows("#fleet article", (card) => [
        text(card, "h2"), card.innerText.includes("Resume"),
        [...card.querySelectorAll(".doing a")].map((link) => link.pathname.slice(8)).sort()])""",
    "inbox": """rows("#waiting li[data-row]", (row) => [
        row.querySelector("header a").pathname.slice(8), text(row, "pre")]).sort()""",
}
"""What each page shows, in the form of `Watched.stored`."""
READ = """(() => {
  const text = (within, selector) => within.querySelector(selector)?.textContent ?? "";
  const rows = (selector, read) => [...document.querySelectorAll(selector)].map(read);
  return %s;
})()"""
AWAY = "status of (50[23]|{})"
"""What Chromium writes to the console when the proxy finds no server, or the server no database."""


def open_streams(api: Api) -> int:
    return len(api.app.state.page_streams._open)


def mark(page: Page, text: str) -> None:
    """Wait until the page says this about its liveness."""
    expect(page.locator("#live-mark")).to_contain_text(text)


def row(page: Page, order_id: str) -> None:
    """Wait until the list shows the order."""
    page.locator(f"#order-{order_id}").wait_for()


def test_all_tabs_of_a_browser_live_on_one_connection_and_miss_nothing_of_a_restart(person: Person) -> None:
    person.api.add_work()
    pages = [person.page, *(person.context.new_page() for _ in range(19))]
    for page in pages:
        page.goto(person.api.url + "/orders")
        mark(page, "Live")
    order = person.api.submit()["id"]
    for page in pages:
        row(page, order)
    assert open_streams(person.api) == 1
    person.api.stop()
    mark(pages[0], "Reconnecting (last event")
    person.api.start()
    order = person.api.submit()["id"]
    mark(pages[0], "Live")
    for page in pages:
        row(page, order)


def test_a_page_of_as_many_orders_as_a_graph_may_have_is_live(person: Person) -> None:
    person.api.add_work()
    wanted = [GraphOrder(name=f"order-{number}", prompt="x", project="demo") for number in range(MOST)]
    graph = person.api.client.call(graphs.SUBMIT, GraphRequest(orders=wanted))
    last = graph["orders"][-1]["id"]
    page = person.open(f"/graphs/{graph['id']}")
    row(page, last)
    mark(page, "Live")
    person.api.client.call(orders.CANCEL, order_id=last)
    expect(page.locator(f"#order-{last}")).to_contain_text("canceled")


@pytest.mark.parametrize("script", ["", NO_SHARED_WORKER], ids=["worker", "leader"])
def test_a_tab_that_was_rendered_before_the_last_change_is_told_of_it(person: Person, script: str) -> None:
    person.api.add_work()
    person.context.add_init_script(script)
    first, later = person.context.new_page(), person.context.new_page()
    first.goto(person.api.url + "/orders")
    mark(first, "Live")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    later.route("**/live.js", hold)
    later.goto(person.api.url + "/orders", wait_until="commit")
    later.locator("#orders").wait_for()
    wait_until(lambda: (later.title(), held)[1])
    order = person.api.submit()["id"]
    row(first, order)
    held[0].continue_()
    row(later, order)
    mark(later, "Live")


def test_a_page_notices_that_its_worker_has_ended_and_starts_another(person: Person) -> None:
    person.api.add_work()
    person.page.clock.install()
    page = person.open("/orders")
    mark(page, "Live")
    browser = person.context.browser
    assert browser is not None
    session = browser.new_browser_cdp_session()
    targets = session.send("Target.getTargets")["targetInfos"]
    (worker,) = [each["targetId"] for each in targets if each["type"] == "shared_worker"]
    session.send("Target.closeTarget", {"targetId": worker})
    wait_until(lambda: open_streams(person.api) == 0)
    page.clock.fast_forward(31_000)
    row(page, person.api.submit()["id"])
    mark(page, "Live")


def test_topics_of_a_new_tab_that_did_not_reach_the_server_are_told_again(watched: Watched) -> None:
    watched.proxy.loses = "/topics"
    tab = watched.person.context.new_page()
    watch(tab, watched.person.errors, watched.proxy.url)
    tab.goto(watched.proxy.url + "/agents")
    wait_until(lambda: not watched.proxy.loses)
    watched.api.client.call(agents.ADD, AgentRequest(name="tester", instructions="You test."))
    tab.get_by_role("link", name="tester").first.wait_for()


def test_topics_of_a_tab_that_comes_before_the_stream_has_begun_are_told_once_it_has(person: Person) -> None:
    person.api.add_work()
    person.context.add_init_script(NO_SHARED_WORKER)
    first, later = person.context.new_page(), person.context.new_page()
    held: list[Route] = []
    first.route("**/live?*", lambda route: route.continue_() if held else held.append(route))
    first.goto(person.api.url + "/orders")
    wait_until(lambda: (first.title(), held)[1])
    first.evaluate(HEARS_TOPICS)
    later.goto(person.api.url + "/agents")
    first.evaluate("() => heard")
    held[0].continue_()
    mark(later, "Live")
    person.api.client.call(agents.ADD, AgentRequest(name="tester", instructions="You test."))
    later.get_by_role("link", name="tester").first.wait_for()


def test_without_shared_workers_one_tab_holds_the_connection_and_another_takes_over(person: Person) -> None:
    person.api.add_work()
    person.context.add_init_script(NO_SHARED_WORKER)
    pages = [person.context.new_page() for _ in range(3)]
    for page in pages:
        page.goto(person.api.url + "/orders")
        mark(page, "Live")
    # The other one is that of the page which logged in, and has a shared worker.
    wait_until(lambda: open_streams(person.api) == 2)
    pages[0].close()
    order = person.api.submit()["id"]
    for page in pages[1:]:
        row(page, order)


def test_without_locks_each_tab_holds_its_own_connection(person: Person) -> None:
    person.api.add_work()
    person.context.add_init_script(INSECURE)
    pages = [person.context.new_page() for _ in range(2)]
    for page in pages:
        watch(page, person.errors, person.api.url)
        page.goto(person.api.url + "/orders")
        mark(page, "Live")
    # The other one is that of the page which logged in.
    wait_until(lambda: open_streams(person.api) == 3)
    order = person.api.submit()["id"]
    for page in pages:
        row(page, order)


def test_a_clock_that_is_an_hour_wrong_changes_no_time(person: Person, run: PlayedRun) -> None:
    for wrong in (timedelta(hours=1), timedelta(hours=-1)):
        person.page.clock.install(time=datetime.now(UTC) + wrong)
        order = person.api.submit()["id"]
        since = person.open("/orders").locator(f"#order-{order} time").first
        expect(since).to_have_text(re.compile("^(now|\\d+s ago|[1-5]m(in)? ago)$"))
        # Clocks that run, too: they are measured from the server's.
        runs = person.open(f"/orders/{run.order_id}").locator('time[data-as="clock"]').first
        expect(runs).to_have_text(re.compile(r"^([0-9] min )?\d+ s$"))


@dataclass
class Watched:
    """Four pages behind a proxy, and a fleet that changes without them, as by drones and other processes."""

    api: Api
    proxy: BadProxy
    person: Person
    run: PlayedRun
    question: PlayedRun
    caller: Caller
    pages: dict[str, Page] = field(default_factory=dict)
    changes: int = 0

    def open(self) -> None:
        for name, path in PATHS.items():
            self.pages[name] = page = self.person.context.new_page()
            watch(page, self.person.errors, self.proxy.url)
            # A page that hears nothing for 30 s starts another worker: here, the first one must reconnect.
            page.clock.set_fixed_time(datetime.now(UTC))
            page.goto(self.proxy.url + path.format(self.run.order_id))
        self.say("Live")

    def change(self) -> None:
        """Change something of all pages."""
        core = self.api.core
        self.changes += 1
        order = reading.submit(core, self.caller, SubmitRequest(prompt=f"Order {self.changes}", project="demo"))
        run = self.run.drone.take({"id": order.id})
        run.asks("c1", "shell", "Publishes", f"git push {self.changes}")
        self.run.says(f"message {self.changes}")
        turn = managing.drain if self.changes % 2 else managing.resume
        turn(core, self.caller, "mila")
        self.run.drone.beat()

    def stored(self) -> dict[str, Any]:
        with self.api.core.database.read() as db:
            drones = db.scalars(select(Drone)).all()
            orders = db.scalars(select(Order).order_by(Order.number.desc())).all()
            steps = select(Step).where(Step.order_id == self.run.order_id, Step.kind == "assistant").order_by(Step.seq)
            waits = db.scalars(select(Wait).where(Wait.answered_at.is_(None)))
            return {
                "orders": [[each.id, each.prompt, "mila", STATES[each.status]] for each in orders],
                "session": [each.body["text"] for each in db.scalars(steps)],
                "fleet": [[each.name, each.draining, sorted(order.id for order in orders)] for each in drones],
                "inbox": sorted([each.order_id, each.details.get("command", "")] for each in waits),
            }

    def shown(self) -> dict[str, Any]:
        return {name: page.evaluate(READ % ROWS[name]) for name, page in self.pages.items()}

    def equal_the_database(self) -> None:
        """Wait until each page shows what is stored."""
        wait_until(lambda: self.shown() == self.stored())

    def say(self, text: str) -> None:
        """Wait until each page says this about its liveness."""
        for page in self.pages.values():
            mark(page, text)


STATES = {"running": "running", "awaiting_approval": "waits for you"}


@pytest.fixture
def watched(chromium: Browser, postgres_url: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[Watched]:
    with api_on(postgres_url, valkey, core_factory) as api, bad_proxy(api.port) as proxy:
        api.add_work()
        drone = api.add_drone("mila")
        run, question = (drone.take(api.submit(prompt)) for prompt in ("Publish", "Round"))
        question.step(ApprovalStep(about="question", call_id="c1", tool="ask", why="Which rounding?"))
        api.wait_for_hub()
        context = chromium.new_context(viewport={"width": 1280, "height": 800})
        person = Person(api, context, proxy.url)
        person.log_in()
        person.page.close()
        watched = Watched(api, proxy, person, run, question, system_caller(api.core))
        watched.open()
        yield watched
        context.close()
    away = re.compile(AWAY.format(watched.proxy.away))
    assert [error for error in person.errors if not away.search(error)] == []


def test_pages_equal_the_database_while_a_proxy_cuts_each_connection(watched: Watched) -> None:
    watched.proxy.cuts_after_s = 2.0
    for _ in range(4):
        before = watched.proxy.cuts
        watched.change()
        wait_until(lambda: watched.proxy.cuts > before + 2)  # noqa: B023 - it is waited for here
    watched.equal_the_database()
    watched.proxy.cuts_after_s = None
    watched.say("Live")


def test_pages_equal_the_database_behind_a_proxy_that_holds_streams_back_and_say_when_it_holds_everything(
    watched: Watched,
) -> None:
    watched.proxy.holds = True
    watched.proxy.cut()
    watched.say("Reconnecting (last event")
    watched.change()
    watched.say("Live, every 3 s")
    watched.equal_the_database()
    watched.proxy.passes.clear()
    watched.change()
    watched.say("Reconnecting (last event")
    watched.proxy.passes.set()
    watched.say("Live, every 3 s")
    watched.equal_the_database()


@pytest.mark.parametrize("away", [502, 404])
def test_pages_equal_the_database_after_a_restart_of_the_server_and_nothing_written_meanwhile_is_lost(
    watched: Watched, away: int
) -> None:
    watched.proxy.away = away
    watched.change()
    watched.api.stop()
    watched.say("Reconnecting (last event")
    written = Written.on(watched)
    watched.change()
    watched.api.start()
    watched.say("Live")
    written.send()
    watched.equal_the_database()
    for _ in range(3):
        watched.change()
        watched.api.restart()
        watched.equal_the_database()


def test_pages_equal_the_database_after_its_restarts_and_nothing_written_meanwhile_is_lost(
    watched: Watched, postgres_server: PostgresServer
) -> None:
    postgres_server.stop()
    watched.say("The database does not answer")
    written = Written.on(watched)
    postgres_server.start()
    watched.change()
    watched.say("Live")
    written.send()
    watched.equal_the_database()
    watched.change()
    postgres_server.kill()
    watched.say("The database does not answer")
    postgres_server.start()
    watched.change()
    watched.say("Live")
    watched.equal_the_database()


@dataclass
class Written:
    """A message and an answer that were sent in vain, and a comment that was typed."""

    watched: Watched
    message: Locator
    answer: Locator

    @classmethod
    def on(cls, watched: Watched) -> Written:
        inbox = watched.pages["inbox"]
        message = watched.pages["session"].locator("form#composer")
        message.locator("textarea").fill("Use half to even")
        row = inbox.locator("#waiting li", has_text="Which rounding?")
        row.locator("summary", has_text="Write an answer").click()
        answer = row.locator("form", has=inbox.locator("textarea"))
        answer.locator("textarea").fill("Half up")
        written = cls(watched, message, answer)
        written.press()
        for form in (message, answer):
            expect(form.locator(".form-note")).not_to_be_empty()
        return written

    def press(self) -> None:
        self.message.get_by_role("button", name="Send", exact=True).click()
        self.answer.get_by_role("button", name="Answer", exact=True).click()

    def send(self) -> None:
        """Both are sent now, once."""
        for form, text in ((self.message, "Use half to even"), (self.answer, "Half up")):
            expect(form.locator("textarea")).to_have_value(text)
        self.press()
        wait_until(lambda: self.stored() == (["Use half to even"], ["Half up"]))
        wait_until(lambda: self.watched.api.client.call(LIST) == [])

    def stored(self) -> tuple[list[str], list[str]]:
        with self.watched.api.core.database.read() as db:
            messages, answers = select(SteeringMessage.text), select(Wait.answer).where(Wait.answer.is_not(None))
            return list(db.scalars(messages)), [str(each) for each in db.scalars(answers)]
