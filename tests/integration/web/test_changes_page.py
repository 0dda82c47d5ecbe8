"""The changes of an order, orders side by side, graphs and batches as pages."""

from __future__ import annotations

import re
from html import unescape

import httpx
import pytest
from sqlalchemy import select

from control_plane.db.batches import BatchRow
from control_plane.db.orders import Order
from control_plane.declarations import batches, graphs
from control_plane.declarations.batches import BatchRequest
from control_plane.declarations.drafts import SAVE, DraftEdit
from control_plane.declarations.graphs import GraphRequest
from control_plane.declarations.organizations import ADD, OrganizationRequest
from control_plane.declarations.reviews import ADD as ADD_COMMENT
from control_plane.declarations.reviews import LIST, ReviewCommentRequest
from control_plane.supervisor.batches import submit_due
from control_plane.web.diffs.labels import path_key
from tests.support import wait_until
from tests.support.fleet import Api, Doc, PlayedRun
from tests.support.patches import SMALL, deliver, many_lines

PART = {"Accept": "text/x-part"}
MARK = "zqmarkqz"


def panel(browser: httpx.Client, order: str, address: str = "") -> str:
    answer = browser.get(f"/orders/{order}/changes{address}", headers=PART)
    assert answer.status_code == 200, answer.text
    return answer.text


def lines(html: str) -> list[str]:
    """The texts of the shown lines, each with its sign."""
    found = re.findall(r'<code class="(\w+)">(.*?)</code>', html, re.DOTALL)
    return [f"{sign} {re.sub('<[^>]+>', '', text)}" for sign, text in found]


def test_the_changes_are_a_page_and_a_part_and_the_split_view_has_both_sides(api: Api, run: PlayedRun) -> None:
    order = deliver(api, run)
    with api.browser() as browser:
        page, part = browser.get(f"/orders/{order}/changes").text, panel(browser, order)
        split = panel(browser, order, "?view=split")
    assert ("<!doctype html>" in page, "<!doctype html>" in part) == (True, False)
    assert (lines(page), set(lines(split))) == (lines(part), set(lines(part)))
    assert "del     return round(amount, 2)" in lines(part)
    assert lines(split).count("same # Guide") == 2
    for text in ("3 files", "37 unchanged lines", "now executable", "fleet session checkout"):
        assert text in part


def test_a_viewed_file_stays_closed_until_its_change_differs(api: Api, run: PlayedRun) -> None:
    order = deliver(api, run)
    with api.browser() as browser:
        digest = re.findall(r'name="digest" value="(\w+)"', panel(browser, order))[1]
        for viewed in ("true", "true", ""):
            browser.post(f"/orders/{order}/changes/viewed", data={"digest": digest, "viewed": viewed})
            closed = [each for each in lines(panel(browser, order)) if "round(amount" in each] == []
            assert closed == bool(viewed)
        browser.post(f"/orders/{order}/changes/viewed", data={"digest": digest, "viewed": "true"})
        again = deliver(api, run.drone.take(api.submit()), SMALL.replace(b"amount, 2", b"amount, 3"))
        assert "del     return round(amount, 3)" in lines(panel(browser, again))


def test_hostile_names_and_lines_stay_text_and_a_path_is_sent_back_as_it_is(api: Api, run: PlayedRun) -> None:
    name = b'"a/<b>\\"\\n\\342\\200\\256%s"' % MARK.encode()
    markup = f"<script>{MARK}</script>\u202e\r\u200b".encode()
    patch = b"diff --git %s %s\nnew file mode 100644\n--- /dev/null\n+++ %s\n@@ -0,0 +1 @@ %s\n+%s\n" % (
        (name, name.replace(b"a/", b"b/"), name.replace(b"a/", b"b/"), markup, markup)
    )
    order = deliver(api, run, patch)
    with api.browser() as browser:
        text = browser.get(f"/orders/{order}/changes?comment=0:new:1").text
        path = unescape(re.findall(r'name="path" value="([^"]+)"', text)[0])
        browser.post("/actions/add_review_comment", data={"order_id": order, "path": path, "text": "x"})
    assert text.count(f"&lt;script&gt;{MARK}") == 2
    assert not re.search(f"<b>|<script>{MARK}|[\u202e\u200b\r]", text)
    assert "&lt;b&gt;&#34;␊⟨U+202E⟩" in text
    assert [each["path"] for each in api.client.call(LIST, order_id=order)] == [f'<b>"\n\u202e{MARK}']


