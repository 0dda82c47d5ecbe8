"""The plan of an order through its operations: edited, decided once, carried to another run, and reported on."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane.contract.declarations import orders, plans
from control_plane.contract.declarations.inbox import LIST, InboxFilter
from control_plane.contract.declarations.plans import ApprovePlanRequest, EditPlanRequest, SendBackPlanRequest
from control_plane.contract.declarations.steering import APPROVE, ApproveRequest
from control_plane.db.drones import InboxMessage
from control_plane.db.orders import Dispatch
from control_plane.db.waits import Wait
from control_plane.supervisor.work_orders import work_order
from shared.control import Decide
from shared.events import CheckpointStep, PlanStep, PointReportStep, ResumedStep, UserStep
from shared.plans import AgentPlan, PlanPoint, PlanProgress, PointReport
from shared.states import OrderStatus
from tests.support.fleet import Api, PlayedDrone, PlayedRun
from tests.support.refusals import code_of

PLAN = AgentPlan(
    title="Notes",
    summary="There are none.",
    points=(
        PlanPoint(text="Write one.txt", files=("one.txt",), verify="cat one.txt"),
        PlanPoint(text="Write two.txt"),
        PlanPoint(text="Write three.txt"),
    ),
)
EDITED = "# Notes, shorter\n\n1. [x] Write first.txt\n2. [ ] Write two.txt\n"


@pytest.fixture
def mila(api: Api) -> PlayedDrone:
    api.add_work()
    return api.add_drone("mila")


def presented(api: Api, mila: PlayedDrone) -> PlayedRun:
    """A run whose plan waits; its steps end as those of a drone: with a checkpoint before the wait."""
    run = mila.take(api.submit(plan_first=True))
    run.step(UserStep(text="Notes", source="prompt"))
    run.step(PlanStep(plan=PLAN))
    run.step(CheckpointStep())
    run.waits_with(PLAN)
    return run


def continued(mila: PlayedDrone, before: PlayedRun, seq: int = 4) -> PlayedRun:
    """The next run of the order, which continues from the checkpoint of an earlier one."""
    run = mila.take({"id": before.order_id})
    run.step(ResumedStep(run_id=before.id, seq=seq))
    return run


def edit(api: Api, run: PlayedRun, text: str = EDITED, **more: Any) -> dict[str, Any]:
    return dict(api.client.call(plans.EDIT, EditPlanRequest(text=text, **more), order_id=run.order_id))


def approve(api: Api, run: PlayedRun, **more: Any) -> dict[str, Any]:
    return dict(api.client.call(plans.APPROVE, ApprovePlanRequest(**more), order_id=run.order_id))


def send_back(api: Api, run: PlayedRun, **more: Any) -> dict[str, Any]:
    request = SendBackPlanRequest(text="Shorter.", **more)
    return dict(api.client.call(plans.SEND_BACK, request, order_id=run.order_id))


def shown(api: Api, run: PlayedRun) -> dict[str, Any]:
    return dict(api.client.call(plans.SHOW, order_id=run.order_id))


def told(api: Api, run: PlayedRun) -> list[Decide]:
    """What was sent to the drone about this run's plan."""
    with api.core.database.read() as db:
        rows = db.query(InboxMessage).filter(InboxMessage.run_id == run.id).order_by(InboxMessage.created_at)
        return [Decide.model_validate(row.body) for row in rows if row.body["kind"] == "decide"]


def chosen(sent: Decide) -> dict[int, str]:
    """The points that the drone was told to do."""
    assert sent.plan is not None
    return {number: point.text for number, point in sent.plan.approved.items()}


def test_a_plan_waits_with_all_that_a_user_needs(api: Api, mila: PlayedDrone) -> None:
    run = presented(api, mila)
    order = api.client.call(orders.SHOW, order_id=run.order_id)
    wait = order["waiting_for"]
    assert (order["status"], wait["kind"], wait["why"]) == ("awaiting_approval", "plan", "Notes")
    assert wait["choices"] == ["approve", "send back"]
    assert wait["plan"] == order["plan"] == shown(api, run)
    assert (order["plan"]["state"], order["plan"]["round"], len(order["plan"]["points"])) == ("presented", 1, 3)
    assert f"fleet plan show {run.order_id}" in order["reason"]
    (item,) = api.client.call(LIST, InboxFilter(kind="plan"))
    assert (item["order"], item["text"], item["next"]) == (run.order_id, "Notes", f"fleet plan show {run.order_id}")
    with api.core.database.read() as db:
        wait = db.query(Wait).one()
    assert wait.text.startswith("Approve the plan?\n\n# Notes\n\nThere are none.\n\n1. [x] Write one.txt")
    by_call = ApproveRequest()
    assert code_of(lambda: api.client.call(APPROVE, by_call, order_id=run.order_id)) == "E-APPROVAL-PLAN"


