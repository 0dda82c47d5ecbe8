"""Reading orders: documents, steps, patches and logs."""

from __future__ import annotations

import io
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run, Step
from control_plane.operations import organizations
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading
from control_plane.operations.orders.trajectories import trajectory_of
from control_plane.operations.runs.blobs import put_blob
from control_plane.orders.assignment import place_and_dispatch
from control_plane.orders.ending import Ending, finish
from shared.blobs import digest
from shared.errors import Invalid, NotFound
from shared.events import (
    MAX_COUNT,
    MAX_DOLLARS,
    AssistantStep,
    Body,
    Prepared,
    RunEnded,
    ToolResultStep,
    Usage,
    UserStep,
)
from shared.messages import ToolCall
from shared.outcome import ExitStatus
from shared.reasons import RunEnd
from shared.states import OrderStatus
from tests.support.made import make_drone, make_project, start_run, submit
from tests.support.refusals import code_of
from tests.support.spending import reserve

PATCH = "diff --git a/x b/x\n+ü\n".encode()


@pytest.fixture
def order_id(core: Core, admin: Caller) -> str:
    """An order on drone anna, of project web."""
    make_project(core, admin)
    make_drone(core, admin)
    return submit(core, admin).id


def add_step(core: Core, order_id: str, run_id: str, number: int, **body: Any) -> None:
    """A step as the collector would store it."""
    with core.database.write() as db:
        organization_id = db.get_one(Order, order_id).organization_id
        now = core.clock.now()
        numbers = {"order_id": order_id, "run_id": run_id, "seq": number, "run_seq": number, "at": now, "drone_at": now}
        db.add(Step(organization_id=organization_id, kind=body["kind"], body=body, **numbers))


def set_order(core: Core, order_id: str, **values: Any) -> None:
    with core.database.write() as db:
        for name, value in values.items():
            setattr(db.get_one(Order, order_id), name, value)


def store(core: Core, run_id: str, content: bytes) -> None:
    """Store a file of the run, as its drone does."""
    with core.database.read() as db:
        drone = db.get_one(Drone, db.get_one(Dispatch, run_id).drone_id)
    identity = AuthenticatedDrone(drone.id, drone.organization_id, drone.name)
    put_blob(core, identity, run_id, digest(content), io.BytesIO(content))


def deliver(core: Core, order_id: str, run_id: str, patch: bytes) -> None:
    """Let the run have left this patch."""
    sha = digest(patch) if patch else None
    if sha:
        store(core, run_id, patch)
    set_order(core, order_id, result_run_id=run_id, patch_sha256=sha, patch_bytes=len(patch))


@pytest.mark.dialects
def test_steps_are_shown_in_order_with_the_fields_of_their_kind(core: Core, admin: Caller, order_id: str) -> None:
    """A step cannot pretend to be another."""
    run_id = start_run(core, order_id)
    add_step(core, order_id, run_id, 2, kind="tool_result", call_id="c1", output="ok", return_code=0, is_error=False)
    add_step(core, order_id, run_id, 1, kind="tool_call", call_id="c1", tool="shell", arguments={"command": "ls"})
    add_step(core, order_id, run_id, 3, kind="comment", text="x", seq=99, run="other", at="never", late=True)
    first, second, third = (step.model_dump() for step in reading.show_order(core, admin, order_id).steps)
    assert (first["seq"], first["kind"], first["run"], first["tool"]) == (1, "tool_call", run_id, "shell")
    assert (first["call_id"], first["arguments"]) == ("c1", {"command": "ls"})
    assert (second["output"], second["return_code"], second["is_error"]) == ("ok", 0, False)
    assert (third["seq"], third["run"], third["late"], third["at"]) == (3, run_id, False, core.clock.now())


def test_steps_can_be_had_from_where_one_left_off(core: Core, admin: Caller, order_id: str) -> None:
    run_id = start_run(core, order_id)
    for seq in range(1, 6):
        add_step(core, order_id, run_id, seq, kind="comment", text=str(seq))
    assert [step.seq for step in reading.steps_after(core, admin, order_id, 3)] == [4, 5]
    assert [step.seq for step in reading.steps_after(core, admin, order_id, 0, 2)] == [1, 2]
    assert reading.steps_after(core, admin, order_id, 5) == []


