"""Logging in and out in a real browser."""

from __future__ import annotations

from playwright.sync_api import Browser
from sqlalchemy import select

from control_plane.db.access import WebSession
from control_plane.declarations import tokens
from tests.browser.conftest import Person
from tests.support.fleet import Api


def test_a_login_link_replaces_a_session_only_by_the_button(person: Person) -> None:
    before = person.context.cookies()
    page = person.open(person.api.client.call(tokens.CREATE_LOGIN_LINK)["url"].removeprefix(person.api.url))
    person.sees("This browser is logged in already")
    assert ("token=" in page.url, person.context.cookies()) == (True, before)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{person.api.url}/")
    assert person.context.cookies() != before


def test_a_log_in_needs_no_script_but_its_own_and_has_the_browsers_key(chromium: Browser, api: Api) -> None:
    context = chromium.new_context()
    visitor = Person(api, context)
    visitor.page.route("**/js/app.js", lambda route: route.abort())
    visitor.log_in()
    context.close()
    with api.core.database.read() as db:
        assert [each.browser_key_hash is not None for each in db.scalars(select(WebSession))] == [True]
