"""Trajectories of orders, from stored steps, on each kind of database."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.runs import Step
from control_plane.operations.orders.trajectories import trajectory_of
from shared.errors import NotFound
from shared.events import AssistantStep, Body, Prepared, RunEnded, ToolResultStep, Usage, UserStep
from shared.messages import ToolCall
from tests.support.made import make_drone, make_project, start_run, submit

LIST = ToolCall(id="c1", name="shell", arguments='{"command": "ls"}')
STEPS: tuple[Body, ...] = (
    Prepared(base_commit="a" * 40),
    UserStep(text="mend it", source="prompt"),
    AssistantStep(text="I look.", tool_calls=(LIST,), usage=Usage(cost_usd=None)),
    ToolResultStep(call_id="c1", output="a\n(return code 0)", return_code=0),
    RunEnded(status="success", exit_status="stopped", reason="Done.", response="All is well."),
)


@pytest.fixture
def order_id(core: Core, admin: Caller) -> str:
    make_project(core, admin)
    make_drone(core, admin)
    return submit(core, admin).id


def add_steps(core: Core, order_id: str, run_id: str, *bodies: Body) -> None:
    """Steps as the collector would store them; the last ones first, as they may come from a database."""
    now = core.clock.now()
    with core.database.write() as db:
        organization_id = db.get_one(Order, order_id).organization_id
        for number, body in reversed(list(enumerate(bodies, start=1))):
            values: dict[str, Any] = {"seq": number, "run_seq": number, "at": now, "drone_at": now}
            stored = {"kind": body.kind, "body": body.model_dump(mode="json"), **values}
            db.add(Step(organization_id=organization_id, order_id=order_id, run_id=run_id, **stored))


def test_a_trajectory_is_made_of_the_steps_in_their_order(core: Core, admin: Caller, order_id: str) -> None:
    run_id = start_run(core, order_id)
    add_steps(core, order_id, run_id, *STEPS)

    document = trajectory_of(core, admin, order_id)

    assert [message["role"] for message in document["messages"]] == ["user", "assistant", "tool", "exit"]
    assert (document["info"]["submission"], document["info"]["model_stats"]["api_calls"]) == ("All is well.", 1)
    told = document["info"]["dronefleet"]
    assert (told["order"], told["run"], told["exit_status"]) == (order_id, run_id, "stopped")
    assert document == trajectory_of(core, admin, order_id, run_id)


def test_a_run_at_work_has_a_trajectory_so_far(core: Core, admin: Caller, order_id: str) -> None:
    add_steps(core, order_id, start_run(core, order_id), *STEPS[:3])

    document = trajectory_of(core, admin, order_id)

    assert [message["role"] for message in document["messages"]] == ["user", "assistant"]
    assert document["info"]["model_stats"] == {"instance_cost": None, "api_calls": 1}


def test_an_order_that_waits_has_none_yet(core: Core, admin: Caller, order_id: str) -> None:
    with pytest.raises(NotFound) as refused:
        trajectory_of(core, admin, order_id)

    assert (refused.value.code, refused.value.next) == ("E-ORDER-TRAJECTORY", f"fleet follow {order_id}")


def test_another_organization_sees_nothing_of_it(core: Core, admin: Caller, order_id: str) -> None:
    run_id = start_run(core, order_id)
    stranger = Caller(**{**vars(admin), "organization_id": "0" * 12})

    with pytest.raises(NotFound) as refused:
        trajectory_of(core, stranger, order_id, run_id)

    assert refused.value.code == "E-ORDER-404"


def test_a_run_of_another_order_is_not_shown(core: Core, admin: Caller, order_id: str) -> None:
    start_run(core, order_id)
    other = submit(core, admin, "something else").id

    with pytest.raises(NotFound) as refused:
        trajectory_of(core, admin, order_id, other)

    assert refused.value.code == "E-ORDER-RUN"
