"""The inbox: everything that waits, for whom it waits, and how much of it there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from control_plane.core import Caller
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.declarations.inbox import InboxItem
from control_plane.documents.orders import AnswerRequest, ApproveRequest
from control_plane.operations.inbox.listing import count_inbox, list_inbox
from control_plane.operations.orders.answering import answer_order
from control_plane.operations.orders.steering import approve
from shared.errors import Invalid
from shared.events import ApprovalStep, DecisionStep
from shared.names import new_id
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn
from tests.support.task_states import Workshop

QUESTION = ApprovalStep(about="question", call_id="c1", tool="ask", why="Which?", choices=("a", "b"), default="b")
APPROVAL = ApprovalStep(call_id="c1", tool="shell", why="Deletes files: rm x", command="rm x")
ASKS = {"response": "I looked at both.\n\nWhich one?"}
UNVERIFIED = {"status": "failed", "exit_status": "verification_failed", "reason": "make test failed"}
SPENT = {"status": "failed", "exit_status": "cost_limit", "reason": "The cost limit was reached."}


def running(
    plane: Plane, drone: DroneStandIn, *steps: Any, prompt: str = "# Fix it\n\nnow", **fields: Any
) -> WorkOrder:
    """An order whose run reported these steps."""
    drone.renew_lease()
    plane.submit(prompt, **fields)
    order = plane.until(drone.take)
    assert drone.claim(order)
    drone.report(order, drone.started(), *steps)
    plane.until(
        lambda: len(plane.order(order.order_id).steps) >= len(steps) and plane.status(order.order_id) != "assigned"
    )
    return order


def ended(plane: Plane, drone: DroneStandIn, *, session: str | None = None, **how: Any) -> WorkOrder:
    order = running(plane, drone, session=session)
    drone.report(order, drone.ended(**how))
    plane.until(lambda: plane.order(order.order_id).ended_at)
    return order


def asking(
    plane: Plane, drone: DroneStandIn, step: ApprovalStep = QUESTION, until: datetime | None = None
) -> WorkOrder:
    order = running(plane, drone, step.model_copy(update={"until": until}))
    plane.until(lambda: plane.status(order.order_id) == "awaiting_approval")
    return order


def inbox(plane: Plane, caller: Caller | None = None, **filters: Any) -> list[InboxItem]:
    """The list, after it was compared with the count."""
    caller = caller or plane.admin
    found = list_inbox(plane.core, caller, **filters)
    if not filters:
        counts = count_inbox(plane.core, caller)
        if len(list_inbox(plane.core, caller)) != len(found):
            # It changed between the two: then they say nothing about each other.
            return inbox(plane, caller)
        assert (counts.total, sum(counts.kinds.values())) == (len(found), len(found))
        assert all(counts.kinds[item.kind] for item in found)
    return found


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    drone = plane.drone(concurrency=8)
    plane.collector(), plane.supervisor()
    return drone


def test_a_question_and_an_approval_are_items_with_all_that_it_takes_to_decide(any_plane: Plane) -> None:
    drone = any_plane.drone(concurrency=8)
    any_plane.collector(), any_plane.supervisor()
    soon, later = (any_plane.core.clock.now() + timedelta(hours=hours) for hours in (1, 5))
    question, approval = asking(any_plane, drone, until=later), asking(any_plane, drone, APPROVAL, until=soon)
    first, second = inbox(any_plane)
    assert (first.kind, first.text, first.order, first.deadline) == ("approval", APPROVAL.why, approval.order_id, soon)
    assert first.waiting_for is not None
    assert (first.waiting_for.command, first.next) == ("rm x", f"fleet approve {approval.order_id}")
    assert (second.kind, second.title, second.text, second.choices, second.default, second.project) == (
        "question",
        "Fix it",
        "Which?",
        ["a", "b"],
        "b",
        "app",
    )
    assert (second.next, second.may_answer, second.drone) == (f"fleet answer {question.order_id}", True, "oka")


def test_what_is_answered_waits_no_longer_for_a_user(plane: Plane, oka: DroneStandIn) -> None:
    question, approval = asking(plane, oka), asking(plane, oka, APPROVAL)
    answer_order(plane.core, plane.admin, question.order_id, AnswerRequest(text="1"))
    assert [item.order for item in inbox(plane)] == [approval.order_id]
    approve(plane.core, plane.admin, approval.order_id, ApproveRequest())
    assert inbox(plane) == []


@pytest.mark.parametrize(
    ("about", "command"),
    [
        ("limit", "fleet approve {} --raise USD"),
        ("budget", "fleet approve {}"),
        ("secret", "fleet approve {}"),
    ],
)
def test_other_waits_have_the_command_of_their_kind(plane: Plane, oka: DroneStandIn, about: Any, command: str) -> None:
    order = asking(plane, oka, APPROVAL.model_copy(update={"about": about}))
    (item,) = inbox(plane)
    assert (item.kind, item.next) == (about, command.format(order.order_id))


@pytest.mark.parametrize(
    ("how", "kind", "command"),
    [
        (ASKS, "reply", "fleet submit 'TEXT' --session {session}"),
        (UNVERIFIED, "checks", "fleet resume {order} --say 'TEXT'"),
        (SPENT, "spent", "fleet resume {order}"),
    ],
)
def test_an_ended_order_waits_until_its_session_goes_on(
    plane: Plane, oka: DroneStandIn, how: dict[str, Any], kind: str, command: str
) -> None:
    order = ended(plane, oka, **how)
    (item,) = inbox(plane)
    assert (item.kind, item.deadline) == (kind, None)
    assert item.text == how.get("response", how.get("reason"))
    assert item.next == command.format(order=order.order_id, session=order.session.id)
    ended(plane, oka, session=order.session.id, response="Done.")
    assert inbox(plane) == []


def test_an_order_that_runs_again_waits_no_longer(plane: Plane, oka: DroneStandIn) -> None:
    from control_plane.operations.orders.retrying import retry

    order = ended(plane, oka, **UNVERIFIED)
    retry(plane.core, plane.admin, order.order_id)
    assert inbox(plane) == []


def test_what_ended_long_ago_and_what_ended_well_is_not_there(plane: Plane, oka: DroneStandIn) -> None:
    order = ended(plane, oka, **ASKS)
    ended(plane, oka, response="Done.")
    plane.edit(Order, order.order_id, ended_at=plane.core.clock.now() - timedelta(days=31))
    assert inbox(plane) == []


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"beat": {"full": "80 MB free in /srv"}}, "its disk is full: 80 MB free in /srv"),
        ({"over_quota_at": datetime.fromisoformat("2026-11-20T12:00:00Z")}, "filled more of the broker's memory"),
        ({"lost": True}, "has been offline since"),
    ],
)
def test_drones_that_need_care_are_there(plane: Plane, values: dict[str, Any], text: str) -> None:
    oka, fine = plane.drone(), plane.drone("ada")
    assert (oka.name, fine.name) == ("oka", "ada")
    now = plane.core.clock.now()
    values = {"last_seen_at": now - timedelta(hours=2), "stopped_at": None} if values.pop("lost", False) else values
    plane.edit(Drone, oka.id, **{"last_seen_at": now, **values})
    plane.edit(Drone, fine.id, last_seen_at=now - timedelta(hours=2), stopped_at=now - timedelta(hours=2))
    (item,) = inbox(plane)
    assert (item.kind, item.title, item.next) == ("drone", "oka", "fleet drone show oka")
    assert text in item.text


def test_a_drone_on_which_an_order_lacked_something_is_there_for_a_day(plane: Plane, oka: DroneStandIn) -> None:
    order = ended(plane, oka, status="failed", exit_status="refused", reason="git is missing.", unsuitable=True)
    (item,) = inbox(plane, kind="drone")
    assert item.text == "the drone could not run an order: git is missing."
    plane.edit(Run, order.run_id, ended_at=plane.core.clock.now() - timedelta(days=2))
    assert inbox(plane, kind="drone") == []


def test_the_list_is_bounded_and_filtered_by_kind(plane: Plane, oka: DroneStandIn) -> None:
    for _ in range(3):
        ended(plane, oka, **ASKS)
    asking(plane, oka)
    assert [item.kind for item in inbox(plane)] == ["question", "reply", "reply", "reply"]
    assert [item.kind for item in inbox(plane, limit=2)] == ["question", "reply"]
    assert [item.kind for item in inbox(plane, kind="question")] == ["question"]
    assert count_inbox(plane.core, plane.admin).kinds["reply"] == 3


def test_a_viewer_sees_what_waits_and_that_others_have_to_act(plane: Plane, oka: DroneStandIn) -> None:
    asking(plane, oka), ended(plane, oka, **ASKS)
    assert [item.may_answer for item in inbox(plane, replace(plane.admin, role="viewer"))] == [False, False]


def test_another_organization_sees_nothing_of_it(plane: Plane, oka: DroneStandIn) -> None:
    asking(plane, oka), ended(plane, oka, **ASKS)
    plane.edit(Drone, oka.id, beat={"full": "80 MB free"})
    other = Caller(new_id(), "other", "admin", "ann")
    assert inbox(plane, other) == []
    assert inbox(plane, other, everywhere=True) == []


def test_a_token_for_all_organizations_can_see_all_and_is_told_where_to_act(plane: Plane, oka: DroneStandIn) -> None:
    order = asking(plane, oka)
    other = Caller(new_id(), "other", "admin", "ann", everywhere=True)
    (item,) = inbox(plane, other, everywhere=True)
    assert (item.organization, item.next) == ("default", f"fleet answer {order.order_id} --org default")


def test_mine_is_what_the_callers_user_submitted(plane: Plane, oka: DroneStandIn) -> None:
    asking(plane, oka)
    mine = asking(plane, oka)
    plane.edit(Order, mine.order_id, user_id="u1")
    caller = replace(plane.admin, user_id="u1")
    assert [item.order for item in inbox(plane, caller, mine=True)] == [mine.order_id]
    assert count_inbox(plane.core, caller, mine=True).total == 1
    with pytest.raises(Invalid):
        inbox(plane, mine=True)


def test_the_end_of_the_wait_takes_it_off_the_list(plane: Plane, oka: DroneStandIn) -> None:
    order = asking(plane, oka)
    oka.report(order, DecisionStep(about="question", call_id="c1", approved=True, by="clock", answer="b"))
    plane.until(lambda: inbox(plane) == [])


@pytest.fixture
def workshop(database_url: str, tmp_path: Path) -> Iterator[Workshop]:
    made = Workshop.create(database_url, tmp_path)
    yield made
    made.core.database.dispose()


def test_a_task_that_is_back_with_the_user_waits_and_one_at_work_does_not(workshop: Workshop) -> None:
    failed, at_work = workshop.at("failed/user"), workshop.at("in_progress/lead")
    counts = count_inbox(workshop.core, workshop.caller)
    found = [item for item in list_inbox(workshop.core, workshop.caller) if item.kind == "task"]
    assert at_work not in [item.task for item in found]
    (item,) = [item for item in found if item.task == failed]
    assert item.next == f"fleet task retry {failed}"
    assert "failed" in item.text
    assert counts.kinds["task"] == len(found)
