"""Reading orders: documents, steps, patches and logs, on each kind of database."""

from __future__ import annotations

import io
from typing import Any

import pytest

from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run, Step
from control_plane.operations import organizations
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading
from control_plane.operations.runs.blobs import put_blob
from control_plane.orders.assignment import place_and_dispatch
from control_plane.orders.ending import Ending, finish
from shared.blobs import digest
from shared.errors import Invalid, NotFound
from shared.events import MAX_COUNT, MAX_DOLLARS
from shared.outcome import ExitStatus
from shared.reasons import RunEnd
from shared.states import OrderStatus
from tests.support.made import make_drone, make_project, start_run, submit
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


def delivered(core: Core, order_id: str, patch: bytes) -> str:
    """A run of the order that left this patch; returns the run's id."""
    run_id = start_run(core, order_id)
    sha = digest(patch) if patch else None
    if sha:
        store(core, run_id, patch)
    set_order(core, order_id, result_run_id=run_id, patch_sha256=sha, patch_bytes=len(patch))
    return run_id


def test_steps_are_shown_in_order_with_the_fields_of_their_kind(core: Core, admin: Caller, order_id: str) -> None:
    run_id = start_run(core, order_id)
    add_step(core, order_id, run_id, 2, kind="tool_result", call_id="c1", output="ok", return_code=0, is_error=False)
    add_step(core, order_id, run_id, 1, kind="tool_call", call_id="c1", tool="shell", arguments={"command": "ls"})
    first, second = (step.model_dump() for step in reading.show_order(core, admin, order_id).steps)
    assert (first["seq"], first["kind"], first["run"], first["tool"]) == (1, "tool_call", run_id, "shell")
    assert (first["call_id"], first["arguments"]) == ("c1", {"command": "ls"})
    assert (second["output"], second["return_code"], second["is_error"]) == ("ok", 0, False)


def test_a_step_cannot_pretend_to_be_another(core: Core, admin: Caller, order_id: str) -> None:
    run_id = start_run(core, order_id)
    add_step(core, order_id, run_id, 1, kind="comment", text="x", seq=99, run="other", at="never", late=True)
    step = reading.show_order(core, admin, order_id).steps[0].model_dump()
    assert (step["seq"], step["run"], step["late"], step["at"]) == (1, run_id, False, core.clock.now())


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
    stats = reading.show_order(core, admin, order_id).stats
    assert (stats.tool_calls, stats.input_tokens, stats.output_tokens, stats.thinking_tokens) == (4, 200, 20, 10)
    assert stats.cached_tokens == 160
    assert (stats.cost_usd, stats.duration_ms, stats.duration_label) == (0.75, 72_000, "1 min 12 s")


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


def costs_everywhere(core: Core, admin: Caller, order_id: str) -> tuple[list[float | None], float | None, float | None]:
    """The costs of the order's runs, of the order, and of its organization, which has no other."""
    order = reading.show_order(core, admin, order_id)
    everything = organizations.show(core, admin, "default").totals.cost_usd
    return [run.cost_usd for run in order.runs], order.stats.cost_usd, everything


def test_the_figures_of_runs_that_reported_the_most_can_be_shown(core: Core, admin: Caller, order_id: str) -> None:
    figures = dict.fromkeys(
        ("tool_calls", "input_tokens", "output_tokens", "thinking_tokens", "cached_tokens", "duration_ms"), MAX_COUNT
    )
    start_run(core, order_id, cost_usd=MAX_DOLLARS, **figures)
    send_again(core, admin, order_id, cost_usd=MAX_DOLLARS, **figures)
    stats = reading.show_order(core, admin, order_id).stats
    assert (stats.input_tokens, stats.duration_ms, stats.cost_usd) == (MAX_COUNT, MAX_COUNT, MAX_DOLLARS)


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


def test_runs_are_shown_in_the_order_of_their_attempts_with_their_drones(
    core: Core, admin: Caller, order_id: str
) -> None:
    start_run(core, order_id)
    send_again(core, admin, order_id)
    runs = reading.show_order(core, admin, order_id).runs
    assert [(run.attempt, run.drone, run.status) for run in runs] == [(1, "anna", "lost"), (2, "berta", "running")]


# --- patch and log ----------------------------------------------------------------------


def test_before_a_result_there_is_no_patch_and_the_reason_is_told(core: Core, admin: Caller, order_id: str) -> None:
    assert reading.show_order(core, admin, order_id).patch is None
    with pytest.raises(NotFound, match="has no patch yet: it is assigned") as refusal:
        reading.patch_of(core, admin, order_id)
    assert refusal.value.next == f"fleet follow {order_id}"


def test_a_patch_is_shown_as_text_and_given_as_it_is(core: Core, admin: Caller, order_id: str) -> None:
    delivered(core, order_id, PATCH)
    assert reading.show_order(core, admin, order_id).patch == PATCH.decode()
    assert reading.patch_of(core, admin, order_id) == PATCH


def test_an_order_that_changed_nothing_has_an_empty_patch(core: Core, admin: Caller, order_id: str) -> None:
    delivered(core, order_id, b"")
    assert reading.show_order(core, admin, order_id).patch == ""
    assert reading.patch_of(core, admin, order_id) == b""


