"""Two users in two browsers at the same instant, and pages whose thing is removed while they are open."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from sqlalchemy import select, update

from control_plane.contract.declarations import drones, orders, sessions, users
from control_plane.contract.declarations.drones import DroneEdit
from control_plane.contract.declarations.tokens import ApiTokenRequest
from control_plane.contract.declarations.users import UserRequest
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.orders import Order
from control_plane.db.waits import Wait
from control_plane.operations.access import tokens
from control_plane.operations.retention.removable import RemovalPhase
from control_plane.operations.retention.removing import Remover
from tests.browser.conftest import Person
from tests.support.fleet import Api
from tests.support.waiting import Waiting, everything_waits

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def waiting(api: Api) -> Waiting:
    found = everything_waits(api)
    api.wait_for_hub()
    return found


@pytest.fixture
def two(chromium: Browser, api: Api, waiting: Waiting) -> Iterator[tuple[Person, Person]]:
    """The users ann and bob, each with a browser of their own on the inbox."""
    found = []
    for name in ("ann", "bob"):
        email = f"{name}@example.org"
        api.client.call(users.ADD, UserRequest(email=email, name=name, role="operator"))
        request = ApiTokenRequest(name=name, role="operator", user=email)
        token = str(tokens.create_api_token(api.core, system_caller(api.core), request).token)
        found.append(Person(api, chromium.new_context(viewport={"width": 1280, "height": 800})))
        found[-1].log_in(token)
    ann, bob = found
    yield ann, bob
    for each in found:
        each.context.close()
    assert ann.errors + bob.errors == []


def row(page: Page, kind: str) -> Locator:
    return page.locator(f"[id^=ask-{kind}-]")


def at_once(*buttons: Locator) -> None:
    """Each is pressed by its own browser at the same moment."""
    for each in buttons:
        expect(each).to_be_enabled()
    at = buttons[0].evaluate("Date.now()") + 1500
    for each in buttons:
        each.evaluate("(button, at) => void setTimeout(() => button.click(), at - Date.now())", at)


WORDS = {"approve": "approved", "deny": "denied"}
MEANS = {"Approve": "approve", "Raise and continue": "approve", "Continue": "approve", "Deny": "deny", "Stop": "deny"}


def test_of_two_decisions_at_the_same_instant_one_counts_and_the_other_user_reads_whose(
    two: tuple[Person, Person], waiting: Waiting
) -> None:
    ann, bob = (each.open("/") for each in two)
    core = two[0].api.core
    for kind, (mine, theirs) in {
        "approval": ("Approve", "Deny"),
        "secret": ("Deny", "Approve"),
        "branch": ("Approve", "Deny"),
        "limit": ("Raise and continue", "Stop"),
        "budget": ("Stop", "Continue"),
        "question": ("Half to even", "Half up"),
    }.items():
        pressed = ((ann, mine), (bob, theirs))
        at_once(*(row(page, kind).get_by_role("button", name=re.compile(f"^{name}")) for page, name in pressed))
        for page in (ann, bob):
            row(page, kind).wait_for(state="detached")
        with core.database.read() as db:
            run = waiting.runs[kind]
            (wait,) = db.scalars(select(Wait).where(Wait.order_id == run.order_id, Wait.run_id == run.id))
            first, answer = str(wait.answered_by), str(wait.answer)
        late, won = (bob, mine) if first.startswith("ann") else (ann, theirs)
        word = WORDS[answer] if kind != "question" else "answered"
        late.get_by_text(re.compile(rf"was already {word} by {first} at .* UTC")).first.wait_for()
        assert answer == (won if kind == "question" else MEANS[won])
        assert [page.url for page in (ann, bob)] == [f"{two[0].api.url}/"] * 2


def test_a_plan_and_a_note_are_decided_once_too(two: tuple[Person, Person], waiting: Waiting) -> None:
    ann, bob = (each.open("/") for each in two)
    for page in (ann, bob):
        row(page, "plan").locator("summary.primary").click()
    row(bob, "plan").get_by_label("Comment").fill("Smaller steps")
    pressed = {
        "plan": (("Approve ticked points", "Send back"), "was already (approved|sent back) by (ann|bob) at .* UTC"),
        "memory": (("Keep", "Refuse"), "was already (kept|refused) by (ann|bob)"),
    }
    for kind, (names, said) in pressed.items():
        at_once(
            *(
                row(page, kind).get_by_role("button", name=re.compile(f"^{name}"))
                for page, name in zip((ann, bob), names, strict=True)
            )
        )
        for page in (ann, bob):
            row(page, kind).wait_for(state="detached")
        told = [page.get_by_text(re.compile(said)).all_inner_texts() for page in (ann, bob)]
        (late,) = (number for number, each in enumerate(told) if each)
        assert ("ann", "bob")[1 - late] in told[late][0]


def test_the_second_to_save_sees_both_values_and_decides(two: tuple[Person, Person]) -> None:
    names = {"ann": two[0], "bob": two[1]}
    session = str(two[0].api.client.call(orders.LIST)[-1]["session"])
    for name, each in names.items():
        each.open(f"/actions/edit_session?session_id={session}").locator("#f-name").fill(f"Named by {name}")
    at_once(*(each.page.locator("main form footer button.primary") for each in two))
    for each in two:
        each.page.locator("#conversation, #f-name[aria-invalid]").wait_for()
    mine, theirs = ("ann", "bob") if "/actions/" in two[0].page.url else ("bob", "ann")
    late = names[mine]
    late.sees(f"Someone else changed this to: Named by {theirs}")
    expect(late.page.locator("#f-name")).to_have_value(f"Named by {mine}")
    late.page.locator("main form footer button.primary").click()
    late.page.wait_for_url(re.compile("/sessions/"))
    assert late.api.client.call(sessions.SHOW, session_id=session)["name"] == f"Named by {mine}"


def leave(api: Api, order_id: str) -> None:
    """Retention removes the order and its session, as it does with a service order that has ended."""
    with api.core.database.write() as db:
        db.execute(update(Order).where(Order.id == order_id).values(purpose="title"))
    removed = Remover(api.core).remove(RemovalPhase("service orders", [order_id]))
    assert removed.figures.rows == 1


def test_what_is_removed_while_its_page_is_open_is_named_there_and_what_was_written_stays(
    person: Person, waiting: Waiting
) -> None:
    api, rename = person.api, DroneEdit(new_name="mia")
    spent = waiting.runs["spent"].order_id
    session = str(api.client.call(orders.SHOW, order_id=spent)["session"])
    pages: dict[str, tuple[str, str, Callable[[], object]]] = {
        "/fleet/mila": ("'mila'", "Go to Fleet", lambda: api.client.call(drones.EDIT, rename, name="mila")),
        "/fleet/oka": ("'oka'", "Go to Fleet", lambda: api.client.call(drones.REMOVE, name="oka")),
        f"/sessions/{session}": (spent, "Go to Sessions", lambda: leave(api, spent)),
        f"/orders/{waiting.checks.order_id}": (
            waiting.checks.order_id,
            "Go to Orders",
            lambda: leave(api, waiting.checks.order_id),
        ),
    }
    for path, (named, where, remove) in pages.items():
        page = person.open(path)
        expect(page.locator(".live-mark").first).to_have_attribute("data-state", "live")
        if box := page.locator("#message").all():
            box[0].fill("What I wrote")
        remove()
        page.locator("#gone", has_text=named).wait_for()
        assert page.locator("main form button:enabled").count() == 0
        if box:
            expect(box[0]).to_have_value("What I wrote")
        assert page.url == api.url + path
        page.locator("#gone").get_by_role("link", name=where).click()
        page.wait_for_url(re.compile(f"/{where.split()[-1].lower()}$"))