def test_of_twenty_thousand_lines_few_are_sent_at_first_and_the_rest_comes_on_demand(api: Api, run: PlayedRun) -> None:
    order = deliver(api, run, many_lines(20, 1000))
    with api.browser() as browser:
        answer = browser.get(f"/orders/{order}/changes")
        whole = answer.text
        address = unescape(re.findall(r'data-rows="([^"]+)"', whole)[0])
        more, opened = browser.get(address, headers=PART).text, panel(browser, order, "?open=7:1001")
    assert len(re.findall(r"<[a-z]", whole)) < 1500
    assert int(answer.headers["content-length"]) < 100_000
    shown = len([each for each in lines(whole) if each.startswith("add")])
    assert f'aria-label="Comment on new line {shown + 1}"' in more
    assert len(lines(opened)) == shown + 1000


def add(api: Api, order: str, text: str, **place: object) -> Doc:
    request = ReviewCommentRequest(**{"text": text, "path": "src/refund.py", **place})
    return dict(api.client.call(ADD_COMMENT, request, order_id=order))


def test_a_comment_stands_at_its_place_for_its_author_alone_and_is_news_and_its_draft_opens_the_form(
    api: Api, run: PlayedRun
) -> None:
    order = deliver(api, run, many_lines(2, 900))
    now = {"topic": f"order:{order}"}
    subject = f"order:{order}:review:{path_key('src/f0.py')}.new.2-3"
    api.client.call(SAVE, DraftEdit(text="near"), subject=subject)
    with api.browser() as author, api.browser(token=api.token_for("operator")) as other:
        drafted, before = panel(author, order), author.get("/live/now", params=now).json()["versions"]
        add(api, order, "near", path="src/f0.py", start_line=2, end_line=3)
        add(api, order, "far", path="src/f0.py", start_line=800)
        add(api, order, "whole", path="src/f1.py")
        wait_until(lambda: author.get("/live/now", params=now).json()["versions"] != before)
        html, opened, foreign = panel(author, order), panel(author, order, "?open=0:901"), panel(other, order)
    assert drafted.index(">3</a>") < drafted.index(f'data-draft="{subject}"') < drafted.index("\nnear</textarea>")
    assert f'data-draft="{subject}"' not in html
    assert html.index("far") < html.index(">2</a>") < html.index("near") < html.index(">4</a>") < html.index("whole")
    assert opened.index(">799</a>") < opened.index("far")
    assert ("Send review (3)" in html, "near" in foreign) == (True, False)


HTML = {"Accept": "text/html"}


@pytest.fixture
def working(api: Api) -> Api:
    api.add_work()
    return api


def test_a_graph_has_a_page_with_the_names_and_states_of_its_orders(working: Api) -> None:
    orders = [{"name": "one", "prompt": "First <b>"}, {"name": "two", "prompt": "Second", "after": ["one"]}]
    request = GraphRequest.model_validate({"name": "Release", "project": "demo", "orders": orders})
    graph = working.client.call(graphs.SUBMIT, request)["id"]
    with working.browser() as browser:
        listed, page = shown(browser, "/graphs"), shown(browser, f"/graphs/{graph}")
        sent = browser.post("/actions/cancel_graph", data={"graph_id": graph})
        after, missing = shown(browser, f"/graphs/{graph}"), browser.get("/graphs/000000000000")
    assert (f'href="/graphs/{graph}"' in listed, "0 of 2 done" in listed) == (True, True)
    for words in ("after one</span>", "First &lt;b&gt;", "0 of 2 orders done"):
        assert words in page
    assert (sent.status_code, "Cancel the graph" in page, "Cancel the graph" in after) == (303, True, False)
    assert missing.status_code == 404


def submitted(api: Api, name: str = "night", rows: int = 3, parallel: int = 2) -> str:
    """A batch, whose first orders are submitted as the supervisor does it."""
    each = [{"id": f"row-{number}", "project": "demo", "prompt": f"Fix {number}"} for number in range(1, rows + 1)]
    request = BatchRequest.model_validate({"name": name, "parallel": parallel, "rows": each})
    batch = api.client.call(batches.SUBMIT, request)
    submit_due(api.core)
    return str(batch["id"])


