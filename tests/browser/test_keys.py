"""The keyboard: what each key acts on, and a way from the Inbox to a comment on a change with keys alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from control_plane.contract.declarations import batches, orders, reviews
from control_plane.contract.declarations.batches import BatchRequest, BatchRowRequest
from control_plane.db.drones import InboxMessage
from shared.events import ApprovalStep, ToolCallStep
from tests.browser.conftest import Person
from tests.browser.test_plans import PLAN
from tests.support import wait_until
from tests.support.axe import scrolls_sideways
from tests.support.fleet import Api, Doc, PlayedRun
from tests.support.patches import deliver
from tests.support.waiting import Waiting, everything_waits

pytestmark = [pytest.mark.browser, pytest.mark.long]
APPROVAL = "Approve this command?"


@pytest.fixture
def waiting(api: Api) -> Waiting:
    found = everything_waits(api)
    api.wait_for_hub()
    return found


def told(api: Api) -> list[Doc]:
    """The decisions and messages in the drones' inboxes, oldest first."""
    with api.core.database.read() as db:
        bodies = [row.body for row in db.query(InboxMessage).order_by(InboxMessage.created_at)]
    return [each for each in bodies if each["kind"] != "confirm"]


def reach(person: Person, text: str) -> None:
    """Go up to the first row, then down until the one with this text has the focus."""
    page = person.page
    page.locator("[data-row]", has_text=text).first.wait_for()
    rows = page.locator("[data-row]:visible").count()
    person.press("k " * rows)
    for _ in range(rows):
        if page.locator("[data-row]:has(:focus)", has_text=text).count():
            return
        person.press("j")
    raise AssertionError(f"j does not reach {text}")


def has_focus(page: Page, selector: str) -> None:
    expect(page.locator(f"{selector}:focus")).to_be_attached()


SEQUENCES = {
    "g a": "/agents",
    "g b": "/batches",
    "g c": "/cost",
    "g f": "/fleet",
    "g m": "/models",
    "g n": "/orders/new",
    "g o": "/orders",
    "g p": "/projects",
    "g s": "/sessions",
    "g t": "/tasks",
    "g u": "/automation",
    "g ,": "/settings",
    "g d": "/",
    "g e": "/",
    "g 1": "/",
    "g j": "/",
    "g ?": "/",
    "g Escape": "/",
    "g g": "/",
}
"""Keys in the row of an approval, and the page that they lead to."""


def test_a_started_sequence_swallows_its_keys(person: Person, waiting: Waiting) -> None:
    wrong = {}
    for keys, path in SEQUENCES.items():
        page = person.open("/")
        reach(person, APPROVAL)
        person.press(keys)
        if path != "/":
            page.wait_for_url(f"**{path}")
        elif page.locator("#keys[open], .with-comment[open]").count() or page.url != f"{person.api.url}/":
            wrong[keys] = page.url
        elif not page.locator("[data-row]:has(:focus)", has_text=APPROVAL).count():
            wrong[keys] = "the focus moved"
    assert (wrong, told(person.api)) == ({}, [])
    person.press("d")
    wait_until(lambda: [each["approved"] for each in told(person.api)] == [False])


def test_a_key_acts_on_the_row_with_the_focus_once_and_without_one_only_chooses_a_row(
    person: Person, waiting: Waiting
) -> None:
    page = person.open("/")
    person.press("a")
    first = page.locator("[data-row]:has([data-hotkey=a])").first
    expect(first.locator(":focus")).to_be_attached()
    assert told(person.api) == []
    reach(person, "Windows paths")
    person.press("a")
    expect(page.locator("[data-row]:has(:focus)")).to_contain_text("Windows paths")
    reach(person, APPROVAL)
    # Held down, the key repeats: the rows below have it, too.
    page.keyboard.down("a")
    page.locator("[data-row]", has_text=APPROVAL).wait_for(state="detached")
    for _ in range(5):
        page.keyboard.down("a")
    page.keyboard.up("a")
    assert [each["approved"] for each in wait_until(lambda: told(person.api))] == [True]
    assert person.api.client.call(orders.SHOW, order_id=waiting.checks.order_id)["status"] == "failed"


