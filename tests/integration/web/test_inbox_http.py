"""The inbox over HTTP: the list, its counts, and what the terminal prints of it."""

from __future__ import annotations

import pytest

from control_plane.cli.inbox import inbox_text
from control_plane.declarations import inbox
from control_plane.declarations.inbox import InboxFilter
from shared.events import ApprovalStep, ToolCallStep
from tests.support.fleet import Api, PlayedRun


@pytest.fixture
def asking(api: Api) -> PlayedRun:
    """A run whose agent asks."""
    api.add_work()
    run = api.add_drone().take(api.submit("Choose a database\n\nfor the shop"))
    run.step(ToolCallStep(call_id="c1", tool="ask", arguments={"question": "Which?"}))
    run.step(ApprovalStep(about="question", call_id="c1", tool="ask", why="Which?\nNow.", choices=("a", "b")))
    return run


def test_the_list_and_the_counts_agree(api: Api, asking: PlayedRun) -> None:
    (item,) = api.client.call(inbox.LIST, InboxFilter())
    counts = api.client.call(inbox.COUNT)
    assert (item["kind"], item["order"], item["choices"], item["may_answer"]) == (
        "question",
        asking.order_id,
        ["a", "b"],
        True,
    )
    assert (counts["total"], counts["kinds"]["question"], counts["kinds"]["approval"]) == (1, 1, 0)
    assert api.client.call(inbox.LIST, InboxFilter(kind="approval")) == []


def test_people_read_the_question_its_choices_and_the_command_that_answers(api: Api, asking: PlayedRun) -> None:
    text = inbox_text(api.client.call(inbox.LIST, InboxFilter()))
    assert f"question  {asking.order_id}  Choose a database" in text
    assert "  Which?\n  Now.\n  1  a\n  2  b\n" in text
    assert f"  next  fleet answer {asking.order_id}\n" in text
    assert inbox_text([]) == "nothing waits for you\n"


def test_a_wrong_kind_is_refused(api: Api) -> None:
    with api.http() as http:
        assert http.get("/api/v1/inbox", params={"kind": "mail"}).status_code == 422
        assert http.get("/api/v1/inbox/counts").status_code == 200
