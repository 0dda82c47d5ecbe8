"""Reviewing the changes of an order in a browser, also through a reload and a log-in that ends; deciding a race."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from control_plane.contract.declarations import tokens
from control_plane.contract.declarations.drafts import LIST as LIST_DRAFTS
from control_plane.contract.declarations.orders import SHOW
from control_plane.contract.declarations.reviews import ADD, LIST, SEND, ReviewCommentRequest, SendReviewRequest
from control_plane.db.drones import Drone
from tests.browser.conftest import Person, watch
from tests.support import wait_until
from tests.support.axe import need_axe, scrolls_sideways, violations
from tests.support.fleet import Doc, PlayedRun
from tests.support.patches import SMALL, deliver, many_lines, report

pytestmark = [pytest.mark.browser, pytest.mark.long]


GUIDE, REFUND = (f".file[data-path='{path}']" for path in ("docs/guide.md", "src/refund.py"))


def number(page: Page, line: int, side: str = "new") -> Locator:
    return page.locator(f"{REFUND} a.n[aria-label='Comment on {side} line {line}']")


def comments(person: Person, order: str) -> list[Doc]:
    return list(person.api.client.call(LIST, order_id=order))


@pytest.mark.parametrize("width", [1280, 375])
def test_a_comment_is_added_edited_and_sent_by_mouse(person: Person, run: PlayedRun, width: int) -> None:
    need_axe()
    order = deliver(person.api, run)
    person.page.emulate_media(reduced_motion="reduce")
    # High enough that the bar with the buttons covers nothing.
    person.page.set_viewport_size({"width": width, "height": 3000})
    page = person.open(f"/orders/{order}/changes")
    page.get_by_role("button", name="Viewed: docs/guide.md").click()
    expect(page.locator(f"{GUIDE} .l")).to_have_count(0)
    number(page, 41).click()
    if width == 1280:
        # A range, with Shift and a second click.
        number(page, 38).click(modifiers=["Shift"])
    page.get_by_label("Comment", exact=True).fill("Use a constant")
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator(".comment")).to_contain_text("Use a constant")
    expect(page.locator("form.new-comment")).to_have_count(0)
    page.locator(".edit > summary").click()
    page.locator(".edit textarea").fill("Use a constant, please")
    page.locator(".edit").get_by_role("button", name="Save").click()
    expect(page.locator(".said")).to_have_text("Use a constant, please")
    assert (violations(page), scrolls_sideways(page)) == ([], False)
    page.get_by_text("Send review (1)").click()
    page.get_by_label("About the whole review").fill("Nearly there")
    page.get_by_role("button", name="Send 1 comment").click()
    expect(page.locator(".comment")).to_contain_text("in the next turn")
    (sent,) = comments(person, order)
    place = "src/refund.py:38-41" if width == 1280 else "src/refund.py:41"
    assert (sent["status"], sent["place"], sent["text"]) == ("sent", place, "Use a constant, please")
    assert "Nearly there" in person.api.client.call(SHOW, order_id=sent["sent_to"])["prompt"]


def dragged(page: Page) -> None:
    number(page, 39).hover()
    page.mouse.down()
    number(page, 41).hover()
    expect(page.locator(f"{REFUND} a.picked")).to_have_count(3)
    page.mouse.up()


def pressed(page: Page) -> None:
    for line in (41, 39):
        number(page, line).press("Enter")


def shifted(page: Page) -> None:
    number(page, 39).click()
    number(page, 41).click(modifiers=["Shift"])


def tapped(page: Page) -> None:
    for line in (39, 41):
        number(page, line).tap()


@pytest.mark.parametrize("select", [dragged, pressed, shifted, tapped])
def test_a_range_is_dragged_pressed_shifted_or_tapped(
    person: Person, run: PlayedRun, select: Callable[[Page], None]
) -> None:
    order, page = deliver(person.api, run), person.page
    if select is tapped:
        assert page.context.browser is not None
        state = person.context.storage_state(indexed_db=True)
        page = page.context.browser.new_context(has_touch=True, storage_state=state).new_page()
    page.goto(f"{person.api.url}/orders/{order}/changes")
    expect(page.locator(f"{REFUND} a.n").first).to_be_visible()
    select(page)
    expect(page.locator("form.new-comment")).to_have_count(1)
    page.get_by_label("Comment", exact=True).fill("All of these")
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator(".comment")).to_contain_text("lines 39–41")
    assert [each["place"] for each in comments(person, order)] == ["src/refund.py:39-41"]


def test_the_changes_of_a_running_order_appear_and_move_on_below_an_open_comment(
    person: Person, run: PlayedRun
) -> None:
    need_axe()
    page, order = person.open(f"/orders/{run.order_id}/changes"), run.order_id
    expect(page.get_by_role("heading", name="No changes yet")).to_be_visible()
    report(person.api, run, SMALL)
    number(page, 41).click()
    page.get_by_label("Comment", exact=True).fill("Use a constant")
    report(person.api, run, SMALL.replace(b"HALF_EVEN)", b"HALF_UP)"))
    expect(page.locator(REFUND)).to_contain_text("ROUND_HALF_UP")
    expect(page.get_by_label("Comment", exact=True)).to_have_value("Use a constant")
    page.locator(f"{GUIDE} > details > summary").click()
    report(person.api, run, b"diff --git a/a.sh b/a.sh\nold mode 100644\nnew mode 100755\n" + SMALL)
    expect(page.locator(".file").first).to_contain_text("a.sh")
    expect(page.locator(REFUND).get_by_label("Comment", exact=True)).to_have_value("Use a constant")
    assert [each.get_attribute("open") for each in page.locator(".file > details").all()] == ["", None, "", ""]
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator(".comment")).to_contain_text("Use a constant")
    assert (violations(page), scrolls_sideways(page)) == ([], False)
    page.get_by_text("Send review (1)").click()
    page.get_by_role("button", name="Send 1 comment").click()
    expect(page.locator(".comment")).not_to_contain_text("will be sent")
    (sent,) = comments(person, order)
    assert (sent["sent_to"], sent["place"]) == (order, "src/refund.py:41")


def test_threads_of_an_earlier_turn_are_named_and_the_link_leads_to_the_next_unsettled_one(
    person: Person, run: PlayedRun
) -> None:
    need_axe()
    first, page = deliver(person.api, run), person.page
    for text, place in (("One", {"start_line": 40}), ("Two", {"start_line": 40}), ("All", {})):
        request = ReviewCommentRequest(**{"text": text, "path": "src/refund.py", **place})
        person.api.client.call(ADD, request, order_id=first)
    second = dict(person.api.client.call(SEND, SendReviewRequest(), order_id=first))
    page.set_viewport_size({"width": 1280, "height": 3000})
    person.open(f"/orders/{second['id']}/changes")
    expect(page.get_by_text("0 of 3 comments settled")).to_be_visible()
    assert (violations(page), scrolls_sideways(page)) == ([], False)
    ids = {page.url}
    for _ in range(3):
        target = page.locator(".thread:target").or_(page.locator(".settled")).last
        target.get_by_role("link", name="Next unsettled").click()
        ids.add(page.url)
    assert len(ids) == 4


def test_the_tree_is_filtered_as_its_reader_types_and_its_folders_fold(person: Person, run: PlayedRun) -> None:
    order = deliver(person.api, run, SMALL + many_lines(5, 2))
    page = person.open(f"/orders/{order}/changes")
    names = page.locator("#tree-files li:visible")
    expect(names).to_have_count(8)
    page.get_by_label("Filter files").fill("SRC/f")
    expect(names).to_have_count(5)
    expect(page.locator("#tree-files summary:visible")).to_have_count(1)
    page.locator("#tree-files summary:visible").click()
    expect(names).to_have_count(0)
    page.get_by_label("Filter files").press("Enter")
    page.wait_for_url("**filter=SRC**")
    expect(page.locator("section.file")).to_have_count(5)


def test_a_draft_survives_news_a_reload_and_a_restart_and_canceling_forgets_it(person: Person, run: PlayedRun) -> None:
    order = deliver(person.api, run)
    page = person.open(f"/orders/{order}/changes")
    number(page, 40, side="old").click()
    with page.expect_response("**/api/v1/drafts/**"):
        page.get_by_label("Comment", exact=True).fill("Why was this")
    wait_until(lambda: person.api.client.call(LIST_DRAFTS) != [])
    with person.api.browser() as other:
        fields = {"order_id": order, "path": "docs/guide.md", "text": "Seen elsewhere"}
        assert other.post("/actions/add_review_comment", data=fields).status_code == 303
    expect(page.locator(".comment")).to_contain_text("Seen elsewhere")
    expect(page.get_by_label("Comment", exact=True)).to_have_value("Why was this")
    person.api.restart()
    page.goto(f"{person.api.url}/orders/{order}/changes")
    expect(page.get_by_label("Comment", exact=True)).to_have_value("Why was this")
    page.get_by_text("Cancel").click()
    expect(page.locator("form.new-comment")).to_have_count(0)
    wait_until(lambda: person.api.client.call(LIST_DRAFTS) == [])


def test_canceling_a_comment_before_the_drafts_were_read_forgets_its_text(person: Person, run: PlayedRun) -> None:
    order = deliver(person.api, run)
    page = person.open(f"/orders/{order}/changes")
    number(page, 40, side="old").click()
    with page.expect_response("**/api/v1/drafts/**"):
        page.get_by_label("Comment", exact=True).fill("Why was this")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/v1/drafts?**", hold, times=1)
    page.reload()
    wait_until(lambda: held or page.evaluate("null"))
    page.get_by_text("Cancel").click()
    expect(page.locator("form.new-comment")).to_have_count(0)
    with page.expect_response(lambda answer: answer.request.method == "DELETE"):
        held[0].continue_()
    assert person.api.client.call(LIST_DRAFTS) == []


def test_a_race_is_decided_where_its_orders_stand_side_by_side(person: Person) -> None:
    need_axe()
    api, page = person.api, person.page
    api.add_work()
    drone = api.add_drone()
    with api.core.database.write() as db:
        row = db.get_one(Drone, drone.id)
        row.concurrency = 4
    with api.http() as http:
        request = {"prompt": "Make it faster", "project": "demo", "count": 2, "pick": "person"}
        race = http.post("/api/v1/races", json=request).raise_for_status().json()
    for order, figure in zip(race["orders"], (b"8)", b"9)"), strict=True):
        deliver(api, drone.take(order), SMALL.replace(b"2)", figure))
    person.open("/")
    page.get_by_role("link", name="Compare", exact=True).click()
    expect(page.get_by_role("heading", name="Race:")).to_contain_text("undecided")
    assert violations(page) == []
    page.locator("#column-2").get_by_role("button", name="Take this one").click()
    expect(page.locator("#column-2")).to_contain_text("Taken")
    expect(page.get_by_role("button", name="Take this one")).to_have_count(0)
    with api.http() as http:
        taken = http.get(f"/api/v1/races/{race['race']['id']}").json()["race"]
    assert (taken["winner"], taken["status"]) == (race["orders"][1]["id"], "won")


def test_a_log_in_that_ends_during_a_review_loses_no_word(person: Person, run: PlayedRun) -> None:
    order = deliver(person.api, run)
    page = person.open(f"/orders/{order}/changes")
    number(page, 41).click()
    comment = page.get_by_label("Comment", exact=True)
    comment.fill("Use a constant")
    person.context.clear_cookies()
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator("form.new-comment .form-note")).to_contain_text("You are logged out")
    expect(comment).to_have_value("Use a constant")
    again = person.context.new_page()
    watch(again, person.errors, person.api.url)
    again.goto(person.api.client.call(tokens.CREATE_LOGIN_LINK)["url"])
    again.get_by_role("button", name="Log in").click()
    again.wait_for_url(f"{person.api.url}/")
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator(".comment .said")).to_have_text("Use a constant")
    assert [each["text"] for each in comments(person, order)] == ["Use a constant"]