def test_keys_belong_to_the_topmost_open_thing(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    for opens, closed in (("?", "#keys[open]"), ("Control+k", "#palette[open]")):
        reach(person, APPROVAL)
        person.press(opens)
        page.locator(closed).wait_for()
        person.press("a d j ArrowDown" if opens == "?" else "ArrowDown")
        person.press("Escape")
        page.locator(closed).wait_for(state="detached")
        # The focus is where it was.
        expect(page.locator("[data-row]:has(:focus)")).to_contain_text(APPROVAL)
    summary = page.locator("#own-menu > summary")
    while not summary.evaluate("each => each === document.activeElement"):
        person.press("Shift+Tab")
    person.press("Enter ArrowDown a d c g o")
    has_focus(page, "#own-menu .menu button")
    person.press("Escape")
    has_focus(page, "#own-menu > summary")
    expect(page.locator("#own-menu[open]")).to_have_count(0)
    # It also closes once something else has the focus.
    person.press("Enter")
    expect(page.locator("#own-menu[open]")).to_have_count(1)
    person.press("j")
    person.press("Escape Enter Shift+Tab")
    expect(page.locator("#own-menu[open]")).to_have_count(0)
    assert (told(person.api), page.url) == ([], f"{person.api.url}/")


def test_every_shortcut_of_a_page_is_listed(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    person.press("?")
    listed = page.locator("#keys .keys > div")
    lines = [tuple(line.split("\n")) for line in listed.all_inner_texts()]
    assert {"Next row", "Approve", "Deny", "Comment", "Agents", "New order"} <= {each[0] for each in lines}
    declared = page.locator("[data-hotkey]").evaluate_all("all => all.map(each => each.dataset.hotkey)")
    assert {each.replace("Mod+k", "Ctrl K").replace("Shift+a", "Shift A") for each in declared} - {
        " ".join(each[1:]) for each in lines
    } == set()


@pytest.fixture
def decisions(api: Api) -> dict[str, PlayedRun]:
    """One order of each kind whose form has several decisions, by the kind."""
    api.add_work()
    drone = api.add_drone("mila")
    runs = {kind: drone.take(api.submit(kind, plan_first=kind == "plan")) for kind in ("approval", "limit", "plan")}
    runs["approval"].asks("c1", "shell", "Publishes commits", "git push")
    runs["limit"].step(ApprovalStep(about="limit", call_id="l", tool="limit", why="At its limit", limit="cost"))
    runs["plan"].presents(PLAN)
    api.wait_for_hub()
    return runs


def test_enter_in_a_field_of_a_form_with_several_decisions_takes_none_of_them(
    person: Person, decisions: dict[str, PlayedRun]
) -> None:
    page, posts = person.page, []
    page.on(
        "request", lambda each: posts.append(each.url) if each.method == "POST" and "/actions" in each.url else None
    )
    tried = 0
    for path in (
        "/",
        *(f"/orders/{each.order_id}" for each in decisions.values()),
        f"/orders/{decisions['plan'].order_id}/plan",
    ):
        person.open(path)
        page.locator("main .with-comment").evaluate_all("all => all.forEach((each) => { each.open = true; })")
        fields = page.locator(
            "form[data-decides] :is(textarea, input:not([type=hidden], [type=submit], [type=checkbox]))"
        )
        for field in fields.all():
            field.click()
            person.press(
                "Control+Enter" if field.evaluate("each => each.matches('textarea')") else "Enter Control+Enter"
            )
            tried += 1
    assert (tried > 20, posts, told(person.api)) == (True, [], [])
    person.open(f"/orders/{decisions['approval'].order_id}")
    person.press("c")
    page.keyboard.type("to main only")
    person.press("Escape d")
    wait_until(lambda: [(each["approved"], each["comment"]) for each in told(person.api)] == [(False, "to main only")])


SENDS: dict[str, dict[str, bool]] = {
    "Control+Enter": {"interrupt": False},
    "Control+Shift+Enter": {"interrupt": True},
    "Control+Alt+Enter": {"after": True},
}


def test_the_panels_the_composer_and_stop_have_keys_and_escape_leaves_every_text_box(
    person: Person, run: PlayedRun
) -> None:
    page = person.open(f"/orders/{run.order_id}")
    for key, panel in (("k", "checks"), ("l", "log"), ("d", "details"), ("c", "changes")):
        person.press(f"t {key}")
        page.locator(f"[data-panel-name={panel}]").wait_for()
        has_focus(page, "#panel-body")
    person.press("t t")
    has_focus(page, "#talk")
    person.press("t l /")
    has_focus(page, "#log input")
    person.press("t Escape")
    has_focus(page, "#panel-body")
    for keys, asked in (
        ("Control+Enter", {}),
        ("Control+Shift+Enter", {"interrupt": True}),
        ("Control+Alt+Enter", {"after": True}),
    ):
        person.press("e")
        page.keyboard.type("Go on")
        with page.expect_response("**/actions/say"):
            person.press(keys)
        expect(page.get_by_label("Message", exact=True)).to_have_value("")
        body = told(person.api)[-1]
        assert {name: body.get(name) for name in asked} == asked
        person.press("Escape")
        has_focus(page, "#panel-body")
    person.press(".")
    page.locator("#session-menu[open]").wait_for()
    person.press("Shift+s Escape")
    assert person.api.client.call(orders.SHOW, order_id=run.order_id)["status"] == "running"
    person.press("Shift+s")
    page.locator("#head").get_by_text("canceling").wait_for()


def test_with_keys_alone_from_the_inbox_through_a_session_to_a_comment_on_its_changes(
    person: Person, run: PlayedRun
) -> None:
    run.step(ToolCallStep(call_id="c1", tool="shell", arguments={"command": "git push"}))
    run.asks("c1", "shell", "Publishes commits", "git push")
    page = person.open("/orders")
    person.press("g i")
    reach(person, APPROVAL)
    person.press("Enter")
    page.wait_for_url(f"**/orders/{run.order_id}")
    person.press("c")
    page.keyboard.type("only this once")
    person.press("Escape a")
    (decided,) = wait_until(lambda: told(person.api))
    assert (decided["approved"], decided["comment"]) == (True, "only this once")
    order = deliver(person.api, run)
    page.locator("#outcome-title").wait_for()

    person.press("t c")
    page.locator(".file .l").first.wait_for()
    person.press("j v")
    expect(page.locator(".file[data-path='docs/guide.md'] .l:visible")).to_have_count(0)
    person.press("j c")
    page.keyboard.type("Why this file?")
    person.press("Control+Enter")
    page.locator(".said", has_text="Why this file?").wait_for()
    reach(person, "src/refund.py")
    person.press("ArrowDown ArrowDown ArrowDown ArrowUp c")
    page.keyboard.type("And this line?")
    person.press("Escape")
    has_focus(page, ".file[data-path='src/refund.py'] a.n")
    person.press("c Control+Enter")
    page.locator(".said", has_text="And this line?").wait_for()
    person.press("n n")
    expect(page.locator(".thread:focus")).to_contain_text("And this line?")
    person.press("p")
    expect(page.locator(".thread:focus")).to_contain_text("Why this file?")
    made = {(each["place"], each["text"]) for each in person.api.client.call(reviews.LIST, order_id=order)}
    assert made == {("src/refund.py", "Why this file?"), ("src/refund.py:39", "And this line?")}
    person.press("x")
    page.wait_for_url("**view=split")
    page.locator(".l.pair").first.wait_for()


def choose(person: Person, text: str, kind: str, label: str) -> None:
    """Open the palette, type this, go down to the choice, and take it."""
    page = person.page
    person.press("Control+k")
    page.keyboard.type(text)
    wanted = page.locator("#palette [role=option]", has_text=label).filter(has_text=kind).first
    wanted.wait_for()
    for _ in range(40):
        if wanted.get_attribute("aria-selected") == "true":
            break
        person.press("ArrowDown")
    person.press("Enter")
    page.locator("#palette[open]").wait_for(state="detached")


def test_the_palette_goes_to_everything_acts_on_what_is_shown_and_creates(person: Person, waiting: Waiting) -> None:
    api, row = person.api, BatchRowRequest(id="1", prompt="Fix it", project="demo")
    batch = api.client.call(batches.SUBMIT, BatchRequest(name="nightly", rows=[row]))
    page = person.open(f"/orders/{waiting.approval.order_id}")
    for text, kind, label, path in (
        ("refunds", "Session", "Fix rounding of refunds", "/sessions/"),
        ("windows", "Task", "DEFA-0001 Windows paths", f"/tasks/{waiting.task}"),
        ("mil", "Drone", "mila", "/fleet/mila"),
        ("demo", "Project", "demo", "/orders?project=demo"),
        ("test", "Agent", "tester", "/agents/tester"),
        ("scripted", "Model", "", "/models#provider-"),
        ("night", "Batch", "nightly", f"/batches/{batch['id']}"),
        ("audit", "Settings", "Audit log", "/settings/audit"),
        ("autom", "Go to", "Automation", "/automation"),
        ("new ord", "Go to", "New order", "/orders/new"),
    ):
        choose(person, text, kind, label)
        page.wait_for_url(re.compile(re.escape(api.url + path)))
    # What can be created, each in the dialog of its own form.
    for text, title in (("schedule", "Add schedule"), ("new model", "Add model"), ("machine", "Add a machine")):
        choose(person, text, "Create", title)
        page.locator("#dialog[open] h2", has_text=title).wait_for()
        person.press("Escape")
        page.locator("#dialog[open]").wait_for(state="detached")
    # Acts of the present thing, also out of its closed menu, and on a row by its name.
    person.open("/fleet")
    choose(person, "drain", "This page", "Drain: mila")
    page.get_by_role("button", name="Resume").first.wait_for()
    person.open(f"/orders/{waiting.approval.order_id}")
    choose(person, "rename", "This page", "Rename")
    page.locator("#dialog[open]").wait_for()
    person.press("Escape")
    choose(person, "deny", "This page", "Deny")
    wait_until(lambda: [each["approved"] for each in told(api) if each["kind"] == "decide"] == [False])


def test_the_palette_shows_first_what_was_worked_on_last_and_takes_nothing_before_it_is_shown(
    person: Person, waiting: Waiting
) -> None:
    page = person.open(f"/orders/{waiting.approval.order_id}")
    page.route("**/search*", lambda route: None)
    person.press("Control+k Enter")
    page.locator("#palette[open]").wait_for(state="detached")
    assert told(person.api) == []
    page.unroute("**/search*")
    # Also out of a text box, where its own keys are text.
    person.press("e")
    page.keyboard.type("ad")
    person.press("Control+k")
    kinds = page.locator("#palette [role=option] .end")
    kinds.first.wait_for()
    found = kinds.all_inner_texts()
    assert list(dict.fromkeys(found))[:3] == ["Session", "Task", "This page"]
    assert {"Go to", "Create", "Settings"} <= set(found)
    page.keyboard.type("zzzz")
    person.sees("Nothing found")
    person.press("Escape")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    expect(page.get_by_label("Message", exact=True)).to_have_value("ad")


def test_on_a_phone_the_search_and_the_mark_of_liveness_are_on_every_page(person: Person, waiting: Waiting) -> None:
    page = person.page
    page.set_viewport_size({"width": 375, "height": 700})
    mark = page.locator(".live-mark:visible")
    for path in ("/", "/orders", f"/orders/{waiting.approval.order_id}", "/fleet", f"/tasks/{waiting.task}"):
        person.open(path)
        expect(mark).to_have_text("Live")
        expect(mark).to_be_in_viewport()
        assert not scrolls_sideways(page)
        page.get_by_role("button", name="Search").first.click()
        page.keyboard.type("refunds")
        page.get_by_role("option", name="Fix rounding of refunds").first.wait_for()
        page.keyboard.press("Escape")
    person.api.stop()
    expect(mark).to_contain_text("Reconnecting (last event")
    expect(mark).to_be_in_viewport()
    person.api.start()
    expect(mark).to_have_text("Live")