def ended(
    api: Api,
    batch: str,
    row: str,
    *,
    verification: str = "verified",
    status: str = "succeeded",
    exit_status: str = "stopped",
) -> None:
    """End the row's order as a drone's last report does."""
    with api.core.database.write() as db:
        order_id = db.scalar(select(BatchRow.order_id).where(BatchRow.batch_id == batch, BatchRow.key == row))
        order = db.get_one(Order, order_id)
        order.status, order.verification, order.exit_status = status, verification, exit_status
        order.ended_at = api.core.clock.now()


def shown(browser: httpx.Client, path: str) -> str:
    answer = browser.get(path, headers=HTML)
    assert answer.status_code == 200, path
    return answer.text


def test_a_batch_shows_its_statistics_and_its_rows_with_their_orders(working: Api) -> None:
    batch = submitted(working, rows=150)
    ended(working, batch, "row-1")
    ended(working, batch, "row-2", verification="failed", status="failed")
    rows = working.client.call(batches.LIST_ROWS, batch_id=batch)
    with working.browser() as browser:
        listed, page = shown(browser, "/batches"), shown(browser, "/batches/night")
        second = shown(browser, f"/batches/{batch}?after=100")
        failed = shown(browser, f"/batches/{batch}?state=failed")
        part = browser.get(f"/batches/{batch}", headers=PART).text
        browser.post("/actions/cancel_batch", data={"batch_id": batch})
        canceled = shown(browser, f"/batches/{batch}")
        browser.post("/actions/retry_batch", data={"batch_id": batch, "which": "canceled"})
    assert (f'href="/batches/{batch}"' in listed, "2 of 150" in listed, "1 resolved" in listed) == (True, True, True)
    assert all(f'href="/orders/{row["order"]}"' in page for row in rows[:2])
    assert ('<th scope="row">Exit: stopped</th>' in page, "50.0 %" in page) == (True, True)
    assert (rows[1]["order"] in failed, f'href="/orders/{rows[0]["order"]}"' in failed) == (True, False)
    # Long ones are shown in parts.
    assert (page.count('id="row-'), second.count('id="row-')) == (100, 50)
    assert (f'href="/batches/{batch}?after=100#batch-rows"' in page, "Next rows" in second) == (True, False)
    assert (f'data-live="batch:{batch}"' in part, "<!doctype" in part) == (True, False)
    assert ("/actions/cancel_batch" in page, "/actions/retry_batch" in canceled) == (True, True)
    assert working.client.call(batches.SHOW, batch_id=batch)["status"] == "running"


def test_a_batch_is_shown_no_greener_than_its_worst_row(working: Api) -> None:
    ends = {"ok": {}, "ask": {"exit_status": "max_iterations"}, "fail": {"status": "failed"}}
    for kind, how in ends.items():
        batch = submitted(working, kind, rows=2)
        ended(working, batch, "row-1")
        ended(working, batch, "row-2", **how)
        with working.browser() as browser:
            listed, page = shown(browser, "/batches"), shown(browser, f"/batches/{batch}")
        states = [re.findall(r'class="state (\w+)">finished', each)[0] for each in (listed, page)]
        assert states == [kind, kind]


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


def two(api: Api, run: PlayedRun, patch: bytes = SMALL) -> list[str]:
    """The run's order and another one, which differ in prompt and patch."""
    other = run.drone.take(api.submit("Fix the failing tests"))
    return [deliver(api, run), deliver(api, other, patch)]


def test_two_orders_are_side_by_side_with_what_differs_and_the_changes_of_each_file(api: Api, run: PlayedRun) -> None:
    orders = two(api, run, SMALL.replace(b"# The contract, section 4.", b"# See the contract."))
    with api.browser() as browser:
        html = browser.get(f"/compare?orders={','.join(orders)}", headers=PART).text
        tabs = dict(re.findall(r'href="(/compare[^"]+)#compared-file"[^>]*><span class="mono">([^<]+)', html))
        assert set(tabs.values()) == {"docs/guide.md", "src/refund.py", "run.sh"}
        chosen = browser.get(next(unescape(each) for each, name in tabs.items() if name == "src/refund.py")).text
    first, second = re.split(r'<article class="card"', html)[1:]
    assert ("<mark" in first, '<mark class="word">tests</mark>' in second) == (False, True)
    assert first.count("3 files") == second.count("3 files") == 1
    assert html.count("The same change as in") == 1
    assert "<!doctype" not in html
    assert (chosen.count('<code class="del">'), "?comment=" in chosen) == (2, False)


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
