"""Steering over real HTTP and on the pages: what the terminal and the browser send, and what they are answered."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import update

from control_plane.db.drones import InboxMessage
from control_plane.db.runs import Run
from control_plane.db.sessions import ChatSession
from control_plane.declarations import orders, providers, steering
from control_plane.declarations.providers import ProviderEdit, ProviderRequest
from control_plane.documents.orders import ApproveRequest, SayRequest
from shared.errors import Conflict, Invalid, NotFound
from shared.events import ApprovalStep, ChildStep, TodoItem, TodoStep, ToolCallStep
from tests.support.fleet import Api, Doc, PlayedRun

FORM = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}


@pytest.fixture
def run(api: Api) -> PlayedRun:
    """A run of an order on a drone that is online."""
    api.add_work()
    return api.add_drone().take(api.submit())


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


def test_what_is_said_is_left_for_the_run(api: Api, run: PlayedRun) -> None:
    order = api.client.call(steering.SAY, SayRequest(text="mind the tests", after=True), order_id=run.order_id)
    assert order["status"] == "running"
    assert [(body["kind"], body["text"], body["after"]) for body in told(api)] == [("say", "mind the tests", True)]
    assert [word["text"] for word in api.client.call(orders.SHOW, order_id=run.order_id)["unheard"]] == [
        "mind the tests"
    ]


def test_an_empty_or_long_text_is_422_and_an_ended_order_409(api: Api, run: PlayedRun) -> None:
    for text in ("", "x" * 70_000):
        with pytest.raises(Invalid):
            api.client.call(steering.SAY, SayRequest(text=text), order_id=run.order_id)
    run.ends()
    with pytest.raises(Conflict) as refused:
        api.client.call(steering.SAY, SayRequest(text="x"), order_id=run.order_id)
    assert "fleet submit 'TEXT' --project demo --session" in refused.value.next


def test_approve_and_deny_decide_once(api: Api, waiting: PlayedRun) -> None:
    order = api.client.call(orders.SHOW, order_id=waiting.order_id)
    assert order["waiting_for"] == {
        "kind": "approval",
        "text": "Approve shell? Publishes commits: git push",
        "choices": ["approve", "deny"],
        "default": "deny",
        "deadline": None,
        "call_id": "c1",
        "tool": "shell",
        "why": "Publishes commits: git push",
        "command": "",
        "until": None,
        "limit": "",
        "plan": None,
    }
    api.client.call(steering.APPROVE, order_id=waiting.order_id)
    with pytest.raises(Conflict, match="'c1' was already approved"):
        api.client.call(steering.DENY, order_id=waiting.order_id)
    assert [(body["call_id"], body["approved"]) for body in told(api)] == [("c1", True)]


def test_an_unknown_call_is_404_and_a_viewer_403(api: Api, waiting: PlayedRun) -> None:
    with pytest.raises(NotFound):
        api.client.call(steering.APPROVE, ApproveRequest(call="c2"), order_id=waiting.order_id)
    with api.http(api.token_for("viewer")) as http:
        answers = [http.post(f"/api/v1/orders/{waiting.order_id}/{verb}") for verb in ("approve", "deny")]
        said = http.post(f"/api/v1/orders/{waiting.order_id}/say", json={"text": "x"})
    assert [answer.status_code for answer in (*answers, said)] == [403, 403, 403]
    with pytest.raises(NotFound):
        api.client.call(steering.DENY, order_id="0" * 12)


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


@pytest.mark.parametrize(
    "wrong",
    [
        {"approve": "perhaps"},
        {"allow": [""]},
        {"allow": ["x"] * 101},
        {"allow": "git"},
        {"verify_attempts": -1},
        {"approval_timeout": -1},
        {"approval_timeout": float("inf")},
    ],
)
def test_wishes_that_cannot_be_are_refused(api: Api, wrong: Doc) -> None:
    api.add_work()
    with pytest.raises((Invalid, ValueError)):
        api.submit(**wrong)


def test_a_providers_window_and_protocol_are_shown_and_changed(api: Api) -> None:
    made = api.client.call(
        providers.ADD, ProviderRequest(name="small", model="openai/x", context_window=16000, protocol="text")
    )
    assert (made["context_window"], made["protocol"]) == (16000, "text")
    changed = api.client.call(providers.EDIT, ProviderEdit(context_window=0), name="small")
    assert (changed["context_window"], changed["protocol"]) == (0, "text")
    with api.http() as http:
        assert http.patch("/api/v1/providers/small", json={"protocol": "morse"}).status_code == 422


# --- the pages, as a browser without scripts uses them -----------------------------------------


def test_the_page_offers_to_decide_and_its_form_does(api: Api, waiting: PlayedRun, browser: httpx.Client) -> None:
    page = browser.get(f"/orders/{waiting.order_id}").text
    assert f"fleet approve {waiting.order_id}" in page
    form = {"order_id": waiting.order_id, "call": "c1", "next": f"/orders/{waiting.order_id}"}
    answer = browser.post("/actions/approve", data={**form, "comment": "go", "always": "true"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/orders/{waiting.order_id}")
    assert [(body["approved"], body["comment"]) for body in told(api)] == [(True, "go")]
    late = browser.post("/actions/deny", data=form)
    assert late.status_code == 409
    assert "was already approved by" in late.text


def test_the_page_offers_to_answer_a_question_and_its_form_does(
    api: Api, run: PlayedRun, browser: httpx.Client
) -> None:
    run.step(ToolCallStep(call_id="c1", tool="ask", arguments={"question": "Which?"}))
    run.step(ApprovalStep(about="question", call_id="c1", tool="ask", why="Which rule?", choices=("even", "up")))
    page = browser.get(f"/orders/{run.order_id}").text
    for words in ("The agent asks", "Which rule?", 'value="even"', f"fleet answer {run.order_id}"):
        assert words in page
    form = {"order_id": run.order_id, "call": "c1", "text": "even", "next": f"/orders/{run.order_id}"}
    assert browser.post("/actions/answer_order", data=form).status_code == 303
    assert [body["answer"] for body in told(api)] == ["even"]


@pytest.mark.parametrize(
    ("more", "flags"),
    [({}, (False, False)), ({"after": "true"}, (True, False)), ({"interrupt": "true"}, (False, True))],
)
def test_the_page_sends_a_message_in_each_way(
    api: Api, run: PlayedRun, browser: httpx.Client, more: dict[str, str], flags: tuple[bool, bool]
) -> None:
    answer = browser.post("/actions/say", data={"order_id": run.order_id, "text": "one\r\ntwo", **more})
    assert answer.status_code == 303
    assert [(body["text"], (body["after"], body["interrupt"])) for body in told(api)] == [("one\ntwo", flags)]
    assert "Queued" in browser.get(f"/orders/{run.order_id}").text


def test_a_form_of_another_site_decides_nothing(api: Api, waiting: PlayedRun, browser: httpx.Client) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site"}
    answers = [
        browser.post(f"/actions/{name}", data={"order_id": waiting.order_id, "text": "x"}, headers=foreign)
        for name in ("approve", "deny", "answer_order", "say")
    ]
    assert [answer.status_code for answer in answers] == [403, 403, 403, 403]
    assert told(api) == []


def test_an_ended_order_is_replied_to_and_not_steered(run: PlayedRun, browser: httpx.Client) -> None:
    assert "Stop and send" in browser.get(f"/orders/{run.order_id}").text
    run.ends(verification="passed")
    page = browser.get(f"/orders/{run.order_id}").text
    assert "Stop and send" not in page
    assert 'action="/actions/submit"' in page


def test_the_news_of_a_page_have_the_list_the_question_and_what_sub_agents_did(
    waiting: PlayedRun, browser: httpx.Client
) -> None:
    waiting.step(TodoStep(items=(TodoItem(text="fix the sum"),)))
    waiting.step(ChildStep(call_id="c1", step={"kind": "assistant", "text": "I am the child."}))
    news = browser.get(f"/orders/{waiting.order_id}/news").text
    for words in ("fix the sum", "Sub-agent: 1 step", "Approve this command?", "Send when finished"):
        assert words in news
    assert "I am the child." in browser.get(f"/orders/{waiting.order_id}/children?call=2").text


def test_a_viewer_sees_what_waits_and_no_buttons(api: Api, waiting: PlayedRun) -> None:
    with api.browser(FORM, token=api.token_for("viewer")) as viewer:
        page = viewer.get(f"/orders/{waiting.order_id}").text
        refused = viewer.post("/actions/approve", data={"order_id": waiting.order_id})
    assert "Approve this command?" in page
    assert "Approve</button>" not in page
    assert "<textarea" not in page
    assert refused.status_code == 403


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
