"""Two users with one session open at the same time, and a log-in that ends while its user writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from control_plane.client.fleet import FleetClient
from control_plane.declarations import tokens, users
from control_plane.declarations.reviews import LIST as LIST_COMMENTS
from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.declarations.users import UserRequest
from shared.events import UserStep
from tests.browser.conftest import Person, watch
from tests.support.fleet import Api, PlayedRun
from tests.support.patches import deliver

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def other(chromium: Browser, api: Api) -> Iterator[Person]:
    """A second user, in a browser of their own."""
    api.client.call(users.ADD, UserRequest(email="bea@example.org", name="Bea", role="operator"))
    made = api.client.call(tokens.CREATE_API, ApiTokenRequest(role="operator", user="bea@example.org"))
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    visitor = Person(api, context)
    with FleetClient(api.url, made["token"]) as client:
        visitor.page.goto(client.call(tokens.CREATE_LOGIN_LINK)["url"])
    visitor.page.wait_for_url(f"{api.url}/")
    yield visitor
    context.close()
    assert visitor.errors == []


def test_messages_reach_both_and_drafts_stay_their_own(person: Person, other: Person, run: PlayedRun) -> None:
    pages = [each.open(f"/orders/{run.order_id}") for each in (person, other)]
    mine, theirs = (page.get_by_label("Message", exact=True) for page in pages)
    with pages[1].expect_response(lambda answer: "/drafts/" in answer.url and answer.request.method == "PUT"):
        theirs.press_sequentially("what Bea has not sent")
    mine.fill("Mind the changelog")
    mine.press("Control+Enter")
    for page in pages:
        page.locator(".queued").get_by_text("Mind the changelog").wait_for()
    run.step(UserStep(text="Mind the changelog", source="steer"))
    for page in pages:
        page.locator("#blocks").get_by_text("Mind the changelog").wait_for()
    expect(theirs).to_have_value("what Bea has not sent")
    pages[0].reload()
    expect(mine).to_have_value("")
    pages[1].reload()
    expect(theirs).to_have_value("what Bea has not sent")


def test_a_log_in_that_ends_during_a_review_loses_no_word(person: Person, run: PlayedRun) -> None:
    order = deliver(person.api, run)
    page = person.open(f"/orders/{order}/changes")
    page.locator("#file-1 a.n[aria-label='Comment on new line 41']").click()
    comment = page.get_by_label("Comment", exact=True)
    comment.fill("Use a constant")
    person.context.clear_cookies()
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator("form.new-comment .form-note")).to_contain_text("You are logged out")
    expect(comment).to_have_value("Use a constant")

    again = person.context.new_page()
    watch(again, person.errors, person.api.url)
    again.goto(person.api.client.call(tokens.CREATE_LOGIN_LINK)["url"])
    again.wait_for_url(f"{person.api.url}/")
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator(".comment .said")).to_have_text("Use a constant")
    assert [each["text"] for each in person.api.client.call(LIST_COMMENTS, order_id=order)] == ["Use a constant"]
