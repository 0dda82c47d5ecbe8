"""The changes of an order, orders side by side, graphs and batches as pages."""

from __future__ import annotations

import re
from html import unescape

import httpx
import pytest
from sqlalchemy import select

from control_plane.contract.declarations import batches, graphs
from control_plane.contract.declarations.batches import BatchRequest
from control_plane.contract.declarations.drafts import SAVE, DraftEdit
from control_plane.contract.declarations.graphs import GraphRequest
from control_plane.contract.declarations.orders import SHOW
from control_plane.contract.declarations.organizations import ADD, OrganizationRequest
from control_plane.contract.declarations.reviews import ADD as ADD_COMMENT
from control_plane.contract.declarations.reviews import LIST, SEND, ReviewCommentRequest, SendReviewRequest
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.batches import BatchRow
from control_plane.db.orders import Order
from control_plane.supervisor.groups import submit_due
from control_plane.web.diffs.labels import path_key
from control_plane.web.live.topics import TOPICS
from shared.blobs import digest
from shared.errors import Conflict
from shared.events import CheckpointStep, ReviewAnswerStep, UserStep
from tests.support import wait_until
from tests.support.fleet import Api, Doc, PlayedRun
from tests.support.patches import SMALL, deliver, many_lines, report

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


def test_the_changes_are_a_page_and_a_part_in_the_view_that_this_browser_chose_last(api: Api, run: PlayedRun) -> None:
    address = f"/orders/{deliver(api, run)}/changes"
    with api.browser() as browser, api.browser() as other:
        page, part = browser.get(address).text, panel(browser, run.order_id)
        split, again = browser.get(f"{address}?view=split").text, panel(browser, run.order_id)
        unified, wrong = browser.get(f"{address}?view=unified").text, browser.get(f"{address}?view=none")
        later, foreign = panel(browser, run.order_id), panel(other, run.order_id)
    assert ("<!doctype html>" in page, "<!doctype html>" in part) == (True, False)
    assert "del     return round(amount, 2)" in lines(part)
    for text in ("3 files", "37 unchanged lines", "now executable", "fleet session checkout"):
        assert text in part
    # The split view has both sides.
    assert (set(lines(split)), lines(split).count("same # Guide")) == (set(lines(part)), 2)
    assert lines(again) == lines(split)
    assert [lines(each) for each in (page, unified, later, foreign)] == [lines(part)] * 4
    assert wrong.status_code == 422


