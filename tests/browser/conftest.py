"""A real Chromium on the real pages; a test fails on any error in the page."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, TimeoutError, expect, sync_playwright

from tests.support import PATIENCE, needs
from tests.support.fleet import Api, PlayedRun


def first_of(*values: object) -> list[object]:
    """Parameters of which `make test` takes the first only: widths, color schemes and other ways to the same page."""
    marks = (pytest.mark.browser, pytest.mark.long)
    return [values[0], *(pytest.param(value, marks=marks) for value in values[1:])]


EXPECTED = re.compile(r"status of 4\d\d|ERR_CONNECTION|ERR_INCOMPLETE|ERR_NETWORK_CHANGED|ERR_EMPTY_RESPONSE")
"""What Chromium itself writes to the console when a server refuses something or is away."""


def watch(page: Page, errors: list[str], origin: str) -> None:
    """Collect the page's errors: of scripts, of the console, of the content policy, and requests to other origins."""
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda line: errors.append(line.text) if line.type == "error" and not EXPECTED.search(line.text) else None,
    )
    page.on(
        "request", lambda request: None if request.url.startswith((origin, "data:")) else errors.append(request.url)
    )


@dataclass
class Person:
    """A user with a browser, logged in through a one-time link."""

    api: Api
    context: BrowserContext
    page: Page = field(init=False)
    origin: str = ""
    """Where its browser finds the pages, if not at the server itself."""
    errors: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Requests that got no answer."""

    def __post_init__(self) -> None:
        self.origin = self.origin or self.api.url
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000 * PATIENCE)
        watch(self.page, self.errors, self.origin)
        self.page.on("requestfailed", lambda request: self.failed.append(f"{request.url}: {request.failure}"))

    def log_in(self, token: str = "") -> None:
        """As the admin, or with this token."""
        self.open("/login").get_by_label("API token").fill(token or self.api.token)
        self.page.get_by_role("button", name="Log in").click()
        try:
            self.page.wait_for_url(f"{self.origin}/")
        except TimeoutError as error:
            shown, log = self.page.inner_text("body"), self.api.log.read_text()[-3000:]
            pytest.fail(f"{error}\nat {self.page.url}: {shown}\nno answer: {self.failed}\nthe server: {log}")

    def open(self, path: str) -> Page:
        self.page.goto(self.origin + path)
        return self.page

    def press(self, keys: str) -> None:
        """Press these keys one after the other: `g a Control+Enter`."""
        for key in keys.split():
            self.page.keyboard.press(key)

    def sees(self, text: str) -> None:
        """Return once this text is on the page."""
        self.page.get_by_text(text).first.wait_for()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, headless, closed after each file: until then no other test in this process can run a loop."""
    needs("chromium")
    with sync_playwright() as playwright:
        expect.set_options(timeout=60_000 * PATIENCE)
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


@pytest.fixture
def run(api: Api) -> PlayedRun:
    """A run of an order on a drone that is online."""
    api.add_work()
    drone = api.add_drone("mila")
    api.wait_for_hub()
    return drone.take(api.submit("Publish the release"))
