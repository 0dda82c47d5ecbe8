"""The pages as users see them. The unmarked tests are the short form; `make browser` runs the rest."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from control_plane.declarations import orders, tokens
from shared.events import Delivered, ToolCallStep, ToolResultStep
from tests.browser.conftest import Person
from tests.support import wait_until
from tests.support.fleet import Api, PlayedRun

PATCH = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old line\n+new line\n"


@pytest.fixture
def run(api: Api) -> PlayedRun:
    """A run of an order on a drone that is online."""
    api.add_work()
    drone = api.add_drone("mila", labels={"gpu": "yes"})
    api.wait_for_hub()
    return drone.take(api.submit("Fix the failing test"))


def test_the_board_shows_the_drone_and_its_order_and_follows(person: Person, run: PlayedRun) -> None:
    person.open("/")
    person.sees("gpu=yes")
    person.sees("Fix the failing test")
    second = person.api.submit("Then write the guide")
    person.page.locator(f"a[href='/orders/{second['id']}']").wait_for()


def test_the_order_page_shows_text_in_flight_a_step_and_the_end_as_they_come(person: Person, run: PlayedRun) -> None:
    page = person.open(f"/orders/{run.order_id}")
    wait_until(lambda: (run.streams("I will "), page.locator("#in-flight").is_visible())[1], every=0.3)
    run.says("I will look at the test.")
    person.sees("I will look at the test.")
    page.locator("#in-flight").wait_for(state="hidden")
    run.step(ToolCallStep(call_id="c", tool="shell", arguments={"command": "make test"}))
    run.step(ToolResultStep(call_id="c", output="\x1b[32m1 passed\x1b[0m", return_code=0))
    person.sees("1 passed")
    run.ends(response="All is well now.")
    person.sees("All is well now.")
    assert page.title().startswith("succeeded")
    assert page.locator("#steps > li").count() == 5


def test_an_order_is_submitted_and_canceled_on_the_pages(person: Person) -> None:
    person.api.add_work()
    page = person.open("/")
    page.get_by_label("What is to be done").fill("Count the lines")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/orders/*")
    page.get_by_role("button", name="Cancel").click()
    page.locator(".head .state.canceled").wait_for()
    assert person.api.client.call(orders.LIST)[0]["prompt"] == "Count the lines"


def test_a_login_link_replaces_a_session_only_by_the_button(person: Person) -> None:
    before = person.context.cookies()
    page = person.open(person.api.client.call(tokens.CREATE_LOGIN_LINK)["url"].removeprefix(person.api.url))
    person.sees("This browser is logged in already")
    assert ("token=" in page.url, person.context.cookies()) == (True, before)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{person.api.url}/")
    assert person.context.cookies() != before


@pytest.mark.browser
@pytest.mark.long
def test_text_that_overtook_the_step_before_it_stays(person: Person, run: PlayedRun) -> None:
    page = person.open(f"/orders/{run.order_id}")
    text = page.locator("#in-flight [data-kind=text]")
    wait_until(lambda: (run.streams("x"), text.is_visible())[1], every=0.3)
    run.says("first")
    text.wait_for(state="hidden")
    run.streams("second message. Now the ")
    run.streams("third")
    text.get_by_text("third").wait_for()
    run.step(ToolResultStep(call_id="c", output="of the call before", return_code=0))
    run.says("second message.")
    person.sees("second message.")
    wait_until(lambda: text.inner_text().strip() == "Now the third")


@pytest.mark.browser
@pytest.mark.long
def test_a_patch_is_shown_with_its_lines_coloured(person: Person, run: PlayedRun) -> None:
    name = person.api.store_blob(run, PATCH)
    run.step(Delivered(branch=f"fleet/{run.order_id}", patch_sha256=name, patch_bytes=len(PATCH), files_changed=1))
    run.ends()
    page = person.open(f"/orders/{run.order_id}")
    assert page.locator(".patch .add").all_inner_texts() == ["+new line"]
    assert page.locator(".patch .del").all_inner_texts() == ["-old line"]


@pytest.mark.browser
@pytest.mark.long
def test_whoever_scrolled_up_stays_there_and_is_told_what_came(person: Person, run: PlayedRun) -> None:
    for number in range(60):
        run.says(f"message {number}\n\nwith some lines\n\nof text")
    page = person.open(f"/orders/{run.order_id}")
    person.sees("message 59")
    page.evaluate("scrollTo(0, 0)")
    run.says("one more")
    page.get_by_role("button", name="1 new step").wait_for()
    assert page.evaluate("scrollY") < 50
    page.locator("#jump").click()
    page.locator("#jump").wait_for(state="hidden")
    assert page.evaluate("scrollY") > 500


@pytest.mark.browser
@pytest.mark.long
def test_an_order_page_survives_a_restart_of_the_server(person: Person, run: PlayedRun) -> None:
    page = person.open(f"/orders/{run.order_id}")
    person.api.stop()
    person.sees("Connection lost")
    run.says("while it was away")
    person.api.start()
    page.get_by_text("while it was away").wait_for(timeout=20_000)
    assert page.locator("#steps > li").count() == 2


@pytest.mark.browser
@pytest.mark.long
def test_the_board_keeps_the_focus_while_it_refreshes(person: Person, run: PlayedRun) -> None:
    page = person.open("/")
    page.locator(f"a[href='/orders/{run.order_id}']").first.focus()
    second = person.api.submit("Another")
    page.locator(f"a[href='/orders/{second['id']}']").wait_for()
    assert page.evaluate("document.activeElement.tagName") == "A"


@pytest.mark.browser
@pytest.mark.long
def test_a_session_that_ended_leads_to_the_log_in_and_back(person: Person, run: PlayedRun) -> None:
    person.open("/")
    person.context.clear_cookies()
    person.page.wait_for_url("**/login?next=/")
    person.page.get_by_label("API token").fill(person.api.token)
    person.page.get_by_role("button", name="Log in").click()
    person.page.wait_for_url(f"{person.api.url}/")


@pytest.mark.browser
@pytest.mark.long
def test_the_pages_can_be_read_without_scripts(chromium: Browser, person: Person, run: PlayedRun) -> None:
    run.says("said before")
    plain = chromium.new_context(java_script_enabled=False)
    plain.add_cookies(person.context.cookies())  # type: ignore[arg-type]
    page = plain.new_page()
    page.goto(f"{person.api.url}/orders/{run.order_id}")
    assert page.get_by_text("said before").is_visible()
    page.goto(person.api.client.call(tokens.CREATE_LOGIN_LINK)["url"])
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{person.api.url}/")
    assert page.get_by_role("rowheader", name="mila").is_visible()
    plain.close()


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.parametrize("width", [320, 390, 1024])
def test_no_page_is_wider_than_its_window(person: Person, run: PlayedRun, width: int) -> None:
    run.step(ToolResultStep(call_id="c", output="x" * 3000, return_code=0))
    person.page.set_viewport_size({"width": width, "height": 700})
    widths = [
        person.open(path).evaluate("document.documentElement.scrollWidth") for path in ("/", f"/orders/{run.order_id}")
    ]
    assert widths == [width, width]


@pytest.mark.browser
@pytest.mark.long
def test_markup_in_text_in_flight_stays_text(person: Person, run: PlayedRun) -> None:
    page = person.open(f"/orders/{run.order_id}")
    evil = "<img src=x onerror=\"document.title='caught'\">"
    wait_until(lambda: (run.streams(evil), page.locator("#in-flight").is_visible())[1], every=0.3)
    assert evil in page.locator("#in-flight").inner_text()
    assert page.locator("#in-flight img").count() == 0


@pytest.mark.browser
@pytest.mark.long
def test_an_order_that_does_not_exist_is_a_page_with_four_parts(person: Person) -> None:
    page = person.open("/orders/000000000000")
    assert page.get_by_text("order '000000000000' not found").is_visible()
    assert page.get_by_text("fleet orders").is_visible()
