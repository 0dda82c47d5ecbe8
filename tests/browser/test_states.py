"""What has to be opened, typed or broken first: dialogs, menus, errors, empty pages. None has a problem either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest
from playwright.sync_api import Page
from sqlalchemy import delete

from control_plane.contract.declarations import orders
from control_plane.db.access import WebSession
from tests.browser.conftest import Person
from tests.browser.test_pages import PARTS
from tests.support.axe import need_axe, scrolls_sideways, violations
from tests.support.fleet import Api
from tests.support.patches import deliver
from tests.support.routes import NOBODY, addresses_of_pages
from tests.support.waiting import Waiting, everything_waits

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(900)]
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDTHS = (320, 375, 1280, 1920)
LONG = "\u05e9\u05dc\u05d5\u05dd \u202eevil " + "W" * 200
"""A text from right to left, one that pretends to be, and a word without a place to break."""


def go(address: str, *then: Callable[[Page], object]) -> Callable[[Person], None]:
    """A state of a page: what is done after it was opened."""

    def reach(person: Person) -> None:
        page = person.open(address)
        page.locator("#live-mark[data-state=live]").wait_for(state="attached")
        for each in then:
            each(page)

    return reach


def press(selector: str) -> Callable[[Page], object]:
    return lambda page: page.locator(f"{selector}:visible").first.click()


def types(selector: str, text: str) -> Callable[[Page], object]:
    return lambda page: page.locator(selector).first.fill(text)


def sees(selector: str) -> Callable[[Page], object]:
    return lambda page: page.locator(selector).first.wait_for()


def keys(*names: str) -> Callable[[Page], object]:
    return lambda page: [page.keyboard.press(each) for each in names]


def states(waiting: Waiting, delivered: str) -> dict[str, Callable[[Person], None]]:
    """How each state is reached, by its name."""
    add_project = (press("a[href^='/actions/add_project']"), sees("dialog[open] [name=slug]"))
    mistaken = (types("dialog[open] [name=slug]", LONG), types("dialog[open] [name=git_url]", LONG))
    send = (press("dialog[open] button.primary"), sees("dialog[open] .problem"))
    return {
        "inbox": go("/", sees("[data-row]")),
        "inbox, answering": go("/", press("[data-row] .with-comment > summary"), sees("[data-row] textarea:visible")),
        "inbox, undo": go("/", press("button:text-is('Mark as done')"), sees("#notices button")),
        "palette": go("/orders", keys("Control+k"), types("#palette input", "re"), sees("#palette [role=option]")),
        "shortcuts": go("/orders", keys("?"), sees("#keys[open]")),
        "dialog": go("/projects", *add_project),
        "dialog, more options": go("/projects", *add_project, press("dialog[open] summary")),
        "dialog, mistakes": go("/projects", *add_project, *mistaken, *send),
        "dialog, command": go("/projects", *add_project, press("dialog[open] summary:has-text('command')")),
        "token": go("/fleet", press("a[href^='/actions/create_join_token']"), press("dialog button.primary")),
        "new order": go("/orders/new", press("summary")),
        "orders, selected": go("/orders", keys("j", "x")),
        "orders, none match": go("/orders?text=nothing-like-this"),
        "session, menu": go(f"/orders/{delivered}", press("#session-menu > summary")),
        "session, command": go(f"/orders/{waiting.approval.order_id}", sees(".decide")),
        "session, question": go(f"/orders/{waiting.question.order_id}", sees(".decide")),
        "changes, comment": go(f"/orders/{delivered}/changes", press("a.n"), sees("form.new-comment")),
        "changes, split": go(f"/orders/{delivered}/changes?view=split"),
        "drone, menu": go("/fleet", press(".card.drone details[id^=menu] > summary")),
        "own menu": go("/settings", press(":is(#own-menu, #more-menu) > summary")),
        "not found": lambda person: person.open(f"/orders/{NOBODY}").locator(".problem").wait_for(),
        "refused log-in": refused,
        "logged out": logged_out,
    }


def refused(person: Person) -> None:
    page = person.open("/login")
    page.get_by_label("API token").fill("fa_wrong")
    page.get_by_role("button", name="Log in").click()
    page.locator(".problem").wait_for()


def logged_out(person: Person) -> None:
    """The log-in ends while a page is open, and the user acts."""
    page = person.open("/")
    page.locator("#live-mark[data-state=live]").wait_for(state="attached")
    with person.api.core.database.write() as db:
        db.execute(delete(WebSession))
    page.get_by_role("button", name="Approve").first.click()
    page.locator("#logged-out:visible").wait_for()


def problems(page: Page, name: str, width: int) -> list[str]:
    # The bars at the edges cover what is scrolled below them.
    page.evaluate("scrollTo(0, 0)")
    # An open menu covers parts of the page until it is closed.
    within = ".menu-of[open] > .menu, .side .menu" if name.endswith("menu") else "html"
    found = [f"{name} at {width}: {each}" for each in violations(page, within)]
    return found + ([f"{name} at {width}: wider than the window"] if scrolls_sideways(page) else [])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_state_of_a_page_has_an_accessibility_problem_or_is_too_wide(
    person: Person, width: int, scheme: Scheme
) -> None:
    need_axe()
    waiting = everything_waits(person.api)
    delivered = delivered_order(person.api)
    page, found = person.page, list[str]()
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 900})
    for name, reach in states(waiting, delivered).items():
        reach(person)
        found += problems(page, name, width)
    assert found == [], "\n".join(found)


def delivered_order(api: Api) -> str:
    """An order that ended with changes, whose title and reason are long."""
    return deliver(api, api.add_drone("ada").take(api.submit(LONG)))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_page_of_an_empty_fleet_has_an_accessibility_problem_or_is_too_wide(person: Person, scheme: Scheme) -> None:
    need_axe()
    page, found = person.page, list[str]()
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    assert person.api.client.call(orders.LIST) == []
    for path in (each for each in addresses_of_pages(person.api) if NOBODY not in each and not PARTS.search(each)):
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(person.api.url + path)
            found += problems(page, path, width)
    assert found == [], "\n".join(found)
