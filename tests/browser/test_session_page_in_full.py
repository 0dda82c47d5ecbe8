"""All that the conversation shows and takes, in a real browser; `make test` has the short form."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from control_plane.declarations import orders
from shared.events import (
    ApprovalStep,
    DecisionStep,
    Delivered,
    ReasoningStep,
    TodoItem,
    TodoStep,
    ToolCallStep,
    ToolResultStep,
    UserStep,
    VerifyStep,
)
from tests.browser.conftest import Person
from tests.browser.test_session_page import ask, told
from tests.support import wait_until
from tests.support.axe import need_axe, scrolls_sideways, violations
from tests.support.fleet import Api, PlayedRun

pytestmark = [pytest.mark.browser, pytest.mark.long]
PATCH = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old line\n+new line\n"


def calls(run: PlayedRun, name: str, **result: object) -> None:
    run.step(ToolCallStep(call_id=name, tool="shell", arguments={"command": f"run {name}"}))
    run.step(
        ToolResultStep.model_validate({"call_id": name, "output": f"output of {name}", "return_code": 0, **result})
    )


def delivers(person: Person, run: PlayedRun) -> None:
    name = person.api.store_blob(run, PATCH)
    work = {"branch": f"fleet/{run.order_id}", "head_commit": "a" * 40, "base_commit": "b" * 40, "pushed": True}
    run.step(Delivered(**work, patch_sha256=name, patch_bytes=len(PATCH), files_changed=1))


# --- what it shows ------------------------------------------------------------------------------


def test_a_finished_turn_opens_on_its_outcome_with_panels_beside_the_conversation(
    person: Person, run: PlayedRun
) -> None:
    run.says("I fixed it.")
    run.step(VerifyStep(attempt=1, command="make test", passed=False, return_code=2, output="1 failed"))
    delivers(person, run)
    run.ends(response="Rounding is **right** now.\n\nMore words.")
    page = person.open(f"/orders/{run.order_id[:6]}")
    outcome = page.locator("#outcome")
    for words in ("succeeded", "Rounding is", "+1", "fleet session checkout"):
        expect(outcome.get_by_text(words).first, words).to_be_visible()
    for name in ("Open pull request", "Run again with…", "Compare"):
        expect(outcome.get_by_role("link", name=name), name).to_be_visible()
    page.locator("#changes").get_by_text("new line").wait_for()
    page.get_by_role("link", name="Checks 0/1").click()
    page.locator("#checks").get_by_text("1 failed").wait_for()
    page.get_by_role("link", name="Details").click()
    page.locator("#details").get_by_text("Attempt 1").wait_for()
    page.reload()
    page.locator("#details").get_by_text("Attempt 1").wait_for()


def test_text_in_flight_is_shown_whole_and_once_and_calls_fold_into_one_line(person: Person, run: PlayedRun) -> None:
    page = person.open(f"/orders/{run.order_id}")
    text = page.locator("#flight [data-kind=text]")
    wait_until(lambda: (run.streams("whole", offset=0), text.is_visible())[1], every=0.3)
    run.says("whole")
    text.wait_for(state="hidden")
    # A part that was missed waits for the step.
    run.streams("the end of a sentence", offset=40)
    run.streams("tail", kind="output")
    page.locator("#flight").get_by_text("tail").wait_for()
    assert page.get_by_text("the end of a sentence").count() == 0
    run.says("first")
    run.streams("second mess")
    text.get_by_text("second mess").wait_for()
    run.says("second message.")
    page.locator("#blocks").get_by_text("second message.").wait_for()
    text.wait_for(state="hidden")
    assert page.get_by_text("second mess").count() == 1

    calls(run, "a")
    calls(run, "b", output="\x1b[31m1 failed\x1b[0m", return_code=1)
    page.get_by_text("Ran 2 commands").click()
    page.get_by_text("run b").wait_for()
    # What the reader opened stays open, and has the calls that came since.
    calls(run, "third")
    page.get_by_text("Ran 3 commands").wait_for()
    page.get_by_text("run third").wait_for()
    assert page.locator("#blocks .output .t1").first.inner_text() == "1 failed"


def test_readers_who_scrolled_up_stay_there_and_are_told_what_came(person: Person, run: PlayedRun) -> None:
    for number in range(40):
        run.says(f"message {number}\n\nwith some lines\n\nof text")
    page = person.open(f"/orders/{run.order_id}")
    person.sees("message 39")
    talk = page.locator("#talk")
    wait_until(lambda: talk.evaluate("talk => talk.scrollTop") > 500)
    talk.evaluate("talk => { talk.scrollTop = 0 }")
    run.says("one more")
    page.get_by_role("button", name="1 new").wait_for()
    assert talk.evaluate("talk => talk.scrollTop") < 50
    page.locator("#jump").click()
    page.locator("#jump").wait_for(state="hidden")
    assert talk.evaluate("talk => talk.scrollTop") > 500


@pytest.mark.parametrize("opened", ["before", "after"])
def test_a_long_turn_keeps_its_newest_part_and_pages_back(person: Person, run: PlayedRun, opened: str) -> None:
    page = person.open(f"/orders/{run.order_id}")
    page.locator("#live-mark[data-state=live]").wait_for(state="attached")
    for number in range(90):
        run.says(f"message {number}")
        calls(run, f"c{number}", return_code=number % 2)
    if opened == "after":
        page = person.open(f"/sessions/{session_of(person.api, run)}")
    person.sees("message 89")
    wait_until(lambda: page.locator("#blocks > *").count() <= 120)
    assert page.get_by_text("message 0", exact=True).count() == 0
    assert page.evaluate("document.querySelectorAll('*').length") < 1500
    all_earlier(page)
    assert page.get_by_text("message 0", exact=True).count() == 1
    names = page.locator("#blocks > *").evaluate_all("all => all.map(each => each.id)")
    assert len(names) == len(set(names)) == 181


def all_earlier(page: Page) -> None:
    """Show the conversation from its beginning."""
    while page.get_by_role("link", name="Show earlier").count():
        before = page.locator("#blocks > *").count()
        page.get_by_role("link", name="Show earlier").click()
        wait_until(lambda before=before: page.locator("#blocks > *").count() > before)  # type: ignore[misc]


def session_of(api: Api, run: PlayedRun) -> str:
    return str(api.client.call(orders.SHOW, order_id=run.order_id)["session"])


# --- deciding and writing ------------------------------------------------------------------------


def test_a_question_is_answered_a_call_denied_and_the_order_stopped_in_place(person: Person, run: PlayedRun) -> None:
    page = person.open(f"/orders/{run.order_id}")
    run.step(ToolCallStep(call_id="q", tool="ask", arguments={"question": "Which?"}))
    run.step(ApprovalStep(about="question", call_id="q", tool="ask", why="Which rule?", choices=("even", "up")))
    page.get_by_role("button", name="even").click()
    assert [body["answer"] for body in wait_until(lambda: told(person.api))] == ["even"]
    run.step(DecisionStep(about="question", call_id="q", approved=True, comment="even"))

    # Text that was not acknowledged stays.
    page.route("**/actions/say", lambda route: route.abort("connectionrefused"))
    box = page.get_by_label("Message", exact=True)
    box.fill("Stop that")
    page.get_by_role("button", name="Stop and send").click()
    page.get_by_text("Not sent").wait_for()
    assert box.input_value() == "Stop that"
    page.unroute("**/actions/say")
    page.get_by_role("button", name="Stop and send").click()
    wait_until(lambda: len(told(person.api)) == 2)

    ask(run)
    page.get_by_label("Comment").fill("not on ma")
    run.step(TodoStep(items=(TodoItem(text="fix the sum", status="in_progress"),)))
    page.locator(".todo").get_by_text("fix the sum").wait_for()
    assert page.get_by_label("Comment").input_value() == "not on ma"
    page.get_by_role("button", name="Deny").click()
    wait_until(lambda: len(told(person.api)) == 3)
    assert (told(person.api)[1]["interrupt"], told(person.api)[2]["approved"]) == (True, False)

    page.get_by_role("button", name="Stop", exact=True).click()
    page.locator("#head").get_by_text("canceling").wait_for()
    assert person.api.client.call(orders.SHOW, order_id=run.order_id)["status"] == "canceling"
    page.route("**/news*", lambda route: route.fulfill(status=404))
    run.says("x")
    page.get_by_text("This order was removed").wait_for()


def test_a_reply_becomes_the_next_turn_on_the_same_page_and_on_that_of_a_fork(person: Person, run: PlayedRun) -> None:
    delivers(person, run)
    run.ends(response="Done.")
    page = person.open(f"/sessions/{session_of(person.api, run)}")
    page.get_by_label("Message", exact=True).fill("Now the guide")
    page.get_by_label("Approvals").select_option("risky")
    page.get_by_role("button", name="Reply").click()
    page.locator(".opening").get_by_text("Now the guide").wait_for()
    page.get_by_role("button", name="Stop and send").wait_for()
    (second, first) = person.api.client.call(orders.LIST)
    assert (second["session"], second["approve"], second["prompt"]) == (first["session"], "risky", "Now the guide")
    # The page follows the new turn.
    next_run = run.drone.take(second)
    next_run.says("I write the guide.")
    page.locator("#blocks").get_by_text("I write the guide.").wait_for()
    next_run.ends(response="Written.")
    page.get_by_role("button", name="Reply").wait_for()

    page = person.open(f"/orders/{run.order_id}")
    page.get_by_label("More actions").click()
    page.get_by_text("Fork from this turn…").click()
    page.locator("dialog button.primary").click()
    page.wait_for_url("**/sessions/**")
    page.get_by_label("Message", exact=True).fill("In the fork")
    page.get_by_role("button", name="Reply").click()
    page.locator(".opening").get_by_text("In the fork").wait_for()
    assert page.url.endswith(person.api.client.call(orders.LIST)[0]["session"])
    page.locator("#panel-body").get_by_text("No changes yet").wait_for()


# --- every reader --------------------------------------------------------------------------------


def filled(person: Person, run: PlayedRun) -> None:
    """A turn with a part of each kind."""
    run.step(ReasoningStep(text="I think."))
    run.says("# Plan\n\n```python\ndef f(): return 'x'\n```\n\n| a | b |\n|---|---|\n| " + "x" * 300 + " | y |")
    for name in ("a", "b"):
        calls(run, name)
    calls(run, "bad", output="\x1b[31mred\x1b[32mgreen\x1b[33myellow\x1b[34mblue\x1b[36m " + "y" * 3000, return_code=2)
    run.step(UserStep(text="מימין לשמאל " + "z" * 400, source="steer"))
    run.step(TodoStep(items=(TodoItem(text="x" * 500), TodoItem(text="done", status="done"))))
    run.step(VerifyStep(attempt=1, command="make " + "t" * 300, passed=False, return_code=2, output="1 failed"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible_and_no_wider_than_its_window(person: Person, run: PlayedRun, scheme: str) -> None:
    need_axe()
    filled(person, run)
    ask(run, "rm " + "y" * 500)
    second = person.api.add_drone("ada").take(person.api.submit("A finished one " + "w" * 200))
    filled(person, second)
    delivers(person, second)
    second.ends(response="r" * 500)
    page, found = person.page, []
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    for width in (320, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        for path in (f"{run.order_id}", f"{second.order_id}", f"{second.order_id}?panel=checks"):
            person.open(f"/orders/{path}")
            page.locator("#live-mark[data-state=live]").wait_for(state="attached")
            found += [f"{width} {path}: {each}" for each in violations(page)]
            found += [f"{width} {path}: wider than the window"] if scrolls_sideways(page) else []
    assert found == []


def test_on_a_phone_a_panel_takes_the_place_of_the_conversation_and_nothing_covers_the_composer(
    person: Person, run: PlayedRun
) -> None:
    run.says("I look at it.")
    person.page.set_viewport_size({"width": 375, "height": 720})
    page = person.open(f"/orders/{run.order_id}")
    said = page.locator("#blocks").get_by_text("I look at it.")
    said.wait_for()
    bar, buttons = page.locator("#side").bounding_box(), page.locator("#acts").bounding_box()
    assert bar
    assert buttons
    assert buttons["y"] + buttons["height"] <= bar["y"]
    page.get_by_role("link", name="Details").click()
    page.locator("#details").get_by_text("Attempt 1").wait_for()
    expect(said).to_be_hidden()
    page.get_by_role("link", name="Conversation").click()
    said.wait_for()


def test_the_log_follows_the_run_and_is_searched_and_its_lines_are_linked(person: Person, run: PlayedRun) -> None:
    calls(run, "long", output="\n".join(f"line {number}" for number in range(1, 1001)))
    page = person.open(f"/orders/{run.order_id}?panel=log")
    page.locator("#log").get_by_text("Following").wait_for()
    calls(run, "next", output="the needle")
    page.locator("#log").get_by_text("the needle").wait_for()
    run.ends()
    page = person.open(f"/orders/{run.order_id}?panel=log")
    page.get_by_label("Search the log").fill("needle")
    page.get_by_label("Search the log").press("Enter")
    page.get_by_role("link", name="Show line 1001").click()
    page.locator("#L1001.marked").wait_for()
    page.locator("#L990 .no").click()
    page.locator("#L992 .no").click(modifiers=["Shift"])
    assert page.url.endswith("?panel=log#L990-L992")
    # The link leads there from anywhere, also on the page of the log alone.
    other = person.context.new_page()
    other.goto(f"{person.api.url}/orders/{run.order_id}/log#L990-L992")
    wait_until(lambda: other.locator(".log-line.marked").count() == 3)
