"""What an order asks of people and says of itself over HTTP, and steering on the pages without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import update

from control_plane.db.drones import InboxMessage
from control_plane.db.runs import Run
from control_plane.db.sessions import ChatSession
from control_plane.declarations import orders
from shared.errors import Invalid
from shared.events import ApprovalStep, ChildStep, TodoItem, TodoStep, ToolCallStep
from tests.support.fleet import Api, Doc, PlayedRun

FORM = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}


@pytest.fixture
def waiting(run: PlayedRun) -> PlayedRun:
    """A run whose order waits for a person."""
    run.step(ToolCallStep(call_id="c1", tool="shell", arguments={"command": "git push"}))
    run.asks("c1", "shell", "Publishes commits: git push")
    return run


@pytest.fixture
def browser(api: Api) -> Iterator[httpx.Client]:
    """A logged-in admin."""
    with api.browser(FORM) as client:
        yield client


def told(api: Api) -> list[Doc]:
    """What the drones are to be told, in the order in which it was said."""
    with api.core.database.read() as db:
        return [row.body for row in db.query(InboxMessage).order_by(InboxMessage.created_at)]


def test_a_todo_list_is_the_last_that_the_model_made(api: Api, run: PlayedRun) -> None:
    assert api.client.call(orders.SHOW, order_id=run.order_id)["todo"] == []
    run.step(TodoStep(items=(TodoItem(text="old"),)))
    run.step(TodoStep(items=(TodoItem(text="read", status="done"), TodoItem(text="mend"))))
    todo = api.client.call(orders.SHOW, order_id=run.order_id)["todo"]
    assert todo == [{"text": "read", "status": "done"}, {"text": "mend", "status": "pending"}]


def test_an_order_says_what_it_asks_for_and_its_session_keeps_it(api: Api) -> None:
    api.add_work()
    order = api.submit(approve="all", allow=["git status*"], verify_attempts=5, approval_timeout=60)
    assert (order["approve"], order["allow"], order["verification"]) == ("all", ["git status*"], None)
    again = api.submit(session=order["session"], allow=["make*", "git status*"])
    assert (again["approve"], again["allow"]) == ("all", ["git status*", "make*"])
    own = api.submit(session=order["session"], approve="yolo")
    assert (own["approve"], api.submit()["approve"]) == ("yolo", "yolo")
    with api.core.database.read() as db:
        assert db.get_one(ChatSession, order["session"]).allow == ["git status*"]
    negative: list[Doc] = [{"verify_attempts": -1}, {"approval_timeout": -1}]
    for wrong in ({"approve": "perhaps"}, {"allow": [""]}, {"allow": ["x"] * 101}, {"allow": "git"}, *negative):
        with pytest.raises(Invalid):
            api.submit(**wrong)


# --- the pages ----------------------------------------------------------------------------------


def test_the_page_offers_to_decide_and_its_form_does(api: Api, waiting: PlayedRun, browser: httpx.Client) -> None:
    page = browser.get(f"/orders/{waiting.order_id}").text
    assert f"fleet approve {waiting.order_id}" in page
    form = {"order_id": waiting.order_id, "call": "c1", "next": f"/orders/{waiting.order_id}"}
    answer = browser.post("/actions/approve", data={**form, "comment": "go", "always": "true"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/orders/{waiting.order_id}")
    assert [(body["approved"], body["comment"]) for body in told(api)] == [(True, "go")]
    late = browser.post("/actions/deny", data=form)
    assert (late.status_code, "already approved" in late.text) == (409, True)


def test_the_page_offers_to_answer_a_question_and_its_form_does(
    api: Api, run: PlayedRun, browser: httpx.Client
) -> None:
    run.step(ToolCallStep(call_id="c1", tool="ask", arguments={"question": "Which?"}))
    run.step(ApprovalStep(about="question", call_id="c1", tool="ask", why="Which rule?", choices=("even", "up")))
    page = browser.get(f"/orders/{run.order_id}").text
    assert ("Which rule?" in page, 'value="even"' in page, f"fleet answer {run.order_id}" in page) == (True,) * 3
    form = {"order_id": run.order_id, "call": "c1", "text": "even", "next": f"/orders/{run.order_id}"}
    assert browser.post("/actions/answer_order", data=form).status_code == 303
    assert [body["answer"] for body in told(api)] == ["even"]


def test_the_page_sends_a_message_in_each_way_and_shows_it_until_it_is_heard(
    api: Api, run: PlayedRun, browser: httpx.Client
) -> None:
    for more in ({}, {"after": "true"}, {"interrupt": "true"}):
        answer = browser.post("/actions/say", data={"order_id": run.order_id, "text": "one\r\ntwo", **more})
        assert answer.status_code == 303
    flags = [(body["text"], body["after"], body["interrupt"]) for body in told(api)]
    assert flags == [("one\ntwo", False, False), ("one\ntwo", True, False), ("one\ntwo", False, True)]
    assert "Queued" in browser.get(f"/orders/{run.order_id}").text


def test_the_news_of_a_page_have_the_list_the_question_and_what_sub_agents_did(
    waiting: PlayedRun, browser: httpx.Client
) -> None:
    waiting.step(TodoStep(items=(TodoItem(text="fix the sum"),)))
    waiting.step(ChildStep(call_id="c1", step={"kind": "assistant", "text": "I am the child."}))
    news = browser.get(f"/orders/{waiting.order_id}/news").text
    for words in ("fix the sum", "Sub-agent: 1 step", "Approve this command?", "Send when finished"):
        assert words in news
    assert "I am the child." in browser.get(f"/orders/{waiting.order_id}/children?call=2").text


def test_the_pages_say_what_a_run_does_and_that_nothing_comes_of_it(
    api: Api, run: PlayedRun, browser: httpx.Client
) -> None:
    since = api.core.clock.now() - timedelta(minutes=4, seconds=30)
    with api.core.database.write() as db:
        values = {"doing": "shell: npm test", "doing_since": since, "progress_at": since}
        db.execute(update(Run).where(Run.id == run.id).values(**values))
    words = "no progress for 4 min: shell: npm test"
    assert words.capitalize() in browser.get(f"/orders/{run.order_id}").text
    (listed,) = api.client.call(orders.LIST)
    assert (listed["doing"], listed["stalled"]) == (words, True)