def test_the_figures_of_an_order_are_the_sum_over_its_runs(core: Core, admin: Caller, order_id: str) -> None:
    tokens = {"input_tokens": 100, "output_tokens": 10, "thinking_tokens": 5, "cached_tokens": 80}
    figures = {"tool_calls": 2, **tokens, "duration_ms": 36_000}
    start_run(core, order_id, cost_usd=0.25, **figures)
    send_again(core, admin, order_id, cost_usd=0.5, **figures)
    order = reading.show_order(core, admin, order_id)
    runs = [(run.attempt, run.drone, run.status) for run in order.runs]
    assert runs == [(1, "anna", "lost"), (2, "berta", "running")]
    stats = order.stats
    assert (stats.tool_calls, stats.input_tokens, stats.output_tokens, stats.thinking_tokens) == (4, 200, 20, 10)
    assert stats.cached_tokens == 160
    assert (stats.cost_usd, stats.duration_ms, stats.duration_label) == (0.75, 72_000, "1 min 12 s")


@pytest.mark.dialects
def test_what_a_lost_run_may_have_spent_counts_in_every_figure_until_its_drone_reports(
    core: Core, admin: Caller, order_id: str
) -> None:
    lost = start_run(core, order_id, cost_usd=0.25)
    reserve(core, lost, 0.75)
    send_again(core, admin, order_id, cost_usd=1.0)
    assert costs_everywhere(core, admin, order_id) == ([0.75, 1.0], 1.75, 1.75)
    with core.database.write() as db:
        run = db.get_one(Run, lost)
        run.cost_usd, run.assumed_usd = 0.375, 0.0
    assert costs_everywhere(core, admin, order_id) == ([0.375, 1.0], 1.375, 1.375)

    # As much as a drone can report.
    with core.database.write() as db:
        for run in db.scalars(select(Run)):
            run.cost_usd, run.input_tokens, run.duration_ms = MAX_DOLLARS, MAX_COUNT, MAX_COUNT
    stats = reading.show_order(core, admin, order_id).stats
    assert (stats.input_tokens, stats.duration_ms, stats.cost_usd) == (MAX_COUNT, MAX_COUNT, MAX_DOLLARS)


def costs_everywhere(core: Core, admin: Caller, order_id: str) -> tuple[list[float | None], float | None, float | None]:
    """The costs of the order's runs, of the order, and of its organization, which has no other."""
    order = reading.show_order(core, admin, order_id)
    everything = organizations.show(core, admin, "default").totals.cost_usd
    return [run.cost_usd for run in order.runs], order.stats.cost_usd, everything


def send_again(core: Core, admin: Caller, order_id: str, **figures: Any) -> None:
    """The run is lost with its drone, and a second one begins on another."""
    managing.remove_drone(core, admin, "anna")
    make_drone(core, admin, "berta")
    with core.database.write() as db:
        place_and_dispatch(db, core, db.get_one(Order, order_id))
    start_run(core, order_id, attempt=2, **figures)


def test_one_unknown_price_makes_the_cost_unknown_and_no_run_costs_nothing(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin, concurrency=2)
    priced, waiting = submit(core, admin), submit(core, admin)
    run_id = start_run(core, priced.id)
    with core.database.write() as db:
        db.get_one(Run, run_id).cost_usd, db.get_one(Run, run_id).assumed_usd = None, 0.5
    assert [run.cost_usd for run in reading.show_order(core, admin, priced.id).runs] == [None]
    assert reading.show_order(core, admin, priced.id).stats.cost_usd is None
    assert reading.show_order(core, admin, waiting.id).stats.cost_usd == 0


# --- patch and log ----------------------------------------------------------------------


def test_a_patch_is_shown_as_text_up_to_a_megabyte_and_given_whole(core: Core, admin: Caller, order_id: str) -> None:
    assert reading.show_order(core, admin, order_id).patch is None
    with pytest.raises(NotFound) as refusal:
        reading.patch_of(core, admin, order_id)
    assert refusal.value.next == f"fleet follow {order_id}"

    run_id = start_run(core, order_id)
    for patch, shown in ((PATCH, PATCH.decode()), (b"+" * 1_000_001, None), (b"", "")):
        deliver(core, order_id, run_id, patch)
        assert reading.show_order(core, admin, order_id).patch == shown
        assert reading.patch_of(core, admin, order_id) == patch

    deliver(core, order_id, run_id, PATCH)
    core.blobs.path(digest(PATCH)).unlink()
    assert reading.show_order(core, admin, order_id).patch is None
    with pytest.raises(NotFound):
        reading.patch_of(core, admin, order_id)


def test_the_log_of_a_tool_result_is_the_whole_output(core: Core, admin: Caller, order_id: str) -> None:
    run_id = start_run(core, order_id)
    store(core, run_id, PATCH)
    add_step(core, order_id, run_id, 1, kind="tool_result", call_id="c", output="…", log_sha256=digest(PATCH))
    add_step(core, order_id, run_id, 2, kind="tool_result", call_id="d", output="all of it")
    add_step(core, order_id, run_id, 3, kind="comment", text="x")
    assert [reading.log_of(core, admin, order_id, seq) for seq in (1, 2)] == [PATCH, b"all of it"]
    for seq in (3, 7):
        with pytest.raises(NotFound):
            reading.log_of(core, admin, order_id, seq)


