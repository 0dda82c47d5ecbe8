"""Reviewing the changes of an order: by mouse, by keyboard, on a phone, without scripts, and through a reload."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from control_plane.declarations.drafts import LIST as LIST_DRAFTS
from control_plane.declarations.orders import SHOW
from control_plane.declarations.reviews import LIST
from tests.browser.conftest import Person
from tests.support import wait_until
from tests.support.axe import need_axe, scrolls_sideways, violations
from tests.support.fleet import Api, Doc, PlayedRun
from tests.support.patches import deliver, many_lines


@pytest.fixture
def run(api: Api) -> PlayedRun:
    """A run of an order on a drone that is online."""
    api.add_work()
    drone = api.add_drone()
    api.wait_for_hub()
    return drone.take(api.submit("Fix rounding of refunds"))


def number(page: Page, line: int, file: int = 1, side: str = "new") -> object:
    return page.locator(f"#file-{file} a.n[aria-label='Comment on {side} line {line}']")


def comments(person: Person, order: str) -> list[Doc]:
    return list(person.api.client.call(LIST, order_id=order))


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 375])
def test_a_comment_is_added_edited_and_sent_by_mouse(person: Person, run: PlayedRun, width: int) -> None:
    order = deliver(person.api, run)
    person.page.set_viewport_size({"width": width, "height": 800})
    page = person.open(f"/orders/{order}/changes")
    page.get_by_role("button", name="Viewed: docs/guide.md").click()
    expect(page.locator("#file-0 .l")).to_have_count(0)
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
    page.get_by_text("Send review (1)").click()
    page.get_by_label("About the whole review").fill("Nearly there")
    page.get_by_role("button", name="Send 1 comment").click()
    expect(page.locator(".comment")).to_contain_text("in the next turn")
    (sent,) = comments(person, order)
    place = "src/refund.py:38-41" if width == 1280 else "src/refund.py:41"
    assert (sent["status"], sent["place"], sent["text"]) == ("sent", place, "Use a constant, please")
    assert "Nearly there" in person.api.client.call(SHOW, order_id=sent["sent_to"])["prompt"]
    assert not scrolls_sideways(page)


@pytest.mark.browser
@pytest.mark.long
def test_a_review_is_written_and_sent_by_keyboard_alone(person: Person, run: PlayedRun) -> None:
    order = deliver(person.api, run)
    page = person.open(f"/orders/{order}/changes")
    keys = page.keyboard
    for line in (40, 41):
        number(page, line).focus()
        keys.press("Enter")
        expect(page.get_by_label("Comment", exact=True)).to_be_focused()
    keys.type("Both lines")
    keys.press("Control+Enter")
    expect(page.locator(".comment")).to_contain_text("lines 40–41")
    page.locator(".send > summary").focus()
    keys.press("Enter")
    keys.press("Tab")
    keys.type("Thanks")
    keys.press("Control+Enter")
    wait_until(lambda: comments(person, order)[0]["status"] == "sent")
    assert comments(person, order)[0]["place"] == "src/refund.py:40-41"


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


@pytest.mark.browser
@pytest.mark.long
def test_more_lines_come_on_demand_and_stay(person: Person, run: PlayedRun) -> None:
    order = deliver(person.api, run, many_lines(2, 900))
    page = person.open(f"/orders/{order}/changes")
    before = page.locator(".l").count()
    assert page.evaluate("document.querySelectorAll('*').length") < 1500
    page.get_by_text("Show more lines").first.click()
    wait_until(lambda: page.locator(".l").count() >= before + 300)
    number(page, before + 100, file=0).click()
    page.get_by_label("Comment", exact=True).fill("Far below")
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator(".comment")).to_contain_text(f"line {before + 100}")
    assert page.locator(".l").count() >= before + 300


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_with_a_review_is_accessible(person: Person, run: PlayedRun, scheme: str) -> None:
    need_axe()
    order = deliver(person.api, run)
    page = person.page
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    person.open(f"/orders/{order}/changes")
    number(page, 41).click()
    page.get_by_label("Comment", exact=True).fill("x")
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator(".comment")).to_have_count(1)
    for view, width in (("", 1280), ("?view=split", 1280), ("?comment=1:old:40", 320)):
        # High enough that the bar with the buttons covers nothing.
        page.set_viewport_size({"width": width, "height": 3000})
        person.open(f"/orders/{order}/changes{view}")
        assert (violations(page), scrolls_sideways(page)) == ([], False)
