"""Pages that stay up to date: one connection for all tabs, through restarts, proxies and wrong clocks."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from control_plane.declarations import tokens
from shared.errors import Unreachable
from tests.browser.conftest import Person, watch
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.fleet import Api, api_on
from tests.support.http_proxy import StreamProxy, stream_proxy
from tests.support.postgres import PostgresServer

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
    pages = [person.page, *(person.context.new_page() for _ in range(5))]
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


@pytest.mark.browser
@pytest.mark.long
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


@pytest.mark.browser
@pytest.mark.long
def test_a_restart_of_the_database_is_said_and_nothing_is_missed(
    chromium: Browser,
    postgres_server: PostgresServer,
    postgres_url: str,
    valkey: BrokerServer,
    core_factory: CoreFactory,
) -> None:
    with api_on(postgres_url, valkey, core_factory) as api:
        api.add_work()
        person = Person(api, chromium.new_context())
        person.log_in()
        page = person.open("/orders")
        mark(page, "Live")
        postgres_server.stop()
        try:
            mark(page, "The database does not answer")
        finally:
            postgres_server.start()
        order = wait_until(lambda: submitted(api), seconds=60)
        mark(page, "Live")
        row(page, order)
        person.context.close()


def submitted(api: Api) -> str:
    """The id of a new order; empty while the database is not back."""
    try:
        return str(api.submit()["id"])
    except Unreachable:
        return ""


def behind(chromium: Browser, api: Api, proxy: StreamProxy) -> Person:
    """A user whose browser reaches the fleet through the proxy."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    person = Person(api, context)
    person.page.close()
    person.page = context.new_page()
    watch(person.page, person.errors, proxy.url)
    link = api.client.call(tokens.CREATE_LOGIN_LINK)["url"].replace(api.url, proxy.url)
    person.page.goto(link)
    person.page.wait_for_url(f"{proxy.url}/")
    return person


@pytest.mark.browser
@pytest.mark.long
def test_behind_a_proxy_that_holds_streams_back_pages_poll(chromium: Browser, api: Api) -> None:
    api.add_work()
    with stream_proxy(api.url, holds_back=True) as proxy:
        person = behind(chromium, api, proxy)
        person.page.goto(proxy.url + "/orders")
        mark(person.page, "Live, every 3 s")
        row(person.page, api.submit()["id"])
        person.context.close()
    assert person.errors == []


@pytest.mark.browser
@pytest.mark.long
def test_behind_a_proxy_that_cuts_streams_pages_stay_up_to_date(chromium: Browser, api: Api) -> None:
    api.add_work()
    with stream_proxy(api.url, cuts_after_s=2.0) as proxy:
        person = behind(chromium, api, proxy)
        person.page.goto(proxy.url + "/orders")
        wait_until(lambda: proxy.streams >= 3, seconds=60)
        row(person.page, api.submit()["id"])
        mark(person.page, "Live")
        person.context.close()
    assert person.errors == []
