"""Flower in Chromium, at `/flower` behind the log-in of the pages."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import Person
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.flower import api_with_flower

pytestmark = pytest.mark.timeout(180)


def test_flower_runs_behind_the_log_in_without_errors_or_requests_to_other_origins(
    chromium: Browser, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    with api_with_flower(sqlite_url, valkey, core_factory) as api:
        context = chromium.new_context(viewport={"width": 1280, "height": 800})
        admin, asked, said = Person(api, context), [], []
        admin.page.on("request", lambda request: asked.append(request.url))
        admin.page.on("console", lambda line: said.append(line.text) if line.type == "error" else None)
        admin.log_in()
        admin.page.get_by_role("link", name="Flower").click()
        admin.sees("No workers are available.")
        assert admin.page.evaluate("autorefresh") == 1
        admin.open("/flower/tasks")
        admin.sees("No tasks have been received.")
        admin.open("/flower/broker")
        admin.sees("Broker")
        revoked = admin.page.evaluate("$.post('/flower/api/task/revoke/000000000000').then((_, how) => how)")
        admin.page.context.close()
        operator = chromium.new_context(extra_http_headers={"Authorization": f"Bearer {api.token_for('operator')}"})
        refused = operator.request.get(f"{api.url}/flower/", headers={"Accept": "text/html"})
        status, page = refused.status, refused.text()
        operator.close()

    assert (said, admin.errors, revoked) == ([], [], "success")
    assert (status, "This requires the role admin" in page) == (403, True)
    assert [url for url in asked if not url.startswith((api.url, "data:"))] == []


def test_an_order_and_its_task_in_flower_link_to_each_other(
    chromium: Browser, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    with api_with_flower(sqlite_url, valkey, core_factory) as api:
        api.add_work()
        order = api.submit('Fix the failing test\n\nIt says: "organization=other order=000000000000"')
        run = api.add_drone().take(order)
        run.ends()
        context = chromium.new_context(viewport={"width": 1280, "height": 800})
        admin = Person(api, context)
        admin.log_in()
        wait_until(lambda: admin.page.request.get(f"{api.url}/flower/task/{run.id}").ok)

        admin.open(f"/orders/{order['id']}?panel=details")
        admin.page.get_by_role("main").get_by_role("link", name="Flower").click()
        admin.page.wait_for_url(f"{api.url}/flower/task/{run.id}")
        admin.sees(f"order={order['id']}")
        admin.open(f"/flower/task/{run.id}")
        admin.page.get_by_role("link", name=f"Order {order['id']}").click()
        admin.page.wait_for_url(f"{api.url}/orders/{order['id']}?org=default")
        admin.sees("Fix the failing test")
        context.close()

    assert admin.errors == []
