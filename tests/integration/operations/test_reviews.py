"""Comments on the diff of an order: pending for their author, then one message to the agent, then answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from control_plane.contract.declarations.reviews import ReviewCommentDocument, ReviewCommentEdit
from control_plane.contract.declarations.sessions import SessionEdit
from control_plane.core import Caller, Core
from control_plane.db.orders import Order, SteeringMessage
from control_plane.db.projects import Provider
from control_plane.db.reviews import ReviewComment
from control_plane.db.sessions import ChatSession
from control_plane.operations import projects, sessions
from control_plane.operations.orders import message_queue, reading, retrying
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.reviews import commenting
from control_plane.orders.ending import Ending, finish, requeue
from shared.events import UserStep
from shared.reasons import GivenBack, RunEnd
from tests.support.made import make_drone, make_project, start_run, submit
from tests.support.refusals import code_of
from tests.support.reviews import HEAD, comment, reviewed, send, with_patch
from tests.support.turns import FAILED, order_as_sent, report, said


@pytest.fixture(autouse=True)
def fleet(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin, concurrency=9)


@pytest.fixture
def mila(admin: Caller) -> Caller:
    """An operator."""
    return replace(admin, role="operator", user="mila", user_id="a" * 12, everywhere=False)


@pytest.fixture
def oka(mila: Caller) -> Caller:
    """Another operator."""
    return replace(mila, user="oka", user_id="b" * 12)


@pytest.fixture
def order(core: Core, admin: Caller) -> str:
    """An ended order with a diff."""
    return reviewed(core, admin)


def listed(core: Core, caller: Caller, order_id: str, status: str | None = None) -> list[ReviewCommentDocument]:
    return commenting.list_comments(core, caller, order_id, status)


def test_a_comment_keeps_its_place_the_lines_and_the_commit(core: Core, mila: Caller, order: str) -> None:
    made = comment(core, mila, order, "Use sum()", start_line=4, end_line=5)
    assert (made.place, made.quote) == ("calc.py:4-5", "+    total = a + b\n+    return total")
    assert (made.commit, made.status, made.user, made.mine) == (HEAD, "pending", "mila", True)
    assert listed(core, mila, order) == [made]
    old = comment(core, mila, order, side="old", start_line=4)
    whole = comment(core, mila, order, path="data.bin", start_line=None)
    assert (old.place, old.quote) == ("calc.py:4 (old)", "-    return a - b")
    assert (whole.place, whole.quote, whole.start_line) == ("data.bin", "", None)


def test_a_place_that_the_diff_does_not_show_and_what_is_no_text_are_refused(
    core: Core, mila: Caller, order: str
) -> None:
    refused: list[tuple[str, dict[str, Any]]] = [
        ("E-REVIEW-PLACE", {"path": "calc.p"}),
        ("E-REVIEW-PLACE", {"start_line": 7}),
        ("E-REVIEW-PLACE", {"start_line": 6, "end_line": 21}),
        ("E-REVIEW-PLACE", {"start_line": 5, "end_line": 4}),
        ("E-REVIEW-PLACE", {"start_line": 1, "end_line": 900}),
        ("E-REVIEW-PLACE", {"start_line": None, "end_line": 4}),
        ("E-REVIEW-PLACE", {"path": "data.bin", "start_line": 1}),
        ("E-REVIEW-PLACE", {"path": None}),
        ("E-EMPTY", {"text": " \n"}),
        ("E-TOO-LONG", {"text": "x" * 10_001}),
    ]
    for code, fields in refused:
        assert code_of(lambda fields=fields: comment(core, mila, order, **fields)) == code, fields
    assert listed(core, mila, order) == []


def test_pending_comments_are_seen_changed_and_removed_by_their_author_alone_who_has_at_most_100(
    core: Core, mila: Caller, oka: Caller, order: str
) -> None:
    made = comment(core, mila, order)
    assert listed(core, oka, order) == []
    stolen = ReviewCommentEdit(text="mine now")
    assert code_of(lambda: commenting.edit(core, oka, order, made.id, stolen)) == "E-REVIEW-404"
    changed = commenting.edit(core, mila, order, made.id[:6], ReviewCommentEdit(text="Use sum(), please"))
    assert (changed.text, changed.quote) == ("Use sum(), please", made.quote)
    assert commenting.remove(core, mila, order, made.id) == changed
    assert listed(core, mila, order) == []
    comment(core, mila, order)
    with core.database.write() as db:
        row = db.query(ReviewComment).one()
        values = {
            each.name: getattr(row, each.name) for each in ReviewComment.__table__.columns if each.name != "number"
        }
        db.add_all(ReviewComment(**{**values, "id": f"{number:012}"}) for number in range(99))
    assert code_of(lambda: comment(core, mila, order)) == "E-REVIEW-COUNT"
    comment(core, oka, order)


def test_sending_a_review_of_an_ended_order_is_the_next_turn_of_its_session(
    core: Core, admin: Caller, mila: Caller, oka: Caller
) -> None:
    order = reviewed(core, admin, fields={"mode": "test", "thinking": "low", "max_iterations": 7, "priority": 3})
    with core.database.write() as db:
        db.get_one(ChatSession, db.get_one(Order, order).session_id).thinking = "high"
    one, two = comment(core, mila, order, "Use sum()"), comment(core, mila, order, path="data.bin", start_line=None)
    other = comment(core, oka, order, "Not mine to send")
    made = send(core, mila, order, "Nearly there")
    before = reading.order_summary(core, mila, order)
    assert (made.session, made.user, made.mode, made.thinking, made.priority, made.provider) == (
        before.session,
        "mila",
        "test",
        "low",
        3,
        before.provider,
    )
    with core.database.read() as db:
        assert db.get_one(Order, made.id).limits["max_iterations"] == 7
    assert f"=== comment {one.id[:6]}\nfile: calc.py\nlines: 4 " in made.prompt
    assert f"=== comment {two.id[:6]}\nfile: data.bin\n" in made.prompt
    assert "| Nearly there" in made.prompt
    assert other.text not in made.prompt
    assert [(each.status, each.sent_to) for each in listed(core, mila, order)] == [("sent", made.id)] * 2
    assert [each.status for each in listed(core, oka, order)] == ["sent", "sent", "pending"]
    assert [each.id for each in listed(core, oka, order, "pending")] == [other.id]
    assert [each.mine for each in listed(core, oka, order, "sent")] == [False, False]


def test_the_turn_for_a_review_has_the_stricter_approvals_of_order_and_session_and_allows_what_the_session_does(
    core: Core, admin: Caller, mila: Caller
) -> None:
    order = reviewed(core, admin, fields={"approve": "risky", "allow": ["make *"]})
    session = reading.order_summary(core, mila, order).session
    for of_session, expected in (("all", "all"), ("yolo", "risky")):
        sessions.edit(core, admin, session, SessionEdit(approve=of_session, allow=["ls"]))
        comment(core, mila, order)
        made = send(core, mila, order)
        with core.database.read() as db:
            row = db.get_one(Order, made.id)
            assert (row.approve, row.allow) == (expected, ["ls"])


def test_a_review_is_sent_once_with_the_work_and_replied_to_when_it_was_sent(
    core: Core, mila: Caller, order: str
) -> None:
    made = comment(core, mila, order)
    with core.database.write() as db:
        db.get_one(Order, order).verify = ["make test"]
    unsent = {"text": "The built-in", "parent": made.id}
    assert code_of(lambda: comment(core, mila, order, **unsent)) == "E-REVIEW-STATE"
    second = send(core, mila, order, "Nearly there").id
    sent = order_as_sent(core, second)
    assert (sent.base.commit, sent.prompt) == (HEAD, reading.order_summary(core, mila, second).prompt)
    assert [(each.id, each.answered) for each in sent.review] == [(made.id, False)]
    assert sent.project.verify == ("make test",)
    assert reading.show_order(core, mila, order).unsettled == reading.show_order(core, mila, second).unsettled == 1
    refused = [
        code_of(lambda: send(core, mila, order)),
        code_of(lambda: commenting.edit(core, mila, order, made.id, ReviewCommentEdit(text="x"))),
        code_of(lambda: commenting.remove(core, mila, order, made.id)),
        code_of(lambda: comment(core, mila, order, **unsent, path="calc.py")),
        code_of(lambda: comment(core, mila, order, "The built-in", parent="ffffff")),
    ]
    assert refused == ["E-REVIEW-EMPTY", "E-REVIEW-STATE", "E-REVIEW-STATE", "E-REVIEW-PLACE", "E-REVIEW-404"]
    reply = comment(core, mila, order, "The built-in", parent=made.id[:6])
    assert (reply.parent, reply.place, reply.commit) == (made.id, made.place, made.commit)
    assert f"in reply to your answer to comment {made.id[:6]}" in send(core, mila, order).prompt


def test_a_review_of_an_order_that_runs_is_a_message_to_its_run(core: Core, admin: Caller, mila: Caller) -> None:
    order = submit(core, admin).id
    start_run(core, order)
    assert code_of(lambda: comment(core, mila, order)) == "E-REVIEW-RESULT"
    with_patch(core, order)
    made = comment(core, mila, order)
    receiver = send(core, mila, order)
    with core.database.read() as db:
        [message] = db.query(SteeringMessage).all()
    assert (receiver.id, listed(core, mila, order)[0].sent_to) == (order, order)
    assert (message.order_id, message.user, message.after) == (order, "mila", False)
    assert f"=== comment {made.id[:6]}" in message.text
    assert [each.id for each in order_as_sent(core, order).review] == [made.id]
    second = comment(core, mila, order)
    cancel(core, admin, order)
    assert code_of(lambda: send(core, mila, order)) == "E-SAY-ENDED"
    assert [each.id for each in listed(core, mila, order, "pending")] == [second.id]


def test_a_review_that_no_model_has_read_when_its_order_ends_can_be_sent_again(
    core: Core, admin: Caller, mila: Caller
) -> None:
    order = submit(core, admin).id
    run = start_run(core, order)
    with_patch(core, order)
    read = comment(core, mila, order)
    send(core, mila, order)
    (message,) = message_queue.list_(core, mila, order)
    report(core, run, [*said("mend it"), UserStep(text="the review", source="steer", message=message.id)])
    unread = comment(core, mila, order, "Too late")
    send(core, mila, order)
    with core.database.write() as db:
        ending = Ending("verification_failed", RunEnd(detail="make test failed"))
        finish(db, core, db.get_one(Order, order), FAILED, ending)
    sent_to = {each.id: (each.status, each.sent_to) for each in listed(core, mila, order)}
    assert sent_to == {read.id: ("sent", order), unread.id: ("pending", None)}
    # A run that resumes the order receives it no more: the author sends it again.
    assert message_queue.list_(core, mila, order) == []
    assert "Too late" in send(core, mila, order).prompt


@pytest.mark.parametrize(
    ("steps", "exit_status"),
    [([], "refused"), ([UserStep(text="the review", source="prompt")], "model_error")],
    ids=["not_begun", "no_model"],
)
def test_a_review_whose_order_ends_before_its_agent_answers_is_pending_until_that_order_runs_again(
    core: Core, mila: Caller, order: str, steps: list[UserStep], exit_status: str
) -> None:
    made, other = comment(core, mila, order), comment(core, mila, order, "This needs a test")
    receiver = send(core, mila, order).id
    report(core, start_run(core, receiver), steps)
    with core.database.write() as db:
        finish(db, core, db.get_one(Order, receiver), FAILED, Ending(exit_status, RunEnd(detail="no answer")))
    assert [(each.status, each.sent_to) for each in listed(core, mila, order)] == [("pending", None)] * 2
    commenting.edit(core, mila, order, other.id, ReviewCommentEdit(text="This needs two tests"))
    retrying.retry(core, mila, receiver)
    # The prompt has the first one as it is.
    again = [(each.id, each.status, each.sent_to) for each in listed(core, mila, order)]
    assert again == [(made.id, "sent", receiver), (other.id, "pending", None)]
    assert [each.id for each in order_as_sent(core, receiver).review] == [made.id]


def test_a_review_whose_message_is_taken_back_is_pending_again(core: Core, admin: Caller, mila: Caller) -> None:
    order = submit(core, admin).id
    start_run(core, order)
    with_patch(core, order)
    made = comment(core, mila, order)
    send(core, mila, order)
    with core.database.write() as db:
        requeue(db, core, db.get_one(Order, order), GivenBack(drone="anna", detail=""))
    assert [each.state for each in message_queue.clear(core, mila, order)] == ["taken_back"]
    assert [(each.id, each.status) for each in listed(core, mila, order)] == [(made.id, "pending")]


def test_what_cannot_be_sent_is_told_and_the_comments_stay(core: Core, admin: Caller, mila: Caller, order: str) -> None:
    for _ in range(21):
        comment(core, mila, order, "x" * 10_000)
    assert code_of(lambda: send(core, mila, order)) == "E-REVIEW-SIZE"
    for each in listed(core, mila, order)[1:]:
        commenting.remove(core, mila, order, each.id)
    session = reading.order_summary(core, mila, order).session
    with core.database.write() as db:
        db.get_one(ChatSession, session).task_id = "DEFA-0001"
    assert code_of(lambda: send(core, mila, order)) == "E-SESSION-TASK"
    with core.database.write() as db:
        db.get_one(ChatSession, session).task_id = None
        db.query(Provider).update({"removed_at": core.clock.now()})
    assert code_of(lambda: send(core, mila, order)) == "E-ORDER-PROVIDER"
    projects.remove(core, admin, "web")
    assert code_of(lambda: send(core, mila, order)) == "E-PROJECT-REMOVED"
    assert [each.status for each in listed(core, mila, order)] == ["pending"]
