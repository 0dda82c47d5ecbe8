"""The changes of an order as a page, for every reader and every patch."""

from __future__ import annotations

import re
from html import unescape

import httpx

from control_plane.declarations.drafts import SAVE, DraftEdit
from control_plane.declarations.reviews import ADD as ADD_COMMENT
from control_plane.declarations.reviews import LIST, SEND, ReviewCommentRequest
from control_plane.web.diffs.labels import path_key
from shared.events import ReviewAnswerStep
from shared.states import OrderStatus
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


def elements(html: str) -> int:
    return len(re.findall(r"<[a-z]", html))


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


def test_without_a_patch_the_page_says_why(api: Api, run: PlayedRun) -> None:
    with api.browser() as browser:
        before = panel(browser, run.order_id)
        run.ends(OrderStatus.FAILED)
        after = panel(browser, run.order_id)
        empty = panel(browser, deliver(api, run.drone.take(api.submit()), b""))
    assert ["has no patch: it is failed" in text for text in (before, after)] == [False, True]
    assert ("No changes yet" in before, "Nothing changed" in empty) == (True, True)


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


def test_hostile_names_and_lines_stay_text(api: Api, run: PlayedRun) -> None:
    name = b'"a/<b>\\"\\n\\342\\200\\256%s"' % MARK.encode()
    markup = f"<script>{MARK}</script>\u202e\r\u200b".encode()
    patch = b"diff --git %s %s\nnew file mode 100644\n--- /dev/null\n+++ %s\n@@ -0,0 +1 @@ %s\n+%s\n" % (
        (name, name.replace(b"a/", b"b/"), name.replace(b"a/", b"b/"), markup, markup)
    )
    order = deliver(api, run, patch)
    with api.browser() as browser:
        text = browser.get(f"/orders/{order}/changes?comment=0:new:1").text
    assert text.count(f"&lt;script&gt;{MARK}") == 2
    assert not re.search(f"<b>|<script>{MARK}|[\u202e\u200b\r]", text)
    assert "&lt;b&gt;&#34;␊⟨U+202E⟩" in text


def test_of_twenty_thousand_lines_few_are_sent_at_first_and_the_rest_comes_on_demand(api: Api, run: PlayedRun) -> None:
    order = deliver(api, run, many_lines(20, 1000))
    with api.browser() as browser:
        answer = browser.get(f"/orders/{order}/changes")
        whole = answer.text
        address = re.findall(r'data-rows="([^"]+)"', whole)[0].replace("&amp;", "&")
        more = browser.get(address, headers=PART).text
        opened = panel(browser, order, "?open=7:1001")
    assert elements(whole) < 1500, elements(whole)
    assert int(answer.headers["content-length"]) < 100_000
    shown = len([each for each in lines(whole) if each.startswith("add")])
    assert f'aria-label="Comment on new line {shown + 1}"' in more
    assert len(lines(opened)) == shown + 1000


def add(api: Api, order: str, text: str, **place: object) -> Doc:
    request = ReviewCommentRequest(**{"text": text, "path": "src/refund.py", **place})
    return dict(api.client.call(ADD_COMMENT, request, order_id=order))


def test_a_pending_comment_is_its_authors_own_and_changes_the_version_of_the_order(api: Api, run: PlayedRun) -> None:
    order = deliver(api, run)
    now = {"topic": f"order:{order}"}
    with api.browser() as author, api.browser(token=api.token_for("operator")) as other:
        before = author.get("/live/now", params=now).json()["versions"]
        add(api, order, "Use a constant", start_line=41)
        wait_until(lambda: author.get("/live/now", params=now).json()["versions"] != before)
        own, foreign = panel(author, order), panel(other, order)
    assert ("Use a constant" in own, "Send review (1)" in own, "Use a constant" in foreign) == (True, True, False)


def test_a_comment_stands_below_its_line_and_one_elsewhere_at_the_top_of_its_file(api: Api, run: PlayedRun) -> None:
    order = deliver(api, run, many_lines(2, 900))
    add(api, order, "near", path="src/f0.py", start_line=3)
    add(api, order, "far", path="src/f0.py", start_line=800)
    add(api, order, "whole", path="src/f1.py")
    with api.browser() as browser:
        html, opened = panel(browser, order), panel(browser, order, "?open=0:901")
    assert html.index("far") < html.index(">2</a>") < html.index("near") < html.index(">4</a>") < html.index("whole")
    assert opened.index(">799</a>") < opened.index("far")


def test_each_answer_of_the_agent_is_shown_and_asks_for_a_reply_where_it_asks(api: Api, run: PlayedRun) -> None:
    order = deliver(api, run)
    ids = [add(api, order, text, start_line=41)["id"] for text in ("one", "two", "three")]
    turn = run.drone.take(dict(api.client.call(SEND, order_id=order)))
    answers = zip(ids, ("done", "declined", "asks"), ("", "It is used", "Which sum?"), strict=True)
    for id, verdict, text in answers:
        turn.step(ReviewAnswerStep(comment=id, verdict=verdict, text=text))
    deliver(api, turn)
    with api.browser() as browser:
        html = panel(browser, order)
        reply = {"order_id": order, "parent": ids[2], "text": "The first", "next": f"/orders/{order}/changes"}
        assert browser.post("/actions/add_review_comment", data=reply).headers["location"].endswith("/changes")
        after = panel(browser, order)
    for words in (
        "done in <code>bbbbbbbbbb",
        "declined",
        "It is used",
        "asks back",
        "Which sum?",
        f"/orders/{turn.order_id}/changes",
    ):
        assert words in html
    assert html.count("<details open><summary>Reply") == 1
    assert ("The first" in after, "Send review (1)" in after) == (True, True)


def test_a_draft_opens_its_form_until_the_comment_is_added(api: Api, run: PlayedRun) -> None:
    order = deliver(api, run)
    subject = f"order:{order}:review:{path_key('src/refund.py')}.new.40-41"
    api.client.call(SAVE, DraftEdit(text="Both lines"), subject=subject)
    with api.browser() as browser:
        before = panel(browser, order)
        add(api, order, "Both lines", start_line=40, end_line=41)
        after = panel(browser, order)
    assert before.index(">41</a>") < before.index(f'data-draft="{subject}"') < before.index("\nBoth lines</textarea>")
    assert f'data-draft="{subject}"' not in after


def test_a_path_with_hidden_characters_is_sent_back_as_it_is(api: Api, run: PlayedRun) -> None:
    name = "a\u202eb\n.py"
    quoted = b'"%s/a\\342\\200\\256b\\n.py"'
    patch = b"diff --git %s %s\n--- %s\n+++ %s\n@@ -1 +1 @@\n-a\n+b\n" % tuple(
        quoted % side for side in (b"a", b"b", b"a", b"b")
    )
    order = deliver(api, run, patch)
    with api.browser() as browser:
        html = panel(browser, order, "?comment=0:new:1")
        assert "\u202e" not in html
        path = unescape(re.findall(r'name="path" value="([^"]+)"', html)[0])
        browser.post("/actions/add_review_comment", data={"order_id": order, "path": path, "text": "x"})
    assert [each["path"] for each in api.client.call(LIST, order_id=order)] == [name]
