"""Every page: with markup in every name and text, for a viewer, and for another organization."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.parser import HTMLParser

import httpx

from control_plane.core.lookups.organizations import system_caller
from tests.support.filled import fill
from tests.support.fleet import Api
from tests.support.hostile_texts import MARK, fill_with, pages_of
from tests.support.organizations import add_organization
from tests.support.routes import NOBODY, NOT_FOR_VIEWERS, addresses_of_pages, named

MARKUP = "'\"><xss onx='1' onx=\"1\">"
ESCAPED = "&lt;xss"


class Markup(HTMLParser):
    """Finds elements and attributes that only our text can have brought."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "xss" or any(name.startswith(("onx", "xss")) for name, _ in attrs):
            self.found.append(str(self.get_starttag_text()))


def test_markup_in_any_name_or_text_stays_text_on_every_page(api: Api) -> None:
    fill_with(api, MARKUP)
    form = dict.fromkeys(("prompt", "project", "provider", "drone", "labels"), MARKUP)
    with api.browser() as browser:
        pages = {path: each.text for path, each in read(browser, pages_of(api)).items()}
        steps = [f"{path}?step={number}" for path in pages if path.endswith("/sent") for number in range(1, 9)]
        sent = {path: each.text for path, each in read(browser, steps).items()}
        others = {path: each.text for path, each in read(browser, [path + MARKUP for path in IN_ADDRESS]).items()}
        refused = browser.post("/actions/submit", data=form, headers=HTML).text
    every = {**pages, **sent, **others, "refused form": refused}
    assert {path: found for path, page in every.items() if (found := Markup(page).found)} == {}
    assert all("<html" in page for page in others.values())
    assert any(ESCAPED in page for page in sent.values())
    assert sum(path.endswith("/plan") and ESCAPED in page for path, page in pages.items()) == 2
    without = {path for path, page in pages.items() if ESCAPED not in page and not path.endswith(PARTS)}
    assert without <= WITHOUT_TEXTS
    assert sum(page.count(ESCAPED) for page in every.values()) > 100


HTML = {"Accept": "text/html"}
IN_ADDRESS = ("/", "/orders/", "/sessions/", "/login?next=", "/login?token=", "/?project=")
PARTS = ("/earlier", "/children", "/steps", "/checks", "/plan", "/sent")
"""Parts of pages, which have no text of some orders, or of some steps."""
WITHOUT_TEXTS = {"/login", "/orders", "/side", "/fleet/joined", "/settings", "/settings/attention"}
OWN = {"/settings/access", "/settings/attention"}
"""Where everyone changes what is their own: log-ins of their browsers, and how they are told."""
ACTS = re.compile(r'(?:action|href)="/actions/|<textarea')


def read(browser: httpx.Client, paths: Iterable[str]) -> dict[str, httpx.Response]:
    return {path: browser.get(path, headers=HTML, follow_redirects=True) for path in paths}


def test_a_viewer_is_offered_no_action_on_any_page_and_another_organization_sees_nothing(api: Api) -> None:
    admin = system_caller(api.core)
    filled, paths = fill(api, admin, MARK), addresses_of_pages(api)
    add_organization(api.core, admin, "payments")
    plain, things = [path for path in paths if NOBODY not in path], named(paths, filled)
    with api.browser(token=api.token_for("viewer")) as viewer:
        answers = read(viewer, [*plain, *things])
    assert {path for path, each in answers.items() if each.status_code == 403} == NOT_FOR_VIEWERS
    refused = {path for path, each in answers.items() if each.status_code not in {200, 403}}
    # There is no plan and no answer of the model, and the other one asks for a join token.
    assert {path.rpartition("/")[2] for path in refused} == {"plan", "sent?step=1", "joined"}
    assert {path for path, each in answers.items() if ACTS.search(each.text)} <= OWN
    assert sum(MARK in each.text for each in answers.values()) > 20

    with api.browser() as browser:
        browser.post("/organization", data={"organization": "payments"})
        found, others = read(browser, things), read(browser, plain)
    assert (len(found) > 15, {path for path, each in found.items() if each.status_code != 404}) == (True, set())
    assert {path for path, each in others.items() if f"{MARK}-" in each.text} == set()
