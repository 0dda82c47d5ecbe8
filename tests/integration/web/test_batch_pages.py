"""Batches as pages: the list, one with its rows in each state, and the comparison of two."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from sqlalchemy import select

from control_plane.db.batches import BatchRow
from control_plane.db.orders import Order
from control_plane.declarations import batches
from control_plane.declarations.batches import BatchRequest
from control_plane.declarations.organizations import ADD, OrganizationRequest
from control_plane.supervisor.batches import submit_due
from tests.support.fleet import Api

HTML = {"Accept": "text/html"}
Doc = dict[str, Any]


def submitted(api: Api, name: str = "night", rows: int = 3, parallel: int = 2) -> str:
    """A batch, whose first orders are submitted as the supervisor does it."""
    each = [{"id": f"row-{number}", "project": "demo", "prompt": f"Fix {number}"} for number in range(1, rows + 1)]
    request = BatchRequest.model_validate({"name": name, "parallel": parallel, "rows": each})
    batch = api.client.call(batches.SUBMIT, request)
    submit_due(api.core)
    return str(batch["id"])


@pytest.fixture
def working(api: Api) -> Api:
    api.add_work()
    return api


def ended(api: Api, batch: str, row: str, *, verification: str = "verified", status: str = "succeeded") -> None:
    """End the row's order as a drone's last report does."""
    with api.core.database.write() as db:
        order_id = db.scalar(select(BatchRow.order_id).where(BatchRow.batch_id == batch, BatchRow.key == row))
        order = db.get_one(Order, order_id)
        order.status, order.verification, order.exit_status = status, verification, "stopped"
        order.ended_at = api.core.clock.now()


def shown(browser: httpx.Client, path: str) -> str:
    answer = browser.get(path, headers=HTML)
    assert answer.status_code == 200, path
    return answer.text


def test_the_list_has_each_batch_with_its_progress_and_says_how_to_run_the_first(working: Api) -> None:
    with working.browser() as browser:
        assert "fleet batch run FILE --project SLUG" in shown(browser, "/batches")
        batch = submitted(working)
        ended(working, batch, "row-1")
        page = shown(browser, "/batches")
    assert f'href="/batches/{batch}"' in page
    assert "1 of 3" in page
    assert "1 resolved" in page


def test_a_batch_shows_its_statistics_and_its_rows_with_their_orders(working: Api) -> None:
    batch = submitted(working)
    ended(working, batch, "row-1")
    ended(working, batch, "row-2", verification="failed", status="failed")
    rows = working.client.call(batches.LIST_ROWS, batch_id=batch)
    with working.browser() as browser:
        page = shown(browser, f"/batches/{batch}")
        failed = shown(browser, f"/batches/{batch}?state=failed")
        by_name = browser.get("/batches/night", headers=HTML)
        part = browser.get(f"/batches/{batch}", headers={"Accept": "text/x-part"}).text
    assert all(f'href="/orders/{row["order"]}"' in page for row in rows[:2])
    assert [f"row-{number}" in page for number in (1, 2, 3)] == [True] * 3
    assert '<th scope="row">Exit: stopped</th>' in page
    assert "50.0 %" in page
    assert (rows[1]["order"] in failed, f'href="/orders/{rows[0]["order"]}"' in failed) == (True, False)
    assert by_name.status_code == 200
    assert f'data-live="batch:{batch}"' in part
    assert "<!doctype" not in part


def test_long_batches_are_shown_in_parts(working: Api) -> None:
    batch = submitted(working, rows=150)
    with working.browser() as browser:
        first = shown(browser, f"/batches/{batch}")
        second = shown(browser, f"/batches/{batch}?after=100")
    assert (first.count('id="row-'), second.count('id="row-')) == (100, 50)
    assert f'href="/batches/{batch}?after=100#batch-rows"' in first
    assert "Next rows" not in second


def test_two_batches_are_compared_row_by_row(working: Api) -> None:
    first, second = submitted(working, "first"), submitted(working, "second")
    for batch, resolves in ((first, "verified"), (second, "failed")):
        ended(working, batch, "row-1", verification=resolves)
    with working.browser() as browser:
        page = shown(browser, f"/batches/{first}/compare?other={second}")
        unknown = browser.get(f"/batches/{first}/compare?other=nothing", headers=HTML)
        assert f'<option value="{second}">second</option>' in shown(browser, f"/batches/{first}")
    assert "1 row ended in both. 2 have not ended." in page
    assert "only A" in page
    assert "p = 1." in page
    assert (unknown.status_code, "&#39;nothing&#39; not found" in unknown.text) == (404, True)


def test_a_batch_is_submitted_canceled_and_retried_on_its_pages(working: Api) -> None:
    with working.browser() as browser:
        rows = '[{"id": "a", "project": "demo", "prompt": "x"}]'
        made = browser.post("/actions/submit_batch", data={"name": "paged", "rows": rows}, headers=HTML)
        assert made.status_code == 303
        address = made.headers["location"]
        assert "/actions/cancel_batch" in shown(browser, address)
        browser.post("/actions/cancel_batch", data={"batch_id": address.split("/")[-1]}, headers=HTML)
        assert "/actions/retry_batch" in shown(browser, address)
        browser.post(
            "/actions/retry_batch", data={"batch_id": address.split("/")[-1], "which": "canceled"}, headers=HTML
        )
    assert working.client.call(batches.SHOW, batch_id="paged")["status"] == "running"


def test_a_viewer_reads_and_changes_nothing_and_another_organization_finds_nothing(working: Api) -> None:
    batch = submitted(working)
    with working.browser(token=working.token_for("viewer")) as viewer:
        pages = [shown(viewer, path) for path in ("/batches", f"/batches/{batch}")]
        refused = viewer.post("/actions/cancel_batch", data={"batch_id": batch}, headers=HTML)
    working.client.call(ADD, OrganizationRequest(name="other"))
    with working.browser() as browser:
        browser.post("/organization", data={"organization": "other"})
        gone = [browser.get(path, headers=HTML).status_code for path in (f"/batches/{batch}", "/batches/night")]
    assert ["/actions/" in page for page in pages] == [False, False]
    assert refused.status_code == 403
    assert gone == [404, 404]
