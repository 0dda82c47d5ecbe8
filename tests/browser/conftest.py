"""A real Chromium on the real pages; a test fails on any error in the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from control_plane.declarations import tokens
from tests.support import needs
from tests.support.fleet import Api


@dataclass
class Person:
    """A user with a browser, logged in through a one-time link."""

    api: Api
    context: BrowserContext
    page: Page = field(init=False)
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page = self.context.new_page()
        self.page.set_default_timeout(25_000)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda line: self.errors.append(line.text) if "Content Security" in line.text else None)

    def log_in(self) -> None:
        self.page.goto(self.api.client.call(tokens.CREATE_LOGIN_LINK)["url"])
        self.page.wait_for_url(f"{self.api.url}/")

    def open(self, path: str) -> Page:
        self.page.goto(self.api.url + path)
        return self.page

    def sees(self, text: str) -> None:
        """Return once this text is on the page."""
        self.page.get_by_text(text).first.wait_for()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, headless, closed after each file: until then no other test in this process can run a loop."""
    needs("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-background-networking"]
        )
        yield browser
        browser.close()


@pytest.fixture
def person(chromium: Browser, api: Api) -> Iterator[Person]:
    """A logged-in user with a window of ordinary size."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    visitor = Person(api, context)
    visitor.log_in()
    yield visitor
    context.close()
    assert visitor.errors == []
