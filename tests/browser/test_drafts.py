"""No text is lost: whatever is killed while it is typed or sent, it is there afterwards, or was sent exactly once."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route, expect
from sqlalchemy import select

from control_plane.contract.declarations import tokens
from control_plane.contract.declarations.drafts import LIST, SAVE, SHOW, DraftEdit
from control_plane.core.lookups.organizations import in_organization, system_caller
from control_plane.db.orders import Order, SteeringMessage
from control_plane.db.reviews import ReviewComment
from control_plane.db.teams import Comment
from control_plane.db.waits import Wait
from tests.browser.conftest import Person, watch
from tests.support import wait_until, warm_processes
from tests.support.fleet import Api
from tests.support.made import make_project
from tests.support.organizations import add_organization
from tests.support.patches import deliver
from tests.support.waiting import everything_waits

pytestmark = [pytest.mark.browser, pytest.mark.long]
SENT = (Order.prompt, SteeringMessage.text, Wait.answer, Wait.comment, ReviewComment.text, Comment.text)


@dataclass(frozen=True)
class Kind:
    """A place where users type, and the button that sends what they typed there."""

    path: str
    box: Callable[[Page], Locator]
    button: str


@pytest.fixture
def kinds(api: Api) -> Mapping[str, Kind]:
    """One place of each kind, on a fleet where all of them are open at once."""
    waiting = everything_waits(api)
    drone = api.add_drone("ida")
    running = drone.take(api.submit("A running one")).order_id
    reviewed = deliver(api, drone.take(api.submit("A finished one")))
    second = drone.take(api.submit("Another release"))
    second.asks("c2", "shell", "Publishes", "git push")
    api.wait_for_hub()
    return {
        "new order": Kind(
            "/orders/new?project=demo", lambda page: page.get_by_label("What should be done?"), "Submit order"
        ),
        "reply": Kind(f"/orders/{reviewed}", message, "Reply"),
        "steer": Kind(f"/orders/{running}", message, "Send"),
        "answer": Kind("/", in_row("Which rounding", "Write an answer"), "Answer"),
        "approval": Kind("/", in_row("Another release", "Comment"), "Approve"),
        "approval in a session": Kind(f"/orders/{waiting.approval.order_id}", comment, "Approve"),
        "plan": Kind(f"/orders/{waiting.runs['plan'].order_id}/plan", comment, "Send back"),
        "review comment": Kind(f"/orders/{reviewed}/changes", on_a_line, "Add comment"),
        "task comment": Kind(f"/tasks/{waiting.task}", comment, "Comment"),
    }


def message(page: Page) -> Locator:
    return page.get_by_label("Message", exact=True)


def comment(page: Page) -> Locator:
    return page.locator("#content").get_by_label("Comment")


def form_of(box: Locator) -> Locator:
    return box.locator("xpath=ancestor::form")


def in_row(title: str, summary: str) -> Callable[[Page], Locator]:
    def box(page: Page) -> Locator:
        row = page.locator("[data-row]", has_text=title)
        details = row.locator("details.with-comment", has=page.locator("textarea"))
        if details.get_attribute("open") is None:
            details.get_by_text(summary).first.click()
        return details.locator("textarea")

    return box


def on_a_line(page: Page) -> Locator:
    number = page.locator(".file[data-path='src/refund.py'] a.n[aria-label='Comment on new line 41']")
    number.wait_for()
    form = page.locator("form.new-comment")
    if not form.count():
        number.click()
    return form.get_by_label("Comment", exact=True)


def text_of(kind: str) -> str:
    return f"typed as {kind}"


def drafts(api: Api) -> list[str]:
    """The texts that the server has, sorted."""
    subjects = [each["subject"] for each in api.client.call(LIST)]
    return sorted(api.client.call(SHOW, subject=subject)["text"] for subject in subjects)


def type_all(context: BrowserContext, api: Api, kinds: Mapping[str, Kind]) -> dict[str, Page]:
    """Type into every place, each in a tab of its own, until the server has it all."""
    pages = {}
    for name, kind in kinds.items():
        pages[name] = page = context.new_page()
        page.goto(api.url + kind.path)
        kind.box(page).fill(text_of(name))
    wait_until(lambda: drafts(api) == sorted(map(text_of, kinds)))
    return pages


def found(context: BrowserContext, api: Api, kinds: Mapping[str, Kind]) -> dict[str, str]:
    """What is in each place on a new page."""
    values = {}
    for name, kind in kinds.items():
        page = context.new_page()
        page.goto(api.url + kind.path)
        box = kind.box(page)
        expect(box).not_to_have_value("")
        values[name] = box.input_value()
        page.close()
    return values


def sent(api: Api) -> Counter[str]:
    """How often each text was sent."""
    with api.core.database.read() as db:
        return Counter(text for column in SENT for text in db.scalars(select(column)) if text)


def log_in(page: Page, api: Api) -> None:
    page.goto(api.client.call(tokens.CREATE_LOGIN_LINK)["url"])
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{api.url}/")


def test_what_was_typed_is_there_after_its_pages_were_closed(person: Person, kinds: Mapping[str, Kind]) -> None:
    for page in type_all(person.context, person.api, kinds).values():
        page.close()
    assert found(person.context, person.api, kinds) == {name: text_of(name) for name in kinds}
    # Places that send the same have one draft: here a task's page and its row in the inbox.
    box = in_row("Windows paths", "Reply")(person.open("/"))
    expect(box).to_have_value(text_of("task comment"))


def test_what_was_typed_belongs_to_the_organization_that_the_page_shows(person: Person) -> None:
    api, admin = person.api, system_caller(person.api.core)
    add_organization(api.core, admin, "payments")
    make_project(api.core, in_organization(api.core, admin, "payments"), "shop")
    page = person.open("/settings")
    page.locator("#org-menu summary").click()
    page.get_by_role("button", name="payments").click()
    page.locator("#org-menu summary", has_text="payments").wait_for()
    box = person.open("/orders/new?project=shop").get_by_label("What should be done?")
    box.fill("typed")
    with api.http() as http:
        wait_until(lambda: http.get("/api/v1/drafts", params={"org": "payments"}).json())
    assert drafts(api) == []
    expect(person.open("/orders/new?project=shop").get_by_label("What should be done?")).to_have_value("typed")


def test_what_was_typed_is_there_after_the_browser_was_killed(
    chromium: Browser, api: Api, kinds: Mapping[str, Kind], tmp_path: Path
) -> None:
    def start() -> BrowserContext:
        return chromium.browser_type.launch_persistent_context(
            tmp_path, executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )

    context = start()
    log_in(context.new_page(), api)
    type_all(context, api, kinds)
    (pid,) = [int(each.parent.name) for each in Path("/proc").glob("[0-9]*/cmdline") if is_browser(each, tmp_path)]
    with context.expect_event("close"):
        os.kill(pid, signal.SIGKILL)
    again = start()
    log_in(again.new_page(), api)
    assert found(again, api, kinds) == {name: text_of(name) for name in kinds}
    again.close()


def is_browser(command: Path, profile: Path) -> bool:
    """Whether this is the first process of the browser with this profile."""
    try:
        words = command.read_bytes().decode().split("\0")
    except OSError:
        return False
    return f"--user-data-dir={profile}" in words and not any(word.startswith("--type=") for word in words)


@contextmanager
def served(api: Api) -> Iterator[Popen[bytes]]:
    """The same control plane as `api`, as a process of its own on the same port."""
    settings = api.core.settings
    variables = {
        "FLEET_DATABASE_URL": settings.database_url,
        "FLEET_BROKER_URL": settings.broker_url,
        "FLEET_MASTER_KEY_FILE": str(settings.master_key_file),
        "FLEET_BLOB_DIR": str(settings.blob_dir),
        "FLEET_PORT": str(api.port),
    }
    with api.log.open("ab") as log:
        process = warm_processes.popen(
            [sys.executable, "-m", "tests.support.serving", "api"],
            stdout=log,
            stderr=log,
            env={**os.environ, **variables},
        )
    try:
        wait_until(lambda: answers(api, process))
        yield process
    finally:
        process.kill()
        process.wait()


def answers(api: Api, process: Popen[bytes]) -> bool:
    assert process.poll() is None, api.log.read_text()[-3000:]
    try:
        return httpx.get(f"{api.url}/api/v1/health", trust_env=False).is_success
    except httpx.HTTPError:
        return False


def test_what_was_typed_is_there_after_the_server_was_killed_and_what_was_typed_meanwhile_is_saved_later(
    person: Person, kinds: Mapping[str, Kind]
) -> None:
    api = person.api
    api.stop()
    with served(api):
        pages = type_all(person.context, api, kinds)
    for name, page in pages.items():
        kinds[name].box(page).fill(f"{text_of(name)}, and more")
        expect(page.locator(".draft-note")).to_contain_text("Not saved yet: the server does not answer")
    pages.pop("steer").close()
    with served(api):
        for page in pages.values():
            expect(page.locator(".draft-note")).to_have_count(0)
        assert found(person.context, api, kinds) == {name: f"{text_of(name)}, and more" for name in kinds}


TRY_AGAIN = """() => new MutationObserver(() => {
  const button = [...document.querySelectorAll("button")].find((each) => each.textContent === "Try again");
  if (!button || "kept" in localStorage) return;
  const texts = [...button.form.querySelectorAll("textarea, [data-draft]")].map((each) => each.value);
  localStorage.kept = texts.find((each) => each.startsWith("typed as ")) ?? "";
  button.click();
}).observe(document.body, { childList: true, subtree: true })"""
"""Press the button as soon as it is there."""
NO_SHARED_WORKER = "delete window.SharedWorker"
"""The page itself then asks for news, which would take away the form of what was done before its answer is lost."""


def test_what_is_sent_again_because_its_answer_was_lost_counts_once(person: Person, kinds: Mapping[str, Kind]) -> None:
    def drop(route: Route) -> None:
        route.fetch(max_redirects=0)
        route.abort("connectionreset")

    api, kept = person.api, {}
    for name, kind in kinds.items():
        page = person.context.new_page()
        page.add_init_script(NO_SHARED_WORKER)
        page.route(re.compile(r"/live[?/]"), lambda route: route.abort("connectionreset"))
        page.goto(api.url + kind.path)
        page.evaluate(TRY_AGAIN)
        box = kind.box(page)
        box.fill(text_of(name))
        page.route(re.compile("/actions/|/plan$"), drop, times=1)
        form_of(box).get_by_role("button", name=kind.button).last.click()
        kept[name] = wait_until(lambda: person.page.evaluate("localStorage.kept"))
        expect(page.locator("form .form-note:not(:empty)")).to_have_count(0)
        person.page.evaluate("delete localStorage.kept")
    times = sent(api)
    assert kept == {name: text_of(name) for name in kinds}
    assert {name: times[text_of(name)] for name in kinds} == dict.fromkeys(kinds, 1)


def test_a_log_in_that_ends_while_a_user_types_loses_no_word(person: Person, kinds: Mapping[str, Kind]) -> None:
    api, pages = person.api, {}
    names = ("new order", "reply", "steer", "answer", "task comment")
    for name in names:
        pages[name] = page = person.context.new_page()
        page.goto(api.url + kinds[name].path)
        kinds[name].box(page).wait_for()
    person.context.clear_cookies()
    for name, page in pages.items():
        box = kinds[name].box(page)
        box.fill(text_of(name))
        expect(page.locator(".draft-note")).to_contain_text("you are logged out")
        form = form_of(box)
        form.get_by_role("button", name=kinds[name].button).last.click()
        expect(form.locator(".form-note")).to_contain_text("You are logged out")
    again = person.context.new_page()
    watch(again, person.errors, api.url)
    log_in(again, api)
    wait_until(lambda: drafts(api) == sorted(map(text_of, names)))
    for name, page in pages.items():
        box = kinds[name].box(page)
        expect(page.locator(".draft-note")).to_have_count(0)
        assert box.input_value() == text_of(name)
        form_of(box).get_by_role("button", name=kinds[name].button).last.click()
    wait_until(lambda: all(sent(api)[text_of(name)] == 1 for name in names))


def test_two_windows_never_replace_each_others_text(person: Person, kinds: Mapping[str, Kind]) -> None:
    one, other = person.page, person.context.new_page()
    for page in (one, other):
        page.goto(person.api.url + kinds["task comment"].path)
    boxes = [comment(page) for page in (one, other)]
    boxes[0].fill("mine")
    wait_until(lambda: drafts(person.api) == ["mine"])
    # Without a focus in between: as on two screens.
    boxes[1].evaluate("box => { box.value = 'theirs'; box.dispatchEvent(new Event('input', { bubbles: true })); }")
    note = other.locator(".draft-note")
    expect(note.locator("pre")).to_have_text("mine")
    assert (boxes[1].input_value(), drafts(person.api)) == ("theirs", ["mine"])
    note.get_by_role("button", name="Keep the one above").click()
    wait_until(lambda: drafts(person.api) == ["theirs"])
    one.bring_to_front()
    boxes[0].evaluate("box => { box.value = 'mine again'; box.dispatchEvent(new Event('input', { bubbles: true })); }")
    one.locator(".draft-note").get_by_role("button", name="Use this text").click()
    expect(boxes[0]).to_have_value("theirs")
    assert drafts(person.api) == ["theirs"]


def test_what_is_typed_while_a_message_is_on_its_way_stays(person: Person, kinds: Mapping[str, Kind]) -> None:
    def slowly(route: Route) -> None:
        answer = route.fetch(max_redirects=0)
        box.press_sequentially(" and the next one")
        route.fulfill(response=answer)

    page = person.open(kinds["steer"].path)
    box = message(page)
    box.fill("The first message")
    page.route("**/actions/say", slowly)
    box.press("Control+Enter")
    expect(box).to_have_value("and the next one")
    wait_until(lambda: drafts(person.api) == ["and the next one"])
    page.unroute("**/actions/say")
    box.press("Control+Enter")
    expect(box).to_have_value("")
    wait_until(lambda: drafts(person.api) == [])
    assert [text for text in sent(person.api) if "one" in text or "message" in text].count("The first message") == 1


def test_what_was_typed_just_before_a_page_is_left_is_saved(person: Person, kinds: Mapping[str, Kind]) -> None:
    texts = {}
    for name in ("new order", "steer", "answer", "task comment"):
        page = person.open(kinds[name].path)
        box = kinds[name].box(page)
        box.wait_for()
        box.evaluate(
            """(box, text) => { box.value = text; box.dispatchEvent(new Event("input", { bubbles: true }));
            location.assign("/settings"); }""",
            text_of(name),
        )
        page.wait_for_url("**/settings")
        texts[name] = text_of(name)
        wait_until(lambda: drafts(person.api) == sorted(texts.values()))


def test_a_draft_of_a_form_is_offered_beside_what_is_stored(person: Person, kinds: Mapping[str, Kind]) -> None:
    api = person.api
    api.client.call(SAVE, DraftEdit(text="You test everything."), subject="form:edit_agent:tester:instructions")
    page = person.open("/actions/edit_agent?name=tester")
    expect(page.locator(".draft-note pre")).to_have_text("You test everything.")
    expect(page.get_by_role("textbox", name="Instructions optional")).to_have_value("You test.")
    page.get_by_role("button", name="Use this text").click()
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/agents**")
    wait_until(lambda: drafts(api) == [])


def test_an_edited_plan_is_there_again_and_saving_it_keeps_the_comment_that_is_not_sent_yet(
    person: Person, kinds: Mapping[str, Kind]
) -> None:
    typed = {
        "What to do": "Round each line",
        "Summary": "Half to even",
        "Files": "total.py, test_total.py",
        "Verified by": "pytest -q",
        "Comment": "Also in the tests",
    }

    def fields(page: Page) -> list[Locator]:
        return [page.locator("form.plan").get_by_label(label).first for label in typed]

    for box, text in zip(fields(person.open(kinds["plan"].path)), typed.values(), strict=True):
        box.fill(text)
    wait_until(lambda: drafts(person.api) == sorted(typed.values()))
    page = person.open(kinds["plan"].path)
    point, *empty_before = fields(page)
    for box, text in zip(empty_before, list(typed.values())[1:], strict=True):
        expect(box).to_have_value(text)
    page.locator(".draft-note", has_text=typed["What to do"]).get_by_role("button", name="Use this text").click()
    expect(point).to_have_value(typed["What to do"])
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("form.plan input[name=revision]")).to_have_value("1")
    for box, text in zip(fields(page), typed.values(), strict=True):
        expect(box).to_have_value(text)
    wait_until(lambda: drafts(person.api) == [typed["Comment"]])
    page.get_by_role("button", name="Send back").click()
    wait_until(lambda: drafts(person.api) == [])
    assert sent(person.api)[typed["Comment"]] == 1
