"""Pages that stay up to date: one connection for all tabs, through restarts and without streams."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Person
from tests.support import wait_until
from tests.support.fleet import Api, PlayedRun

pytestmark = [pytest.mark.browser, pytest.mark.long]
NO_SHARED_WORKER = "delete window.SharedWorker"


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


def test_behind_a_proxy_that_holds_streams_back_pages_poll(person: Person) -> None:
    person.api.add_work()
    person.page.close()
    person.context.add_init_script(NO_SHARED_WORKER)
    page = person.context.new_page()
    # A request that is neither answered nor continued waits.
    page.route("**/live?*", lambda route: None)
    page.goto(person.api.url + "/orders")
    mark(page, "Live, every 3 s")
    row(page, person.api.submit()["id"])


def test_a_clock_that_is_an_hour_wrong_changes_no_time(person: Person, run: PlayedRun) -> None:
    for wrong in (timedelta(hours=1), timedelta(hours=-1)):
        person.page.clock.install(time=datetime.now(UTC) + wrong)
        order = person.api.submit()["id"]
        since = person.open("/orders").locator(f"#order-{order} time").first
        expect(since).to_have_text(re.compile("^(now|\\d+s ago|[1-5]m(in)? ago)$"))
        # Clocks that run, too: they are measured from the server's.
        runs = person.open(f"/orders/{run.order_id}").locator('time[data-as="clock"]').first
        expect(runs).to_have_text(re.compile(r"^([0-9] min )?\d+ s$"))