def test_an_edit_keeps_the_order_waiting_unless_it_was_not_seen_and_given_points_replace_its_ticks(
    api: Api, mila: PlayedDrone
) -> None:
    run = presented(api, mila)
    edited = edit(api, run, revision=0, round=1)
    assert (edited["text"], edited["revision"]) == (EDITED, 1)
    for act in (edit, approve, send_back):
        assert code_of(lambda act=act: act(api, run, revision=0)) == "E-PLAN-REVISION"
    assert code_of(lambda: approve(api, run, round=2)) == "E-PLAN-REVISION"
    many, long = "# T\n\n" + "1. [x] x\n" * 51, f"# {'t' * 201}\n\n1. x"
    for text in ("Only words.", "1. [x] No title", "# Title\n\n1. [x]", many, long):
        assert code_of(lambda text=text: edit(api, run, text)) == "E-PLAN-TEXT", text
    for points in ([], [0], [3], [1, 99]):
        assert code_of(lambda points=points: approve(api, run, points=points)) == "E-PLAN-POINTS"
    assert (shown(api, run), told(api, run)) == (edited, [])

    edit(api, run, "# Notes\n\n1. [ ] Nothing\n")
    assert code_of(lambda: approve(api, run)) == "E-PLAN-POINTS"
    edit(api, run, "# Notes\n\n1. [ ] One\n2. [x] Two\n3. [ ] Three\n")
    assert told(api, run) == []
    approve(api, run, points=[3, 1])
    assert [chosen(sent) for sent in told(api, run)] == [{1: "One", 3: "Three"}]


def test_the_first_decision_counts_and_after_the_end_none_can_be_made(api: Api, mila: PlayedDrone) -> None:
    run = presented(api, mila)
    edit(api, run)
    approve(api, run, comment="Be brief.")
    (sent,) = told(api, run)
    assert (sent.call_id, sent.approved, sent.comment) == ("plan-1", True, "Be brief.")
    assert chosen(sent) == {1: "Write first.txt"}
    for act in (approve, send_back, edit):
        assert code_of(lambda act=act: act(api, run)) == "E-PLAN-DECIDED"
    run.decides_plan(PLAN.approving([1, 3]), who="kim")
    run.step(PointReportStep(report=PointReport(point=1, result="skipped", text="Not needed")))
    run.step(PointReportStep(report=PointReport(point=1, result="done", commit="1a2b3c4d5e6f7a8b")))
    run.ends()
    for act in (approve, send_back, edit):
        assert code_of(lambda act=act: act(api, run)) == "E-PLAN-NONE"
    plan = shown(api, run)
    assert [point["report"] for point in plan["points"]] == ["done in 1a2b3c4d5e6f", "", "not reported"]
    assert (plan["state"], plan["user"]) == ("approved", "kim")


def test_a_plan_that_is_sent_back_is_made_anew_and_an_order_without_one_has_none(api: Api, mila: PlayedDrone) -> None:
    run = presented(api, mila)
    send_back(api, run)
    assert [sent.comment for sent in told(api, run)] == ["Shorter."]
    run.decides_plan(None, comment="Shorter.")
    assert (code_of(lambda: approve(api, run)), shown(api, run)["state"]) == ("E-PLAN-DECIDED", "planning")
    plain = mila.take(api.submit())
    for act in (approve, send_back, edit, shown):
        assert code_of(lambda act=act: act(api, plain)) == "E-PLAN-404"
    assert api.client.call(orders.SHOW, order_id=plain.order_id)["plan"] is None
    assert code_of(lambda: api.submit(plan_first=True, mode="plan")) == "E-ORDER-PLAN"


def test_edits_and_the_decision_hold_for_another_run_with_the_same_plan_alone(api: Api, mila: PlayedDrone) -> None:
    before = presented(api, mila)
    edit(api, before)
    other = continued(mila, before, seq=2)
    other.presents(AgentPlan(title="Other", points=(PlanPoint(text="x"),)))
    assert (shown(api, other)["title"], shown(api, other)["revision"]) == ("Other", 0)
    first = presented(api, mila)
    edit(api, first)
    second = continued(mila, first)
    assert (shown(api, second)["text"], shown(api, second)["state"]) == (EDITED, "presented")
    second.waits_with(PLAN)
    assert (shown(api, second)["text"], shown(api, second)["revision"]) == (EDITED, 1)
    approve(api, second, revision=1)
    # The run was lost after the decision, and nobody is asked twice.
    third = continued(mila, first)
    third.waits_with(PLAN)
    (sent,) = told(api, third)
    assert (sent.approved, sent.plan and sent.plan.title) == (True, "Notes, shorter")
    assert code_of(lambda: approve(api, third)) == "E-PLAN-DECIDED"
    # A retry begins with another plan, for which no earlier decision counts.
    third.decides_plan(PLAN)
    third.ends(OrderStatus.FAILED)
    api.client.call(orders.RETRY, order_id=first.order_id)
    assert (shown(api, first)["state"], shown(api, first)["points"]) == ("planning", [])
    again = mila.take({"id": first.order_id})
    again.presents(PLAN)
    assert (told(api, again), shown(api, again)["state"]) == ([], "presented")


def test_the_next_run_is_told_the_plan_as_of_its_checkpoint(api: Api, mila: PlayedDrone) -> None:
    first = presented(api, mila)
    first.decides_plan(PLAN, who="kim")
    first.step(PointReportStep(report=PointReport(point=1, result="done")))
    first.step(CheckpointStep())
    first.step(PointReportStep(report=PointReport(point=2, result="done")))
    second = mila.take({"id": first.order_id})
    with api.core.database.write() as db:
        order = work_order(db, api.core, db.get_one(Dispatch, second.id))
    reports = (PointReport(point=1, result="done"),)
    assert order.plan == PlanProgress(state="approved", rounds=1, presented=PLAN, plan=PLAN, by="kim", reports=reports)
