"""What agents answer to the comments of a review, as their drones report it: recorded once, undone with their step."""

from __future__ import annotations

from control_plane.contract.declarations.reviews import ReviewCommentDocument
from control_plane.operations.reviews import commenting
from shared.events import CheckpointStep, Delivered, ResumedStep, ReviewAnswerStep, UserStep
from shared.names import branch
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.reviews import comment, send, with_patch
from tests.support.stand_in import DroneStandIn
from tests.support.turns import end

DONE = "d" * 40
PROMPT = UserStep(text="the review", source="prompt")


def begun(plane: Plane, drone: DroneStandIn) -> WorkOrder:
    """The next order, claimed and running."""
    drone.renew_lease()
    order = drone.taken()
    drone.report(order, drone.started())
    plane.reaches(order.order_id, "running")
    return order


def reviewed(plane: Plane, drone: DroneStandIn, comments: int = 1) -> tuple[str, WorkOrder]:
    """An order whose result was reviewed with this many comments, and the turn that was sent to answer them."""
    first = end(plane.core, plane.submit(), steps=[PROMPT])
    with_patch(plane.core, first)
    for number in range(comments):
        comment(plane.core, plane.admin, first, f"comment {number}")
    send(plane.core, plane.admin, first)
    return first, begun(plane, drone)


def listed(plane: Plane, order_id: str) -> list[ReviewCommentDocument]:
    return commenting.list_comments(plane.core, plane.admin, order_id)


def statuses(plane: Plane, order_id: str) -> list[str]:
    return [each.status for each in listed(plane, order_id)]


def test_answers_are_shown_at_once_and_the_commit_of_what_is_done_with_the_delivery(
    running: Plane, oka: DroneStandIn
) -> None:
    first, turn = reviewed(running, oka, 4)
    ids = [each.id for each in turn.review]
    oka.report(
        turn,
        PROMPT,
        ReviewAnswerStep(comment=ids[0], verdict="done"),
        ReviewAnswerStep(comment=ids[1], verdict="declined", text="It is used"),
        ReviewAnswerStep(comment=ids[2], verdict="asks", text="Which sum?"),
    )
    running.until(lambda: statuses(running, first) == ["done", "declined", "asks", "sent"])
    before = listed(running, first)[0]
    oka.report(turn, Delivered(branch=branch(turn.order_id), base_commit="c" * 40, head_commit=DONE), oka.ended())
    running.reaches(turn.order_id, "succeeded")
    after = listed(running, first)
    assert (before.done_commit, after[0].done_commit, after[1].done_commit) == (None, DONE, None)
    assert [each.answer for each in after] == ["", "It is used", "Which sum?", None]
    assert {each.answered_in for each in after[:3]} == {turn.order_id}
    assert [running.order(each).unsettled for each in (first, turn.order_id)] == [1, 1]


def test_second_answers_and_comments_of_other_orders_are_ignored(running: Plane, oka: DroneStandIn) -> None:
    first, turn = reviewed(running, oka)
    own = turn.review[0].id
    oka.report(turn, PROMPT, ReviewAnswerStep(comment=own, verdict="declined", text="no"))
    oka.report(turn, ReviewAnswerStep(comment=own, verdict="done"), ReviewAnswerStep(comment="f" * 12, verdict="done"))
    oka.report(turn, oka.ended())
    running.reaches(turn.order_id, "succeeded")
    assert statuses(running, first) == ["declined"]
    running.submit("something else")
    other = begun(running, oka)
    oka.report(other, PROMPT, ReviewAnswerStep(comment=own, verdict="done"), oka.ended())
    running.reaches(other.order_id, "succeeded")
    assert (other.review, statuses(running, first)) == ((), ["declined"])


def test_an_answer_before_the_checkpoint_stays_and_a_later_one_is_undone(running: Plane, oka: DroneStandIn) -> None:
    first, turn = reviewed(running, oka, 2)
    one, two = (each.id for each in turn.review)
    # The run's own numbers: run_started, prompt, answer, checkpoint.
    oka.report(turn, PROMPT, ReviewAnswerStep(comment=one, verdict="done"), CheckpointStep(changed=False))
    oka.report(turn, ReviewAnswerStep(comment=two, verdict="done"))
    oka.report(turn, oka.ended(status="preempted", exit_status="canceled", give_back=True))
    again = begun(running, oka)
    assert again.resumed is not None
    oka.report(again, ResumedStep(run_id=again.resumed.run_id, seq=again.resumed.seq))
    running.until(lambda: statuses(running, first) == ["done", "sent"])
    assert [(each.id, each.answered) for each in again.review] == [(one, True), (two, False)]
    oka.report(again, oka.ended(status="preempted", exit_status="canceled", give_back=True))
    oka.report(begun(running, oka), PROMPT)
    running.until(lambda: statuses(running, first) == ["sent", "sent"])


def test_a_review_sent_to_a_run_names_its_comments_in_the_message(running: Plane, oka: DroneStandIn) -> None:
    order_id = running.submit()
    order = begun(running, oka)
    with_patch(running.core, order_id)
    made = comment(running.core, running.admin, order_id)
    send(running.core, running.admin, order_id)
    [said] = running.until(lambda: oka.told("say"))
    assert (said.body.run_id, said.body.review) == (order.run_id, (made.id,))
    oka.report(order, UserStep(text=said.body.text, source="steer"))
    oka.report(order, ReviewAnswerStep(comment=made.id, verdict="asks", text="Why?"))
    running.until(lambda: statuses(running, order_id) == ["asks"])
