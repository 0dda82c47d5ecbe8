"""Logging in and out in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from control_plane.declarations import tokens
from tests.browser.conftest import Person
from tests.support import wait_until
from tests.support.fleet import Api, PlayedRun


@pytest.fixture
def run(api: Api) -> PlayedRun:
    """A run of an order on a drone that is online."""
    api.add_work()
    drone = api.add_drone("mila")
    api.wait_for_hub()
    return drone.take(api.submit("Fix the failing test"))


def test_a_login_link_replaces_a_session_only_by_the_button(person: Person) -> None:
    before = person.context.cookies()
    page = person.open(person.api.client.call(tokens.CREATE_LOGIN_LINK)["url"].removeprefix(person.api.url))
    person.sees("This browser is logged in already")
    assert ("token=" in page.url, person.context.cookies()) == (True, before)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{person.api.url}/")
    assert person.context.cookies() != before


@pytest.mark.browser
@pytest.mark.long
def test_a_page_whose_user_was_logged_out_says_so_and_keeps_what_was_written(person: Person, run: PlayedRun) -> None:
    page = person.open(f"/orders/{run.order_id}")
    box = page.get_by_label("Message", exact=True)
    box.fill("do not lose me")
    person.context.clear_cookies()
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_text("You are logged out").first.wait_for()
    expect(box).to_have_value("do not lose me")
    other = person.context.new_page()
    other.goto(person.api.client.call(tokens.CREATE_LOGIN_LINK)["url"])
    other.wait_for_url(f"{person.api.url}/")
    page.get_by_role("button", name="Send", exact=True).click()
    wait_until(lambda: box.input_value() == "")