# --- lists ----------------------------------------------------------------------------------


def test_orders_are_listed_newest_first_and_narrowed_by_status_project_and_drone(
    core: Core, admin: Caller, order_id: str
) -> None:
    make_project(core, admin, slug="shop")
    other = submit(core, admin, project="shop", labels={"gpu": "yes"}).id
    found: list[tuple[dict[str, Any], list[str]]] = [
        ({}, [other, order_id]),
        ({"limit": 1}, [other]),
        ({"status": "queued"}, [other]),
        ({"project": "shop"}, [other]),
        ({"drone": "anna"}, [order_id]),
        ({"project": "shop", "drone": "anna"}, []),
    ]
    assert [(given, ids(core, admin, **given)) for given, _ in found] == found
    with pytest.raises(Invalid):
        ids(core, admin, status="done")
    for unknown in ({"project": "nothing"}, {"drone": "nobody"}):
        with pytest.raises(NotFound):
            ids(core, admin, **unknown)

    with core.database.write() as db:
        finish(db, core, db.get_one(Order, order_id), OrderStatus.FAILED, Ending(ExitStatus.REFUSED, RunEnd()))
    managing.remove_drone(core, admin, "anna")
    assert ids(core, admin, drone="anna") == [order_id]


def ids(core: Core, admin: Caller, **filters: Any) -> list[str]:
    return [order.id for order in reading.list_orders(core, admin, **filters)]


def test_the_summary_is_the_document_without_what_takes_more_queries(core: Core, admin: Caller, order_id: str) -> None:
    whole = reading.show_order(core, admin, order_id).model_dump()
    assert reading.order_summary(core, admin, order_id).model_dump() == {
        key: value
        for key, value in whole.items()
        if key not in {"limits", "patch", "plan", "removed", "runs", "steps", "todo", "unheard", "unsettled"}
    }


@pytest.mark.dialects
def test_what_a_drone_says_with_odd_characters_is_stored_on_both_databases(
    core: Core, admin: Caller, order_id: str
) -> None:
    run_id = start_run(core, order_id, doing="a\0b", reason="half \ud83d pair")
    add_step(core, order_id, run_id, 1, kind="comment", text="a\0b \ud83d")
    with core.database.read() as db:
        run = db.get_one(Run, run_id)
        assert (run.doing, run.reason) == ("a\ufffdb", "half \ufffd pair")


# --- trajectories ---------------------------------------------------------------------------

LIST = ToolCall(id="c1", name="shell", arguments='{"command": "ls"}')
STEPS: tuple[Body, ...] = (
    Prepared(base_commit="a" * 40),
    UserStep(text="mend it", source="prompt"),
    AssistantStep(text="I look.", tool_calls=(LIST,), usage=Usage(cost_usd=None)),
    ToolResultStep(call_id="c1", output="a\n(return code 0)", return_code=0),
    RunEnded(status="success", exit_status="stopped", reason="Done.", response="All is well."),
)


def add_steps(core: Core, order_id: str, run_id: str, first: int, last: int) -> None:
    """Some of STEPS; the last ones first, as they may come from a database."""
    for number in range(last, first - 1, -1):
        add_step(core, order_id, run_id, number, **STEPS[number - 1].model_dump(mode="json"))


def test_a_run_at_work_has_a_trajectory_so_far(core: Core, admin: Caller, order_id: str) -> None:
    """In the order of its steps, and at its end a whole one."""
    with pytest.raises(NotFound) as refused:
        trajectory_of(core, admin, order_id)
    assert (refused.value.code, refused.value.next) == ("E-ORDER-TRAJECTORY", f"fleet follow {order_id}")

    run_id = start_run(core, order_id)
    add_steps(core, order_id, run_id, 1, 3)
    document = trajectory_of(core, admin, order_id)
    assert [message["role"] for message in document["messages"]] == ["user", "assistant"]
    assert document["info"]["model_stats"] == {"instance_cost": None, "api_calls": 1}

    add_steps(core, order_id, run_id, 4, 5)
    document = trajectory_of(core, admin, order_id)
    assert [message["role"] for message in document["messages"]] == ["user", "assistant", "tool", "exit"]
    assert (document["info"]["submission"], document["info"]["model_stats"]["api_calls"]) == ("All is well.", 1)
    told = document["info"]["dronefleet"]
    assert (told["order"], told["run"], told["exit_status"]) == (order_id, run_id, "stopped")
    assert document == trajectory_of(core, admin, order_id, run_id)

    other = submit(core, admin, "something else").id
    assert code_of(lambda: trajectory_of(core, admin, order_id, other)) == "E-ORDER-RUN"
