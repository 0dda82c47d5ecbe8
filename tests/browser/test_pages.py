"""Logging in and out in a real browser."""

from __future__ import annotations

from control_plane.declarations import tokens
from tests.browser.conftest import Person


def test_a_login_link_replaces_a_session_only_by_the_button(person: Person) -> None:
    before = person.context.cookies()
    page = person.open(person.api.client.call(tokens.CREATE_LOGIN_LINK)["url"].removeprefix(person.api.url))
    person.sees("This browser is logged in already")
    assert ("token=" in page.url, person.context.cookies()) == (True, before)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{person.api.url}/")
    assert person.context.cookies() != before
