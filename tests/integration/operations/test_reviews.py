"""Comments on the diff of an order: pending for their author, then one message to the agent, then answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from control_plane.core import Caller, Core
from control_plane.db.orders import Order, SteeringMessage
from control_plane.db.projects import Provider
from control_plane.db.sessions import ChatSession
from control_plane.declarations.drafts import DraftEdit
from control_plane.declarations.reviews import ReviewCommentDocument, ReviewCommentEdit
from control_plane.operations import drafts, projects
from control_plane.operations.orders import reading
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.reviews import commenting
from shared.errors import Conflict, FleetError, Forbidden, Invalid, NotFound, Precondition, TooLarge
from tests.support.made import make_drone, make_project, start_run, submit
from tests.support.organizations import add_organization
from tests.support.reviews import HEAD, comment, reviewed, send, with_patch
from tests.support.turns import order_as_sent


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


def row(core: Core, model: type[Any], row_id: Any) -> Any:
    with core.database.read() as db:
        return db.get_one(model, row_id)


# --- pending -----------------------------------------------------------------------------


def test_a_comment_keeps_its_place_the_lines_and_the_commit(core: Core, mila: Caller, order: str) -> None:
    made = comment(core, mila, order, "Use sum()", start_line=4, end_line=5)
    assert (made.place, made.quote) == ("calc.py:4-5", "+    total = a + b\n+    return total")
    assert (made.commit, made.status, made.user, made.mine) == (HEAD, "pending", "mila", True)
    assert listed(core, mila, order) == [made]


def test_the_old_side_and_a_whole_file_can_be_commented(core: Core, mila: Caller, order: str) -> None:
    old = comment(core, mila, order, side="old", start_line=4)
    whole = comment(core, mila, order, path="data.bin", start_line=None)
    assert (old.place, old.quote) == ("calc.py:4 (old)", "-    return a - b")
    assert (whole.place, whole.quote, whole.start_line) == ("data.bin", "", None)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"path": "calc.p"}, "does not change 'calc.p'"),
        ({"start_line": 7}, "the diff does not show all of lines 7 to 7 on the new side"),
        ({"start_line": 6, "end_line": 21}, "the diff does not show all of lines 6 to 21"),
        ({"start_line": 5, "end_line": 4}, "no range"),
        ({"start_line": 1, "end_line": 900}, "no range of 1 to 500 lines"),
        ({"start_line": None, "end_line": 4}, "needs a first line"),
        ({"path": "data.bin", "start_line": 1}, "does not show"),
        ({"path": None}, "a comment needs a file"),
    ],
)
def test_a_place_that_the_diff_does_not_show_is_refused(
    core: Core, mila: Caller, order: str, place: dict[str, Any], said: str
) -> None:
    with pytest.raises(Invalid, match=said) as refusal:
        comment(core, mila, order, **place)
    assert refusal.value.code == "E-REVIEW-PLACE"


@pytest.mark.parametrize(("text", "error"), [("", Invalid), (" \n", Invalid), ("x" * 10_001, TooLarge)])
def test_what_is_no_text_is_refused(core: Core, mila: Caller, order: str, text: str, error: type[FleetError]) -> None:
    with pytest.raises(error):
        comment(core, mila, order, text)


def test_an_order_without_changes_cannot_be_reviewed(core: Core, mila: Caller) -> None:
    waiting = submit(core, mila).id
    with pytest.raises(Conflict) as refusal:
        comment(core, mila, waiting)
    assert refusal.value.code == "E-REVIEW-RESULT"


def test_pending_comments_are_seen_changed_and_removed_by_their_author_alone(
    core: Core, mila: Caller, oka: Caller, order: str
) -> None:
    made = comment(core, mila, order)
    assert listed(core, oka, order) == []
    with pytest.raises(NotFound):
        commenting.edit(core, oka, order, made.id, ReviewCommentEdit(text="mine now"))
    changed = commenting.edit(core, mila, order, made.id[:6], ReviewCommentEdit(text="Use sum(), please"))
    assert (changed.text, changed.quote) == ("Use sum(), please", made.quote)
    assert commenting.remove(core, mila, order, made.id) == changed
    assert listed(core, mila, order) == []


def test_a_user_has_at_most_100_pending_comments_on_an_order(core: Core, mila: Caller, oka: Caller, order: str) -> None:
    for _ in range(100):
        comment(core, mila, order)
    with pytest.raises(Conflict) as refusal:
        comment(core, mila, order)
    assert refusal.value.code == "E-REVIEW-COUNT"
    comment(core, oka, order)


def test_viewers_read_and_do_not_comment(core: Core, mila: Caller, order: str) -> None:
    viewer = replace(mila, role="viewer", user_id="d" * 12)
    made = comment(core, mila, order)
    for attempt in (
        lambda: comment(core, viewer, order),
        lambda: commenting.edit(core, viewer, order, made.id, ReviewCommentEdit(text="x")),
        lambda: commenting.remove(core, viewer, order, made.id),
        lambda: send(core, viewer, order),
    ):
        with pytest.raises(Forbidden):
            attempt()
    assert listed(core, viewer, order) == []
    send(core, mila, order)
    assert [each.mine for each in listed(core, viewer, order)] == [False]


def test_orders_of_another_organization_are_not_found(core: Core, admin: Caller, mila: Caller, order: str) -> None:
    made = comment(core, mila, order)
    there = replace(add_organization(core, admin), user_id=mila.user_id)
    for attempt in (
        lambda: comment(core, there, order),
        lambda: listed(core, there, order),
        lambda: commenting.remove(core, there, order, made.id),
        lambda: send(core, there, order),
    ):
        with pytest.raises(NotFound):
            attempt()


# --- sending -----------------------------------------------------------------------------


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
    assert row(core, Order, made.id).limits["max_iterations"] == 7
    assert f"=== comment {one.id[:6]}\nfile: calc.py\nlines: 4 " in made.prompt
    assert f"=== comment {two.id[:6]}\nfile: data.bin\n" in made.prompt
    assert "| Nearly there" in made.prompt
    assert other.text not in made.prompt
    assert [(each.status, each.sent_to) for each in listed(core, mila, order)] == [("sent", made.id)] * 2
    assert [each.status for each in listed(core, oka, order)] == ["sent", "sent", "pending"]


def test_a_review_is_sent_once(core: Core, mila: Caller, order: str) -> None:
    made = comment(core, mila, order)
    send(core, mila, order)
    with pytest.raises(Conflict) as refusal:
        send(core, mila, order)
    assert refusal.value.code == "E-REVIEW-EMPTY"
    for attempt in (
        lambda: commenting.edit(core, mila, order, made.id, ReviewCommentEdit(text="x")),
        lambda: commenting.remove(core, mila, order, made.id),
    ):
        with pytest.raises(Conflict) as refused:
            attempt()
        assert refused.value.code == "E-REVIEW-STATE"


def test_the_next_turn_starts_from_the_work_and_carries_the_comments(core: Core, mila: Caller, order: str) -> None:
    made = comment(core, mila, order)
    second = send(core, mila, order).id
    sent = order_as_sent(core, second)
    assert (sent.base.commit, sent.prompt) == (HEAD, reading.order_summary(core, mila, second).prompt)
    assert [(each.id, each.answered) for each in sent.review] == [(made.id, False)]
    assert reading.show_order(core, mila, order).unsettled == reading.show_order(core, mila, second).unsettled == 1


def test_the_next_turn_has_the_checks_of_the_order_that_was_reviewed(core: Core, mila: Caller, order: str) -> None:
    with core.database.write() as db:
        db.get_one(Order, order).verify = ["make test"]
    comment(core, mila, order)
    assert order_as_sent(core, send(core, mila, order).id).project.verify == ("make test",)


def test_an_order_without_a_review_carries_nothing(core: Core, mila: Caller, order: str) -> None:
    comment(core, mila, order)
    session = reading.order_summary(core, mila, order).session
    assert order_as_sent(core, submit(core, mila, session=session).id).review == ()


def test_a_review_of_an_order_that_runs_again_is_a_message_to_its_run(core: Core, admin: Caller, mila: Caller) -> None:
    order = submit(core, admin).id
    start_run(core, order)
    with_patch(core, order)
    made = comment(core, mila, order)
    receiver = send(core, mila, order)
    with core.database.read() as db:
        [message] = db.query(SteeringMessage).all()
    assert (receiver.id, listed(core, mila, order)[0].sent_to) == (order, order)
    assert (message.order_id, message.user, message.after) == (order, "mila", False)
    assert f"=== comment {made.id[:6]}" in message.text
    assert [each.id for each in order_as_sent(core, order).review] == [made.id]


def test_an_order_that_is_being_canceled_takes_no_review(core: Core, admin: Caller, mila: Caller) -> None:
    order = submit(core, admin).id
    start_run(core, order)
    with_patch(core, order)
    comment(core, mila, order)
    cancel(core, admin, order)
    with pytest.raises(Conflict, match="is canceling"):
        send(core, mila, order)
    assert [each.status for each in listed(core, mila, order)] == ["pending"]


def test_a_removed_project_or_provider_is_told_and_the_comments_stay(
    core: Core, admin: Caller, mila: Caller, order: str
) -> None:
    comment(core, mila, order)
    with core.database.write() as db:
        db.query(Provider).update({"removed_at": core.clock.now()})
    with pytest.raises(Precondition) as refusal:
        send(core, mila, order)
    assert refusal.value.code == "E-ORDER-PROVIDER"
    projects.remove(core, admin, "web")
    with pytest.raises(Precondition) as refusal:
        send(core, mila, order)
    assert refusal.value.code == "E-PROJECT-REMOVED"
    assert [each.status for each in listed(core, mila, order)] == ["pending"]


def test_a_review_that_is_too_long_for_one_message_is_refused_whole(core: Core, mila: Caller, order: str) -> None:
    for _ in range(21):
        comment(core, mila, order, "x" * 10_000)
    with pytest.raises(TooLarge) as refusal:
        send(core, mila, order)
    assert refusal.value.code == "E-REVIEW-SIZE"
    assert {each.status for each in listed(core, mila, order)} == {"pending"}


def test_a_draft_of_the_overall_text_is_removed_with_the_review(core: Core, mila: Caller, order: str) -> None:
    subject = f"order:{order}:review"
    drafts.save(core, mila, subject, DraftEdit(text="Nearly there"))
    comment(core, mila, order)
    send(core, mila, order, "Nearly there")
    assert drafts.show(core, mila, subject).version == 0


def test_a_reply_has_the_place_of_its_parent_and_needs_one_that_was_sent(core: Core, mila: Caller, order: str) -> None:
    parent = comment(core, mila, order)
    with pytest.raises(Conflict):
        comment(core, mila, order, "The built-in", parent=parent.id)
    send(core, mila, order)
    with pytest.raises(Invalid):
        comment(core, mila, order, "The built-in", parent=parent.id, path="calc.py")
    with pytest.raises(NotFound):
        comment(core, mila, order, "The built-in", parent="ffffff")
    reply = comment(core, mila, order, "The built-in", parent=parent.id[:6])
    assert (reply.parent, reply.place, reply.commit) == (parent.id, parent.place, parent.commit)
    assert f"in reply to your answer to comment {parent.id[:6]}" in send(core, mila, order).prompt


def test_the_list_can_be_limited_to_a_status(core: Core, mila: Caller, order: str) -> None:
    comment(core, mila, order)
    send(core, mila, order)
    pending = comment(core, mila, order)
    assert [each.id for each in listed(core, mila, order, "pending")] == [pending.id]
    assert len(listed(core, mila, order, "sent")) == 1


def test_a_turn_of_a_task_is_answered_in_its_thread(core: Core, mila: Caller, order: str) -> None:
    comment(core, mila, order)
    session = reading.order_summary(core, mila, order).session
    with core.database.write() as db:
        db.get_one(ChatSession, session).task_id = "DEFA-0001"
    with pytest.raises(Conflict) as refusal:
        send(core, mila, order)
    assert (refusal.value.code, "fleet comment DEFA-0001" in refusal.value.next) == ("E-SESSION-TASK", True)
