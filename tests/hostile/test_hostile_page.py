"""A hostile page in the browser of a logged-in user changes nothing in the fleet, and reads nothing of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, sync_playwright
from sqlalchemy import func, select

from control_plane.contract.declarations import tokens
from control_plane.db.audit import AuditRecord
from control_plane.db.metadata import METADATA
from tests.browser.conftest import Person
from tests.hostile.page_tries import BLOCKED, PAGE, REFUSED
from tests.support import needs
from tests.support.fleet import Api
from tests.support.receivers import Receiver

pytestmark = [pytest.mark.campaign, pytest.mark.hostile]
SECRET = "zebra-in-the-prompt"
OTHER_SITE = "evil.example"
_READ = ".then(async (answer) => `${answer.status} ${await answer.text()}`)"
REBOUND = [
    f"fetch('/login'){_READ}",
    f"fetch('/login', {{ method: 'POST', body: new URLSearchParams({{ token }}) }}){_READ}",
    f"fetch('/api/v1/orders'){_READ}",
    f"fetch('/mcp', {{ method: 'POST', body: '{{}}', headers: {{ Authorization: `Bearer ${{token}}` }} }}){_READ}",
]
"""What scripts of a page try whose name leads to the fleet. With a token of the user, it needs no such name."""
MOVING = {"last_used_at", "last_seen_at"}
"""Columns that reading changes."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser that finds another site on this machine."""
    needs("chromium")
    rules = f"--host-resolver-rules=MAP {OTHER_SITE} 127.0.0.1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-background-networking", rules]
        )
        yield browser
        browser.close()


@pytest.fixture
def user(chromium: Browser, api: Api) -> Iterator[Person]:
    """A logged-in user whose order has a secret in its prompt."""
    api.add_work()
    context = chromium.new_context()
    person = Person(api, context)
    person.log_in()
    yield person
    context.close()


@pytest.mark.parametrize("host", [OTHER_SITE, "127.0.0.1"], ids=["another site", "another port"])
def test_a_hostile_page_changes_nothing_and_reads_nothing(user: Person, receiver: Receiver, host: str) -> None:
    api = user.api
    receiver.answers, receiver.body, receiver.headers = [200], PAGE.encode(), {"Content-Type": "text/html"}
    given = {
        "fleet": api.url,
        "order": api.submit(SECRET)["id"],
        "token": api.token_for("viewer"),
        "link": api.client.call(tokens.CREATE_LOGIN_LINK)["url"].partition("token=")[2],
    }
    before, cookies = rows(api), fleet_cookies(user)
    page = user.context.new_page()
    problems = []
    for what, script in {**REFUSED, **BLOCKED}.items():
        page.goto(f"http://{host}:{receiver.port}/")
        read = attempt(page, script, given)
        if SECRET in read or (rows(api), fleet_cookies(user)) != (before, cookies):
            problems.append(f"{what}: {read[:300]}")
    assert problems == []
    user.open(f"/orders/{given['order']}")
    user.sees(SECRET)
    api.stop()
    assert refusals(api) >= len(REFUSED)


def test_a_name_that_is_rebound_to_the_fleet_gets_nothing(user: Person) -> None:
    api, page = user.api, user.context.new_page()
    order, before, cookies = api.submit(SECRET)["id"], rows(api), fleet_cookies(user)
    shown = page.goto(f"http://{OTHER_SITE}:{api.port}/orders/{order}")
    assert (shown and shown.status, "E-HOST" in page.content()) == (403, True)
    given = {"order": order, "token": api.token}
    read = {script: str(page.evaluate(f"({{ order, token }}) => {script}", given)) for script in REBOUND}
    assert {script: text for script, text in read.items() if "403" not in text or SECRET in text} == {}
    assert (rows(api), fleet_cookies(user)) == (before, cookies)


def attempt(page: Page, script: str, given: dict[str, str]) -> str:
    """All that the script read, or why it could not."""
    late = "new Promise((resolve) => setTimeout(resolve, 5000, 'no answer'))"
    try:
        return str(page.evaluate(f"({{ fleet, order, token, link }}) => Promise.race([{script}, {late}])", given))
    except Error as error:
        return str(error)


def fleet_cookies(user: Person) -> list[Any]:
    return [each for each in user.context.cookies() if each["name"].startswith("fleet_")]


def rows(api: Api) -> dict[str, list[Any]]:
    """All that the database contains, without the audit log and the times of the last use."""
    tables = [table for table in METADATA.sorted_tables if not table.name.startswith("audit_")]
    with api.core.database.read() as db:
        return {
            table.name: sorted(map(repr, db.execute(select(*(c for c in table.c if c.name not in MOVING)))))
            for table in tables
        }


def refusals(api: Api) -> int:
    """How many requests of other sites the audit log counts, all by their network address."""
    with api.core.database.read() as db:
        counted = select(func.sum(AuditRecord.count)).where(
            AuditRecord.code == "E-OTHER-SITE", AuditRecord.address == "127.0.0.1"
        )
        return int(db.scalar(counted) or 0)
