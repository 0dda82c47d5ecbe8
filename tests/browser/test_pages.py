"""What holds on every page in a real browser, logging in, and what another server of the same host is given."""

from __future__ import annotations

import re
from typing import Literal

import httpx
import pytest
from playwright.sync_api import Browser
from sqlalchemy import select

from control_plane.contract.declarations import tokens
from control_plane.db.access import WebSession
from tests.browser.conftest import Person, first_of
from tests.browser.test_journey import ON_THE_WAY, PICTURED
from tests.support import wait_until
from tests.support.axe import need_axe, scrolls_sideways, violations
from tests.support.documents import ROOT
from tests.support.fleet import KEY_HEADER, Api
from tests.support.hostile_texts import fill_with, pages_of
from tests.support.receivers import Receiver
from tests.support.routes import NOBODY, addresses_of_pages, named


def test_a_login_link_starts_or_replaces_a_session_only_by_the_button(person: Person) -> None:
    for leave in (lambda: None, person.context.clear_cookies):
        leave()
        before = person.context.cookies()
        page = person.open(person.api.client.call(tokens.CREATE_LOGIN_LINK)["url"].removeprefix(person.api.url))
        page.wait_for_load_state("networkidle")
        assert ("token=" in page.url, person.context.cookies()) == (True, before)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{person.api.url}/")
        assert person.context.cookies() != before


@pytest.mark.browser
@pytest.mark.long
def test_a_log_in_needs_no_script_but_its_own_and_has_the_browsers_key(chromium: Browser, api: Api) -> None:
    context = chromium.new_context()
    visitor = Person(api, context)
    visitor.page.route("**/js/app.js", lambda route: route.abort())
    visitor.log_in()
    context.close()
    with api.core.database.read() as db:
        assert [each.browser_key_hash is not None for each in db.scalars(select(WebSession))] == [True]


SUBMIT = "/actions/submit"
CURIOUS = b"<script>fetch('/key/' + localStorage.getItem('fleet-browser-key'), { method: 'POST' })</script>"


def test_another_port_receives_the_cookie_but_not_the_key_without_which_nothing_changes(
    person: Person, receiver: Receiver
) -> None:
    person.api.add_work()
    key = person.page.evaluate("localStorage.getItem('fleet-browser-key')")
    receiver.answers, receiver.body, receiver.headers = [200], CURIOUS, {"Content-Type": "text/html"}
    # A window of its own: the pages of a person may request nothing from elsewhere.
    person.context.new_page().goto(receiver.url)
    wait_until(lambda: [each.path for each in receiver.sent if each.path.startswith("/key/")] == ["/key/null"])
    with httpx.Client(base_url=person.api.url, headers={"Cookie": receiver.sent[0].headers["cookie"]}) as thief:
        order = {"prompt": "Steal it", "project": "demo"}
        assert (thief.get("/").status_code, thief.post(SUBMIT, data=order).status_code) == (200, 403)
        assert thief.post(SUBMIT, data=order, headers={KEY_HEADER: key}).status_code == 303


FORMS = ("/actions/add_project", "/actions/create_schedule", "/actions/edit_project?slug={projects}")
VIEWS = ("/orders/{orders}?panel=log", "/compare?order={orders}", "/tasks?view=list", "/cost?range=all")
PARTS = re.compile(r"/(children|earlier|joined|later|news|sent|side|steps)\b")
"""What is not a page of its own."""
OF_SOME = ("/plan", "/compare")
"""Of orders and batches that have one."""
WIDTHS = (320, 375, 1280, 1920)
LONG = "x<img src=x onerror=alert(1)>\u202eevil" + "W" * 200


@pytest.mark.timeout(900)
@pytest.mark.parametrize("look", first_of(("light", (320,)), ("light", WIDTHS), ("dark", WIDTHS)), ids=str)
def test_no_page_has_an_accessibility_problem_or_is_too_wide(
    person: Person, look: tuple[Literal["light", "dark"], tuple[int, ...]]
) -> None:
    """Whatever the texts are."""
    need_axe()
    filled = fill_with(person.api, LONG)
    page, (scheme, widths) = person.page, look
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    found, seen = list[str](), set[str]()
    paths = [*addresses_of_pages(person.api), *pages_of(person.api)]
    things = [*named(paths, filled), *(each.format(**filled.names) for each in (*FORMS, *VIEWS))]
    for path in (each for each in (*paths, *things) if not PARTS.search(each) and NOBODY not in each):
        for width in widths:
            page.set_viewport_size({"width": width, "height": 800})
            answer = page.goto(person.api.url + path)
            assert answer is not None
            if answer.status == 404 and path.endswith(OF_SOME):
                break
            assert answer.ok, path
            seen.add(path.partition("?")[0].rpartition("/")[2])
            found += [f"{path} at {width}: {each}" for each in violations(page)]
            found += [f"{path} at {width}: wider than the window"] if scrolls_sideways(page) else []
            assert page.locator("img[src=x]").count() == 0
    assert found == [], "\n".join(found)
    assert seen >= {each[1:] for each in OF_SOME}


def test_each_page_has_a_picture_on_a_desk_and_on_a_phone(api: Api) -> None:
    pictured = {**PICTURED, **ON_THE_WAY}
    paths = [each.replace("?panel=", "/").partition("?")[0] for each in pictured.values()]
    places = {re.sub(r"\{\w+\}", NOBODY, each) for each in paths}
    places |= {re.sub(r"/(lead|mila|shop|chat)$", f"/{NOBODY}", each) for each in places}
    pages = [each for each in addresses_of_pages(api) if not PARTS.search(each) and each != "/first-use"]
    assert [each for each in pages if each not in places] == []
    shown = (ROOT / "docs" / "pages" / "README.md").read_text()
    files = [f"{name}-{size}.png" for name in pictured for size in ("wide", "narrow")]
    assert [each for each in files if f"({each})" not in shown or not (ROOT / "docs" / "pages" / each).is_file()] == []
