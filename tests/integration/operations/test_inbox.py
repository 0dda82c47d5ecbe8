"""The inbox: everything that waits, for whom it waits, and how much of it there is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from control_plane.contract.declarations.inbox import InboxItem
from control_plane.contract.declarations.races import RaceRequest
from control_plane.contract.declarations.steering import AnswerRequest, ApproveRequest
from control_plane.core import Caller
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.db.waits import Wait
from control_plane.operations import races
from control_plane.operations.inbox import dismissing
from control_plane.operations.inbox.listing import count_inbox, list_inbox
from control_plane.operations.orders.answering import answer_order
from control_plane.operations.orders.retrying import retry
from control_plane.operations.orders.steering import approve
from control_plane.orders.follow_up import follow_up_of
from shared.errors import Invalid
from shared.events import ApprovalStep, Body, DecisionStep, Delivered, Prepared
from shared.names import branch, new_id
from shared.states import OrderStatus
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.refusals import code_of
from tests.support.stand_in import DroneStandIn
from tests.support.task_states import Workshop

QUESTION = ApprovalStep(about="question", call_id="c1", tool="ask", why="Which?", choices=("a", "b"), default="b")
APPROVAL = ApprovalStep(call_id="c1", tool="shell", why="Deletes files: rm x", command="rm x")
RESPONSE = "I looked at both.\n\nWhich one?"
ASKS = {"response": RESPONSE}
UNVERIFIED = {"status": "failed", "exit_status": "verification_failed", "reason": "make test failed"}
SPENT = {"status": "failed", "exit_status": "cost_limit", "reason": "The cost limit was reached."}


@pytest.fixture
def oka(running: Plane) -> DroneStandIn:
    return running.drone(concurrency=8)


def begun(plane: Plane, drone: DroneStandIn, *steps: Body, session: str | None = None) -> WorkOrder:
    """An order whose run reported these steps."""
    drone.renew_lease()
    plane.submit("# Fix it\n\nnow", session=session)
    order = drone.taken()
    drone.report(order, drone.started(), *steps)
    return order


def ended(plane: Plane, drone: DroneStandIn, *, session: str | None = None, **how: Any) -> WorkOrder:
    order = begun(plane, drone, drone.ended(**how), session=session)
    plane.reaches(order.order_id, how.get("status", "succeeded"))
    return order


def asking(plane: Plane, drone: DroneStandIn, step: ApprovalStep = QUESTION, **fields: Any) -> WorkOrder:
    order = begun(plane, drone, step.model_copy(update=fields))
    plane.reaches(order.order_id, "awaiting_approval")
    return order


def inbox(plane: Plane, caller: Caller | None = None, **filters: Any) -> list[InboxItem]:
    """The list, after it was compared with the count."""
    caller = caller or plane.admin
    found = list_inbox(plane.core, caller, **filters)
    if not filters:
        counts = count_inbox(plane.core, caller)
        assert (counts.total, sum(counts.kinds.values())) == (len(found), len(found))
        assert all(counts.kinds[item.kind] for item in found)
    return found


@pytest.mark.dialects
def test_a_question_and_an_approval_have_all_that_it_takes_to_decide_and_go_when_that_is_done(
    plane: Plane, oka: DroneStandIn
) -> None:
    soon, later = (plane.core.clock.now() + timedelta(hours=hours) for hours in (1, 5))
    approval, question = asking(plane, oka, APPROVAL, until=soon), asking(plane, oka, until=later)
    first, second = inbox(plane)
    assert (first.kind, first.text, first.order) == ("approval", APPROVAL.why, approval.order_id)
    assert first.deadline == plane.rows(Wait, Wait.order_id == approval.order_id)[0].deadline
    assert first.waiting_for is not None
    assert (first.waiting_for.command, first.next) == ("rm x", f"fleet approve {approval.order_id}")
    assert (second.kind, second.title, second.text, second.project) == ("question", "Fix it", "Which?", "app")
    assert (second.choices, second.default, second.drone) == (["a", "b"], "b", "oka")
    assert (second.next, second.may_answer) == (f"fleet answer {question.order_id}", True)
    answer_order(plane.core, plane.admin, question.order_id, AnswerRequest(text="1"))
    assert [item.order for item in inbox(plane)] == [approval.order_id]
    approve(plane.core, plane.admin, approval.order_id, ApproveRequest())
    assert inbox(plane) == []


def test_other_waits_have_the_command_of_their_kind(plane: Plane, oka: DroneStandIn) -> None:
    """The list is bounded and filtered by kind."""
    commands = {"limit": "fleet approve {} --raise USD", "budget": "fleet approve {}", "secret": "fleet approve {}"}
    orders = {about: asking(plane, oka, APPROVAL, about=about).order_id for about in commands}
    found = {str(item.kind): item.next for item in inbox(plane)}
    assert found == {about: command.format(orders[about]) for about, command in commands.items()}
    assert len(inbox(plane, limit=2)) == 2
    assert [item.kind for item in inbox(plane, kind="budget")] == ["budget"]


WORK: dict[str, Any] = {"purpose": "work", "task_id": None, "head_commit": None, "patch_bytes": None}


@pytest.mark.parametrize(
    ("order", "to", "exit_status", "response", "needed"),
    [
        ({}, OrderStatus.SUCCEEDED, "stopped", RESPONSE, "question"),
        ({}, OrderStatus.SUCCEEDED, "stopped", "Done.", None),
        ({"head_commit": "2" * 40}, OrderStatus.SUCCEEDED, "stopped", RESPONSE, None),
        ({"patch_bytes": 7}, OrderStatus.SUCCEEDED, "stopped", RESPONSE, None),
        ({"task_id": "DEFA-0001"}, OrderStatus.SUCCEEDED, "stopped", RESPONSE, None),
        ({"purpose": "describe"}, OrderStatus.SUCCEEDED, "stopped", RESPONSE, None),
        ({}, OrderStatus.FAILED, "model_error", RESPONSE, None),
        ({}, OrderStatus.FAILED, "verification_failed", None, "verification"),
        ({}, OrderStatus.FAILED, "cost_limit", None, "budget"),
        ({}, OrderStatus.CANCELED, "cost_limit", None, None),
    ],
)
def test_an_order_that_ends_needs_its_user_only_for_a_question_without_changes_failed_checks_or_money(
    order: dict[str, Any], to: OrderStatus, exit_status: str, response: str | None, needed: str | None
) -> None:
    assert follow_up_of(Order(**{**WORK, **order}), to, exit_status, response) == needed


def test_an_ended_order_waits_until_it_is_dismissed_its_session_goes_on_or_it_runs_again(
    plane: Plane, oka: DroneStandIn
) -> None:
    """It is dismissed for all users, the first of whom is named, until it ends again or an undo puts it back."""
    ann, bob = (replace(plane.admin, user=name) for name in ("ann", "bob"))
    for how, kind, command in (
        (ASKS, "reply", "fleet submit 'TEXT' --session {session}"),
        (SPENT, "spent", "fleet resume {order}"),
        (UNVERIFIED, "checks", "fleet resume {order} --say 'TEXT'"),
    ):
        order = ended(plane, oka, **how)
        before = plane.order(order.order_id)
        (item,) = inbox(plane)
        assert (item.id, item.kind, item.deadline, before.asks) == (f"{kind}:{order.order_id}", kind, None, how == ASKS)
        assert item.text == how.get("response", how.get("reason"))
        assert item.next == command.format(order=order.order_id, session=order.session.id)

        done = [dismissing.dismiss(plane.core, each, item.id) for each in (ann, bob)]
        assert [each.dismissed_by for each in done] == ["ann", "ann"]
        assert inbox(plane) == inbox(plane, bob) == []
        assert plane.order(order.order_id) == before
        assert dismissing.restore(plane.core, bob, f"{kind}:{order.order_id[:6]}").dismissed_at is None
        assert inbox(plane) == [item]
        ended(plane, oka, session=order.session.id, response="Done.")
        assert inbox(plane) == []

    order = ended(plane, oka, **UNVERIFIED)
    dismissing.dismiss(plane.core, ann, f"checks:{order.order_id}")
    retry(plane.core, plane.admin, order.order_id)
    again = oka.taken()
    oka.report(again, oka.started(), oka.ended(**UNVERIFIED))
    plane.until(lambda: [each.order for each in inbox(plane)] == [order.order_id])
    retry(plane.core, plane.admin, order.order_id)
    assert inbox(plane) == []


def test_a_dismissed_race_waits_again_when_one_of_its_orders_ended_again(plane: Plane, oka: DroneStandIn) -> None:
    request = RaceRequest(prompt="do it", project="app", count=2, pick="person")
    item = f"race:{races.submit(plane.core, plane.admin, request).race.id}"
    first = oka.taken()
    work = Delivered(branch=branch(first.order_id), base_commit="1" * 40, head_commit="2" * 40)
    oka.report(first, oka.started(), Prepared(base_commit="1" * 40), work, oka.ended())
    second = oka.taken()
    oka.report(second, oka.started(), oka.ended(**SPENT))
    for _ in range(2):
        plane.until(lambda: [each.id for each in inbox(plane, kind="race")] == [item])
        dismissing.dismiss(plane.core, plane.admin, item)
        assert inbox(plane, kind="race") == []
        retry(plane.core, plane.admin, second.order_id)
        oka.renew_lease()
        again = oka.taken()
        oka.report(again, oka.started(), oka.ended(**SPENT))
    plane.until(lambda: [each.id for each in inbox(plane, kind="race")] == [item])


def test_only_an_item_of_the_organization_that_needs_no_decision_is_dismissed_and_after_30_days_it_is_gone(
    plane: Plane, oka: DroneStandIn
) -> None:
    order = ended(plane, oka, **UNVERIFIED).order_id
    plane.submit()
    other = Caller(new_id(), "other", "admin", "ann")
    refused = {
        (plane.admin, f"question:{order}:c1"): "E-INBOX-DECIDE",
        (plane.admin, "drone:oka"): "E-INBOX-DECIDE",
        (plane.admin, "memory:none"): "E-INBOX-DECIDE",
        (plane.admin, f"spent:{order}"): "E-INBOX-404",
        (plane.admin, f"reply:{new_id()}"): "E-INBOX-404",
        (plane.admin, "reply:"): "E-ID-AMBIGUOUS",
        (plane.admin, "race:none"): "E-INBOX-404",
        (plane.admin, ""): "E-INBOX-404",
        (other, f"checks:{order}"): "E-INBOX-404",
    }
    found = {
        (caller, item): code_of(lambda caller=caller, item=item: dismissing.dismiss(plane.core, caller, item))
        for caller, item in refused
    }
    assert found == refused
    assert code_of(lambda: dismissing.restore(plane.core, other, f"checks:{order}")) == "E-INBOX-404"
    assert code_of(lambda: dismissing.restore(plane.core, plane.admin, "memory:none")) == "E-INBOX-404"
    assert len(inbox(plane)) == 1
    plane.edit(Order, order, ended_at=plane.core.clock.now() - timedelta(days=31))
    assert inbox(plane) == []


def test_drones_that_need_care_are_there(plane: Plane, oka: DroneStandIn) -> None:
    """One on which an order lacked something is for a day, and one that was stopped on purpose is not."""
    order = ended(plane, oka, status="failed", exit_status="refused", reason="git is missing.", unsuitable=True)
    (item,) = inbox(plane, kind="drone")
    assert "git is missing." in item.text
    plane.edit(Run, order.run_id, ended_at=plane.core.clock.now() - timedelta(days=2))

    fine = plane.drone("ada")
    now = plane.core.clock.now()
    long_ago = now - timedelta(hours=2)
    plane.edit(Drone, fine.id, last_seen_at=long_ago, stopped_at=long_ago)
    well: dict[str, Any] = {"last_seen_at": now, "stopped_at": None, "beat": {}, "over_quota_at": None}
    broken = {"withheld": "the policy file x, line 3, cannot be loaded", "policy_broken": True}
    plane.edit(Drone, oka.id, **{**well, "beat": {"withheld": "not at night"}})
    assert inbox(plane) == []
    for values, text in (
        ({"beat": broken}, "line 3, cannot be loaded"),
        ({"beat": {"open_network": "nsenter is missing", "draining": True}}, "the machine's own network: nsenter"),
        ({"beat": {"full": "80 MB free in /srv"}}, "80 MB free in /srv"),
        ({"over_quota_at": long_ago}, "filled more of the broker's memory"),
        ({"last_seen_at": long_ago}, "offline since"),
    ):
        plane.edit(Drone, oka.id, **{**well, **values})
        (item,) = inbox(plane)
        assert (item.kind, item.title, item.next) == ("drone", "oka", "fleet drone show oka")
        assert text in item.text


def test_it_shows_who_may_act_and_whose_it_is_and_another_organization_nothing(plane: Plane, oka: DroneStandIn) -> None:
    """Mine is what the caller's user submitted, until the wait ends."""
    order, mine = asking(plane, oka), asking(plane, oka)
    plane.edit(Order, mine.order_id, user_id="u1")
    caller = replace(plane.admin, user_id="u1")
    assert [item.order for item in inbox(plane, caller, mine=True)] == [mine.order_id]
    assert count_inbox(plane.core, caller, mine=True).total == 1
    with pytest.raises(Invalid):
        inbox(plane, mine=True)
    oka.report(mine, DecisionStep(about="question", call_id="c1", approved=True, by="clock", answer="b"))
    plane.until(lambda: inbox(plane, caller, mine=True) == [])

    plane.edit(Drone, oka.id, beat={"full": "80 MB free"})
    assert [item.may_answer for item in inbox(plane, replace(plane.admin, role="viewer"))] == [False, False]
    other = Caller(new_id(), "other", "admin", "ann")
    assert inbox(plane, other) == inbox(plane, other, everywhere=True) == []
    (item,) = inbox(plane, replace(other, everywhere=True), everywhere=True, kind="question")
    assert (item.organization, item.next) == ("default", f"fleet answer {order.order_id} --org default")


def test_a_task_that_is_back_with_the_user_waits_and_one_at_work_does_not(sqlite_url: str, tmp_path: Path) -> None:
    workshop = Workshop.create(sqlite_url, tmp_path)
    failed = workshop.at("failed/user")
    workshop.at("in_progress/lead")
    (item,) = list_inbox(workshop.core, workshop.caller, kind="task")
    assert (item.task, item.next, "failed" in item.text) == (failed, f"fleet task retry {failed}", True)
    assert count_inbox(workshop.core, workshop.caller).kinds["task"] == 1
    workshop.core.database.dispose()