def test_a_patch_over_a_megabyte_is_null_in_the_document_and_whole_on_its_own(
    core: Core, admin: Caller, order_id: str
) -> None:
    patch = b"+" * 1_000_001
    delivered(core, order_id, patch)
    assert reading.show_order(core, admin, order_id).patch is None
    assert reading.patch_of(core, admin, order_id) == patch


def test_a_patch_whose_file_was_lost_hides_nothing_else(core: Core, admin: Caller, order_id: str) -> None:
    delivered(core, order_id, PATCH)
    core.blobs.path(digest(PATCH)).unlink()
    assert reading.show_order(core, admin, order_id).patch is None
    with pytest.raises(NotFound):
        reading.patch_of(core, admin, order_id)


def test_the_log_of_a_tool_result_is_the_whole_output(core: Core, admin: Caller, order_id: str) -> None:
    run_id = start_run(core, order_id)
    store(core, run_id, PATCH)
    add_step(core, order_id, run_id, 1, kind="tool_result", call_id="c", output="…", log_sha256=digest(PATCH))
    add_step(core, order_id, run_id, 2, kind="tool_result", call_id="d", output="all of it")
    assert reading.log_of(core, admin, order_id, 1) == PATCH
    assert reading.log_of(core, admin, order_id, 2) == b"all of it"


def test_a_step_without_a_log_says_so(core: Core, admin: Caller, order_id: str) -> None:
    add_step(core, order_id, start_run(core, order_id), 1, kind="comment", text="x")
    with pytest.raises(NotFound, match="is not a tool result"):
        reading.log_of(core, admin, order_id, 1)
    with pytest.raises(NotFound, match="does not exist"):
        reading.log_of(core, admin, order_id, 7)


# --- lists ----------------------------------------------------------------------------------


def test_orders_are_listed_newest_first_and_as_many_as_asked_for(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    first, second, third = (submit(core, admin, prompt=str(number)).id for number in range(3))
    assert [order.id for order in reading.list_orders(core, admin)] == [third, second, first]
    assert [order.id for order in reading.list_orders(core, admin, limit=1)] == [third]


def test_a_list_is_narrowed_by_status_project_and_drone(core: Core, admin: Caller, order_id: str) -> None:
    make_project(core, admin, slug="shop")
    other = submit(core, admin, project="shop", labels={"gpu": "yes"}).id
    assert ids(core, admin, status="queued") == [other]
    assert ids(core, admin, project="shop") == [other]
    assert ids(core, admin, drone="anna") == [order_id]
    assert ids(core, admin, project="shop", drone="anna") == []


def ids(core: Core, admin: Caller, **filters: Any) -> list[str]:
    return [order.id for order in reading.list_orders(core, admin, **filters)]


def test_what_a_removed_drone_did_can_still_be_asked_for(core: Core, admin: Caller, order_id: str) -> None:
    with core.database.write() as db:
        finish(db, core, db.get_one(Order, order_id), OrderStatus.FAILED, Ending(ExitStatus.REFUSED, RunEnd()))
    managing.remove_drone(core, admin, "anna")
    assert ids(core, admin, drone="anna") == [order_id]


def test_an_unknown_filter_is_refused_rather_than_answered_with_nothing(core: Core, admin: Caller) -> None:
    with pytest.raises(Invalid, match="unknown order status 'done'"):
        reading.list_orders(core, admin, status="done")
    with pytest.raises(NotFound):
        reading.list_orders(core, admin, project="nothing")
    with pytest.raises(NotFound):
        reading.list_orders(core, admin, drone="nobody")


def test_an_order_that_is_not_there_is_not_found_by_any_door(core: Core, admin: Caller) -> None:
    doors = (reading.show_order, reading.order_summary, reading.steps_after, reading.patch_of)
    refusals = [code_of(door, core, admin, "x" * 10_000) for door in doors]
    assert refusals == ["E-ORDER-404"] * 4


def code_of(door: Any, *given: Any) -> str:
    with pytest.raises(NotFound) as refusal:
        door(*given)
    assert len(refusal.value.what) < 120
    return refusal.value.code


def test_another_organization_sees_nothing_of_it(core: Core, admin: Caller, order_id: str) -> None:
    stranger = Caller("000000000000", "other", "admin", "u")
    assert reading.list_orders(core, stranger) == []
    with pytest.raises(NotFound):
        reading.show_order(core, stranger, order_id)


def test_the_summary_is_the_document_without_what_takes_more_queries(core: Core, admin: Caller, order_id: str) -> None:
    whole = reading.show_order(core, admin, order_id).model_dump()
    assert reading.order_summary(core, admin, order_id).model_dump() == {
        key: value
        for key, value in whole.items()
        if key not in {"limits", "patch", "plan", "removed", "runs", "steps", "todo", "unheard", "unsettled"}
    }


def test_what_a_drone_says_with_odd_characters_is_stored_on_both_databases(
    core: Core, admin: Caller, order_id: str
) -> None:
    run_id = start_run(core, order_id, doing="a\0b", reason="half \ud83d pair")
    add_step(core, order_id, run_id, 1, kind="comment", text="a\0b \ud83d")
    with core.database.read() as db:
        run = db.get_one(Run, run_id)
        assert (run.doing, run.reason) == ("a\ufffdb", "half \ufffd pair")