def test_the_view_without_whitespace_is_kept_in_the_addresses_of_its_parts(api: Api, run: PlayedRun) -> None:
    order = deliver(api, run, b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-  one\n-two\n+one\n+three\n")
    with api.browser() as browser:
        hidden = panel(browser, order, "?w=1")
    assert lines(hidden) == ["same one", "del two", "add three"]
    assert "w=1" in unescape(re.findall(r'data-part="([^"]+)"', hidden)[0])


def test_a_viewed_file_stays_closed_until_its_change_differs(api: Api, run: PlayedRun) -> None:
    order = deliver(api, run)
    with api.browser() as browser:
        digest = re.findall(r'name="digest" value="(\w+)"', panel(browser, order))[1]
        for viewed in ("true", "true", ""):
            browser.post(f"/orders/{order}/changes/viewed", data={"digest": digest, "viewed": viewed})
            shown = panel(browser, order)
            closed = [each for each in lines(shown) if "round(amount" in each] == []
            pressed = [part for part in shown.split("<form ") if 'aria-pressed="true"' in part.partition("</form>")[0]]
            assert (closed, [digest in part for part in pressed]) == ((True, [True]) if viewed else (False, []))
        browser.post(f"/orders/{order}/changes/viewed", data={"digest": digest, "viewed": "true"})
        again = deliver(api, run.drone.take(api.submit()), SMALL.replace(b"amount, 2", b"amount, 3"))
        assert "del     return round(amount, 3)" in lines(panel(browser, again))


def test_hostile_names_and_lines_stay_text_and_a_path_is_sent_back_as_it_is(api: Api, run: PlayedRun) -> None:
    name = b'"a/<b>\\"\\n\\342\\200\\256%s"' % MARK.encode()
    markup = f"<script>{MARK}</script>\u202e\r\u200b".encode()
    patch = b"diff --git %s %s\nnew file mode 100644\n--- /dev/null\n+++ %s\n@@ -0,0 +1 @@ %s\n+%s\n" % (
        (name, name.replace(b"a/", b"b/"), name.replace(b"a/", b"b/"), markup, markup)
    )
    order, written = deliver(api, run, patch), f'<b>"\n\u202e{MARK}'
    with api.browser() as browser:
        text = browser.get(f"/orders/{order}/changes?comment={path_key(written)}:new:1").text
        path = unescape(re.findall(r'name="path" value="([^"]+)"', text)[0])
        browser.post("/actions/add_review_comment", data={"order_id": order, "path": path, "text": "x"})
    assert text.count(f"&lt;script&gt;{MARK}") == 2
    assert not re.search(f"<b>|<script>{MARK}|[\u202e\u200b\r]", text)
    assert "&lt;b&gt;&#34;␊⟨U+202E⟩" in text
    assert [each["path"] for each in api.client.call(LIST, order_id=order)] == [written]


def test_of_twenty_thousand_lines_few_are_sent_at_first_and_the_rest_comes_on_demand(api: Api, run: PlayedRun) -> None:
    order = deliver(api, run, many_lines(20, 1000))
    with api.browser() as browser:
        answer = browser.get(f"/orders/{order}/changes")
        whole = answer.text
        address = unescape(re.findall(r'data-rows="([^"]+)"', whole)[0])
        more = browser.get(address, headers=PART).text
        opened = panel(browser, order, f"?open={path_key('src/f7.py')}:1001")
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
    key = path_key("src/f0.py")
    subject = f"order:{order}:review:{key}.new.2-3"
    api.client.call(SAVE, DraftEdit(text="near"), subject=subject)
    with api.browser() as author, api.browser(token=api.token_for("operator")) as other:
        drafted, before = panel(author, order), author.get("/live/now", params=now).json()["versions"]
        add(api, order, "near", path="src/f0.py", start_line=2, end_line=3)
        add(api, order, "far", path="src/f0.py", start_line=800)
        add(api, order, "whole", path="src/f1.py")
        wait_until(lambda: author.get("/live/now", params=now).json()["versions"] != before)
        html, opened, foreign = panel(author, order), panel(author, order, f"?open={key}:901"), panel(other, order)
    assert drafted.index(">3</a>") < drafted.index(f'data-draft="{subject}"') < drafted.index("\nnear</textarea>")
    assert f'data-draft="{subject}"' not in html
    assert html.index("far") < html.index(">2</a>") < html.index("near") < html.index(">4</a>") < html.index("whole")
    assert opened.index(">799</a>") < opened.index("far")
    assert ("Send review (3)" in html, "near" in foreign) == (True, False)


ONE = b"""\
diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,3 +1,5 @@
 import math
+CENT = 1
+RATE = 2
 def add(a, b):
     return a + b
"""
AGAIN = ONE.replace(b"@@ -1,3 +1,5 @@\n", b"@@ -1,3 +1,6 @@\n+# Money\n").replace(b"RATE = 2", b"RATE = 3")
"""The same order some steps later: a line above moves the others, and one line has changed."""
TWO = b"""\
diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,5 +1,6 @@
+# Money
 import math
 CENT = 1
-RATE = 2
+RATE = 3
 def add(a, b):
     return a + b
diff --git a/new.py b/new.py
new file mode 100644
--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+x = 1
"""
BOTH = AGAIN + TWO[TWO.index(b"diff --git a/new.py") :]
"""What the branch has after both turns."""


def next_run(api: Api, run: PlayedRun, first: str) -> PlayedRun:
    """The run of the session's next turn."""
    return run.drone.take(api.submit("And then", session=api.client.call(SHOW, order_id=first)["session"]))


def test_a_running_order_shows_its_newest_stored_changes_of_the_moment_and_a_step_without_any_is_no_news(
    api: Api, run: PlayedRun
) -> None:
    order, topic = run.order_id, {"topic": f"changes:{run.order_id}"}
    caller, source = system_caller(api.core), TOPICS["changes"].source
    with api.browser() as browser:
        before = panel(browser, order)
        report(api, run, ONE)
        seen, reported = browser.get("/live/now", params=topic).json()["versions"], source(api.core, caller, order)
        shown = panel(browser, order)
        run.says("I look around.")
        run.step(CheckpointStep(commit="d" * 40, changed=False, patch_sha256=digest(ONE)))
        again = panel(browser, order)
        same = source(api.core, caller, order)
        report(api, run, AGAIN, stored=False)
        early = panel(browser, order)
        api.store_blob(run, AGAIN, "checkpoint")
        wait_until(lambda: browser.get("/live/now", params=topic).json()["versions"] != seen)
        later, tabs = panel(browser, order), browser.get(f"/orders/{order}").text
        api.store_blob(run, AGAIN)
        uploaded = panel(browser, order)
        deliver(api, run, AGAIN)
        ended = panel(browser, order)
    first, second = (int(re.findall(r"As of step (\d+),", each)[0]) for each in (shown, again))
    assert ("No changes yet" in before, second - first, reported == same) == (True, 2, True)
    assert ["add RATE = 2" in lines(each) for each in (shown, early, later)] == [True, True, False]
    assert ("add RATE = 3" in lines(later), lines(uploaded) == lines(later), ">Changes 1</a>" in tabs) == (True,) * 3
    assert ("As of step" in ended, "Open pull request" in later, "Open pull request" in ended) == (False, False, True)


def test_what_a_drone_withholds_is_named_beside_what_it_reported_before(api: Api, run: PlayedRun) -> None:
    with api.browser() as browser:
        run.step(CheckpointStep(commit="d" * 40, patch_withheld="secret"))
        alone = panel(browser, run.order_id)
        report(api, run, ONE)
        run.step(CheckpointStep(commit="e" * 40, patch_withheld="size", left_out=(".env: it contains a known secret",)))
        beside = panel(browser, run.order_id)
    assert "looks like a secret" in alone
    assert ("too large" in beside, "add RATE = 2" in lines(beside)) == (True, True)


def test_a_comment_on_a_running_order_is_about_the_version_that_was_shown_and_follows_its_line(
    api: Api, run: PlayedRun
) -> None:
    order = run.order_id
    with pytest.raises(Conflict) as refusal:
        add(api, order, "too early", path="calc.py")
    report(api, run, ONE)
    with api.browser() as browser:
        html = panel(browser, order, f"?comment={path_key('calc.py')}:new:2")
        version = re.findall(r'name="patch" value="(\w+)"', html)[0]
        report(api, run, AGAIN)
        fields = {"order_id": order, "path": "calc.py", "patch": version, "side": "new"}
        for line, text in ((2, "stays"), (3, "goes")):
            sent = browser.post("/actions/add_review_comment", data={**fields, "start_line": line, "text": text})
            assert sent.status_code == 303
        unknown = browser.post("/actions/add_review_comment", data={**fields, "patch": "f" * 64, "text": "x"})
        browser.post("/actions/send_review", data={"order_id": order})
        html = panel(browser, order)
    quotes = [(each["quote"], each["sent_to"]) for each in api.client.call(LIST, order_id=order)]
    assert (refusal.value.code, unknown.status_code) == ("E-REVIEW-RESULT", 404)
    assert quotes == [("+CENT = 1", order), ("+RATE = 2", order)]
    assert html.index(">3</a>") < html.index("stays") < html.index(">4</a>")
    assert html.index("On an earlier version") < html.index("+RATE = 2") < html.index("goes") < html.index(">1</a>")


def test_open_forms_and_opened_lines_stay_with_their_file_when_a_later_report_has_another_one_before_it(
    api: Api, run: PlayedRun
) -> None:
    key, patch = path_key("src/f0.py"), many_lines(1, 1800)
    report(api, run, patch)
    with api.browser() as browser:
        before = panel(browser, run.order_id, f"?comment={key}:new:2&open={key}:901")
        part, more = (unescape(re.findall(rf'data-{each}="([^"]+)"', before)[0]) for each in ("part", "rows"))
        report(api, run, ONE + patch)
        after, rows = (browser.get(each, headers=PART).text for each in (part, more))
    assert ("Comment on new line 901" in rows, f'data-upto="{key}:1201"' in rows) == (True, True)
    assert ["calc.py" in html for html in (before, after)] == [False, True]
    for html in (before, after):
        form = re.findall(r'id="(c-[^"]+)".+?name="path" value="([^"]*)"', html, re.DOTALL)[0]
        assert (form, "Comment on new line 900" in html) == ((f"c-{key}-new-2", "src/f0.py"), True)


def test_a_later_turn_shows_the_whole_branch_at_first_and_its_own_changes_on_demand(api: Api, run: PlayedRun) -> None:
    first = deliver(api, run, ONE)
    second = next_run(api, run, first)
    with api.browser() as browser:
        waiting, alone = panel(browser, second.order_id), panel(browser, first)
        report(api, second, TWO, BOTH)
        running = [panel(browser, second.order_id, each) for each in ("", "?scope=turn", "?scope=branch")]
        deliver(api, second, TWO, BOTH)
        ended = [panel(browser, second.order_id, each) for each in ("", "?scope=turn", "?scope=branch")]
        third = next_run(api, run, second.order_id)
        third.ends(response="Nothing to do.")
        nothing = [panel(browser, third.order_id, each) for each in ("", "?scope=turn")]
    assert ("As the last turn left the branch" in waiting, lines(waiting) == lines(alone)) == (True, True)
    assert ("Whole branch" in waiting, "Whole branch" in alone) == (True, False)
    for each in (running, ended):
        assert [set(lines(html)) for html in each] == [set(lines(each[2])), set(lines(each[1])), set(lines(each[2]))]
        assert ["add CENT = 1" in lines(html) for html in each] == [True, False, True]
        assert ["same CENT = 1" in lines(html) for html in each] == [False, True, False]
    assert "scope=branch" in unescape(re.findall(r'data-part="([^"]+)"', ended[2])[0])
    assert (lines(nothing[0]) == lines(ended[0]), lines(nothing[1])) == (True, [])


def test_threads_of_earlier_turns_stand_where_their_lines_are_now_and_the_next_unsettled_one_is_a_jump_away(
    api: Api, run: PlayedRun
) -> None:
    patch = ONE + many_lines(1, 3)
    first = deliver(api, run, patch)
    for text, place in {
        "kept": {"start_line": 2},
        "rewritten": {"start_line": 3},
        "both lines": {"start_line": 4, "end_line": 5},
        "whole file": {},
        "other file": {"path": "src/f0.py", "start_line": 1},
    }.items():
        add(api, first, text, **{"path": "calc.py", **place})
    with api.browser() as browser:
        second = run.drone.take(dict(api.client.call(SEND, SendReviewRequest(), order_id=first)))
        add(api, first, "not sent", path="calc.py")
        ids = {each["text"]: each["id"] for each in api.client.call(LIST, order_id=first)}
        second.step(UserStep(text="the review", source="prompt"))
        second.step(ReviewAnswerStep(comment=ids["kept"], verdict="done"))
        second.step(ReviewAnswerStep(comment=ids["both lines"], verdict="asks", text="Which?"))
        deliver(api, second, TWO, BOTH + many_lines(1, 3))
        whole, turn = panel(browser, second.order_id), panel(browser, second.order_id, "?scope=turn")
        reply = {"order_id": second.order_id, "parent": ids["both lines"], "text": "Both"}
        replied = browser.post("/actions/add_review_comment", data=reply).status_code
        after = panel(browser, second.order_id)
    assert "1 of 5 comments settled" in whole
    assert ("not sent" in whole, replied, "Both" in after) == (False, 303, True)
    thread = {text: whole.index(f'id="comment-{id}"') for text, id in ids.items() if text != "not sent"}
    number = {line: whole.index(f">{line}</a>") for line in (1, 3, 4, 6)}
    assert thread["whole file"] < number[1]
    assert thread["rewritten"] < number[1]
    assert number[3] < thread["kept"] < number[4] < number[6] < thread["both lines"] < thread["other file"]
    assert ("Comments on an earlier version" in turn, "Comments on an earlier version" in whole) == (True, False)
    assert turn.index("Comments on an earlier version") < turn.index(f'id="comment-{ids["other file"]}"')
    # Each unsettled one leads to the next, and the last to the first.
    links = re.findall(r'href="#comment-(\w+)">Next unsettled', whole)
    unsettled = ["rewritten", "whole file", "both lines", "other file"]
    assert sorted(links[1:]) == sorted(ids[each] for each in unsettled)
    assert links[0] in {ids[each] for each in unsettled}


def test_files_are_listed_by_folder_with_marks_and_counts_and_a_filter_finds_the_ones_beyond_the_page(
    api: Api, run: PlayedRun
) -> None:
    order = deliver(api, run, many_lines(150, 2))
    add(api, order, "here", path="src/f3.py", start_line=1)
    with api.browser() as browser:
        digest_ = re.findall(r'name="digest" value="(\w+)"', panel(browser, order))[1]
        browser.post(f"/orders/{order}/changes/viewed", data={"digest": digest_, "viewed": "true"})
        answer = browser.get(f"/orders/{order}/changes")
        found, none = panel(browser, order, "?filter=F14"), panel(browser, order, "?filter=nowhere")
    whole = answer.text
    tree = whole[whole.index('id="tree-files"') : whole.index("and 50 more files")]
    assert len(re.findall(r"<[a-z]", whole)) < 1500
    assert int(answer.headers["content-length"]) < 100_000
    assert (tree.count("<li>"), tree.count('title="Viewed"'), tree.count('title="Comments">1<')) == (100, 1, 1)
    assert 'href="/orders/' in tree
    assert f"after=30#file-{path_key('src/f30.py')}" in unescape(tree)
    assert (found.count('<section class="file"'), "11 files" in found, "No file matches" in none) == (11, True, True)


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
    # No greener than its worst row.
    assert re.findall(r'class="state (\w+)">canceled', canceled)[:1] == ["fail"]
    assert working.client.call(batches.SHOW, batch_id=batch)["status"] == "running"


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


def test_orders_are_side_by_side_with_what_differs_the_changes_of_each_file_and_what_can_be_done(
    api: Api, run: PlayedRun
) -> None:
    second, running, empty = (run.drone.take(api.submit("Fix the failing tests")) for _ in range(3))
    orders = [deliver(api, run), deliver(api, second, SMALL.replace(b"# The contract, section 4.", b"# See it."))]
    empty.ends()
    with api.browser() as browser:
        html = browser.get(f"/compare?orders={','.join(orders)}", headers=PART).text
        tabs = dict(re.findall(r'href="(/compare[^"]+)#compared-file"[^>]*><span class="mono">([^<]+)', html))
        assert set(tabs.values()) == {"docs/guide.md", "src/refund.py", "run.sh"}
        chosen = browser.get(next(unescape(each) for each, name in tabs.items() if name == "src/refund.py")).text
        others = shown(browser, f"/compare?order={orders[0]}&order={running.order_id}&order={empty.order_id}")
    one, other = re.split(r'<article class="card"', html)[1:]
    assert ("<mark" in one, '<mark class="word">tests</mark>' in other) == (False, True)
    assert one.count("3 files") == other.count("3 files") == 1
    assert html.count("The same change as in") == 1
    assert "<!doctype" not in html
    assert (chosen.count('<code class="del">'), "?comment=" in chosen) == (2, False)
    words = ("Open</a>", "Open pull request", "fleet session checkout", "when it has ended", "Nothing to check out")
    assert [[text in each for text in words] for each in others.split("<article")[1:]] == [
        [True, True, True, False, False],
        [True, False, False, True, False],
        [True, False, False, False, True],
    ]


def test_a_column_that_is_gone_or_foreign_says_so_and_too_many_are_left_out(api: Api, run: PlayedRun) -> None:
    order = run.order_id
    api.client.call(ADD, OrganizationRequest(name="other"))
    with api.browser() as browser:
        empty = browser.get("/compare")
        many = browser.get("/compare", params={"order": [order, *(f"{number:012}" for number in range(8))]})
        mixed = browser.get(f"/compare?order={order}&order=000000000000&order=%3Cb%3E")
        none = browser.get("/compare?order=000000000000")
        browser.post("/organization", data={"organization": "other"})
        foreign = browser.get(f"/compare?order={order}")
    assert [each.status_code for each in (empty, mixed, none, foreign)] == [200, 200, 404, 404]
    assert "Only the first 6 orders are compared; 3 more are left out" in many.text
    assert mixed.text.count("or belongs to another organization") == 2
    assert ("Order &lt;b&gt; not found" in mixed.text, "Fix the failing test" in foreign.text) == (True, False)
