"""Flower in Chromium, at `/flower` behind the log-in of the pages."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import Person
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.flower import flower_behind_api

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(180)]


def test_flower_runs_behind_the_log_in_without_errors_or_requests_to_other_origins(
    chromium: Browser, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    with flower_behind_api(sqlite_url, valkey, core_factory) as flower:
        api = flower.api
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
        api.add_work()
        run = api.add_drone().take(api.submit())
        wait_until(lambda: run.id in flower.tasks())
        admin.open(f"/orders/{run.order_id}/details").get_by_role("link", name="Flower", exact=True).last.click()
        admin.page.wait_for_url(f"{api.url}/flower/task/{run.id}")
        admin.page.get_by_role("link", name=f"Order {run.order_id}").click()
        admin.page.wait_for_url(f"{api.url}/orders/{run.order_id}*")
        admin.sees("Fix the failing test")
        admin.page.context.close()
        operator = chromium.new_context(extra_http_headers={"Authorization": f"Bearer {api.token_for('operator')}"})
        refused = operator.request.get(f"{api.url}/flower/", headers={"Accept": "text/html"})
        status, page = refused.status, refused.text()
        operator.close()

    assert (said, admin.errors, revoked) == ([], [], "success")
    assert (status, "This requires the role admin" in page) == (403, True)
    assert [url for url in asked if not url.startswith((api.url, "data:"))] == []
