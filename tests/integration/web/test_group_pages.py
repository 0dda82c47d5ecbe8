"""Graphs, batches and orders side by side as pages."""

from __future__ import annotations

import re

import httpx
import pytest
from sqlalchemy import select

from control_plane.db.batches import BatchRow
from control_plane.db.orders import Order
from control_plane.declarations import batches, graphs
from control_plane.declarations.batches import BatchRequest
from control_plane.declarations.graphs import GraphRequest
from control_plane.declarations.organizations import ADD, OrganizationRequest
from control_plane.supervisor.batches import submit_due
from tests.support.fleet import Api, PlayedRun
from tests.support.patches import SMALL, deliver


def test_a_graph_has_a_page_with_the_names_and_states_of_its_orders(api: Api) -> None:
    api.add_work()
    orders = [{"name": "one", "prompt": "First <b>"}, {"name": "two", "prompt": "Second", "after": ["one"]}]
    request = GraphRequest.model_validate({"name": "Release", "project": "demo", "orders": orders})
    graph = api.client.call(graphs.SUBMIT, request)
    with api.browser() as browser:
        listed = browser.get("/graphs").text
        shown = browser.get(f"/graphs/{graph['id']}").text
        sent = browser.post("/actions/cancel_graph", data={"graph_id": graph["id"]})
        after = browser.get(f"/graphs/{graph['id']}").text
        missing = browser.get("/graphs/000000000000")
    assert f'href="/graphs/{graph["id"]}"' in listed
    assert "0 of 2 done" in listed
    assert "after one</span>" in shown
    assert "First &lt;b&gt;" in shown
    assert "0 of 2 orders succeeded" in shown
    assert (sent.status_code, "Cancel the graph" in shown, "Cancel the graph" in after) == (303, True, False)
    assert missing.status_code == 404


HTML = {"Accept": "text/html"}


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


def test_the_list_has_each_batch_with_its_progress(working: Api) -> None:
    batch = submitted(working)
    ended(working, batch, "row-1")
    with working.browser() as browser:
        page = shown(browser, "/batches")
    assert (f'href="/batches/{batch}"' in page, "1 of 3" in page, "1 resolved" in page) == (True, True, True)


def test_a_batch_shows_its_statistics_and_its_rows_with_their_orders(working: Api) -> None:
    batch = submitted(working, rows=150)
    ended(working, batch, "row-1")
    ended(working, batch, "row-2", verification="failed", status="failed")
    rows = working.client.call(batches.LIST_ROWS, batch_id=batch)
    with working.browser() as browser:
        page = shown(browser, "/batches/night")
        second = shown(browser, f"/batches/{batch}?after=100")
        failed = shown(browser, f"/batches/{batch}?state=failed")
        part = browser.get(f"/batches/{batch}", headers={"Accept": "text/x-part"}).text
    assert all(f'href="/orders/{row["order"]}"' in page for row in rows[:2])
    assert ('<th scope="row">Exit: stopped</th>' in page, "50.0 %" in page) == (True, True)
    assert (rows[1]["order"] in failed, f'href="/orders/{rows[0]["order"]}"' in failed) == (True, False)
    # Long ones are shown in parts.
    assert (page.count('id="row-'), second.count('id="row-')) == (100, 50)
    assert (f'href="/batches/{batch}?after=100#batch-rows"' in page, "Next rows" in second) == (True, False)
    assert (f'data-live="batch:{batch}"' in part, "<!doctype" in part) == (True, False)


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


PART = {"Accept": "text/x-part"}


def two(api: Api, run: PlayedRun, patch: bytes = SMALL) -> list[str]:
    """The run's order and another one, which differ in prompt and patch."""
    other = run.drone.take(api.submit("Fix the failing tests"))
    return [deliver(api, run), deliver(api, other, patch)]


def columns(html: str) -> list[str]:
    return re.split(r'<article class="card"', html)[1:]


def test_two_orders_are_side_by_side_with_what_differs(api: Api, run: PlayedRun) -> None:
    orders = two(api, run, SMALL.replace(b"# The contract, section 4.", b"# See the contract."))
    with api.browser() as browser:
        html = browser.get(f"/compare?order={orders[0]}&order={orders[1]}", headers=PART).text
    first, second = columns(html)
    assert "<mark" not in first
    assert '<mark class="word">tests</mark>' in second
    assert first.count("3 files") == second.count("3 files") == 1
    assert html.count("The same change as in") == 1
    assert "<!doctype" not in html


def test_the_tabs_lead_to_the_changes_of_each_file(api: Api, run: PlayedRun) -> None:
    orders = two(api, run, SMALL.replace(b"2)", b"4)"))
    with api.browser() as browser:
        html = browser.get(f"/compare?orders={','.join(orders)}").text
        address = next(each for each in re.findall(r'href="(/compare[^"]+file=[^"#]+)#', html) if each)
        tabs = dict(re.findall(r'href="(/compare[^"]+)#compared-file"[^>]*><span class="mono">([^<]+)', html))
        assert set(tabs.values()) == {"docs/guide.md", "src/refund.py", "run.sh"}
        code = next(each for each, name in tabs.items() if name == "src/refund.py").replace("&amp;", "&")
        chosen = browser.get(code).text
    assert address
    assert chosen.count('<code class="del">') == 2
    assert "?comment=" not in chosen


def test_a_column_that_is_gone_or_foreign_says_so_and_too_many_are_left_out(api: Api, run: PlayedRun) -> None:
    orders = two(api, run)
    api.client.call(ADD, OrganizationRequest(name="other"))
    with api.browser() as browser:
        empty = browser.get("/compare")
        many = browser.get("/compare", params={"order": [run.order_id, *map(str, range(8))]})
        mixed = browser.get(f"/compare?order={orders[0]}&order=000000000000&order=%3Cb%3E")
        none = browser.get("/compare?order=000000000000")
        browser.post("/organization", data={"organization": "other"})
        foreign = browser.get(f"/compare?order={orders[0]}")
    assert [each.status_code for each in (empty, mixed, none, foreign)] == [200, 200, 404, 404]
    assert "Only the first 6 orders are compared; 3 more are left out" in many.text
    assert mixed.text.count("or belongs to another organization") == 2
    assert ("Order &lt;b&gt; not found" in mixed.text, "Fix the failing test" in foreign.text) == (True, False)
