"""Whatever ends a run, the next one of its order goes on from the newest checkpoint that it can have."""

from __future__ import annotations

import pytest

from control_plane.db.drones import Drone
from control_plane.documents.orders import SayRequest
from control_plane.operations.orders import steering
from control_plane.operations.orders.trajectories import trajectory_of
from control_plane.operations.runs import blobs
from shared.blobs import digest
from shared.errors import NotFound
from shared.events import (
    AssistantStep,
    CompactionStep,
    Delivered,
    ErrorStep,
    Prepared,
    ResumedStep,
    TodoStep,
    UserStep,
)
from shared.reasons import Resumption
from shared.transcripts import problems
from shared.work_order import WorkOrder
from tests.support.going_on import (
    BASE,
    NOTE,
    begin,
    bundle_of,
    checkpoint,
    commit_of,
    give_back,
    go,
    identity,
    seen,
    steps,
    succeed,
    told,
    undone,
    work,
)
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    """A drone of a fleet that runs."""
    made = plane.drone("oka")
    plane.collector(), plane.supervisor()
    return made


def draining(plane: Plane, drone: DroneStandIn) -> DroneStandIn:
    """The drone takes no more work."""
    plane.edit(Drone, drone.id, draining=True)
    return drone


# --- what the next run is given ---------------------------------------------------------------


def test_a_run_goes_on_from_the_last_complete_step_with_all_that_was_said(plane: Plane, oka: DroneStandIn) -> None:
    first = begin(plane, oka)
    work(plane, oka, first, "one", "two")
    oka.report(first, *steps("three")[:1])
    give_back(oka, first)
    second = go(oka)
    assert seen(second) == ["do it", *told("one", "two")]
    assert second.resume
    assert second.resumed is not None
    assert (second.resumed.run_id, second.resumed.commit) == (first.run_id, commit_of("two"))
    assert (second.resumed.base, second.resumed.cut_off, second.resumed.why) == (BASE, True, "drained")
    assert (second.resumed.bundle, second.resumed.bundle_run) == (digest(bundle_of("two")), first.run_id)
    # Limits bind the whole path.
    assert (second.resumed.spent.iterations, second.resumed.spent.cost_usd, second.resumed.by_hand) == (1, 0.5, False)
    assert (second.context[1].role, [each.id for each in second.context[1].tool_calls]) == ("assistant", ["call one"])


@pytest.mark.dialects
def test_a_chain_of_three_runs_is_one_conversation(any_plane: Plane) -> None:
    plane, oka = any_plane, any_plane.drone("oka")
    plane.collector(), plane.supervisor()
    first = begin(plane, oka)
    work(plane, oka, first, "one")
    give_back(oka, first)
    second = go(oka)
    work(plane, oka, second, "two")
    oka.report(second, *steps("lost"))
    oka.restart()
    third = go(oka)
    assert seen(third) == ["do it", *told("one"), NOTE, *told("two")]
    work(plane, oka, third, "three")
    succeed(plane, oka, third)
    plane.submit("next", session=third.session.id)
    after = go(oka)
    assert seen(after) == ["do it", *told("one"), NOTE, *told("two"), NOTE, *told("three"), "All done."]
    assert problems(after.context) == []
    work(plane, oka, after, "four")
    give_back(oka, after)
    assert seen(go(oka)) == [*seen(after), "next", *told("four")]


def test_what_was_compacted_stays_so_for_the_runs_that_go_on(plane: Plane, oka: DroneStandIn) -> None:
    first = begin(plane, oka)
    work(plane, oka, first, "one")
    oka.report(first, CompactionStep(summary="Step one.", kept=0))
    work(plane, oka, first, "two")
    give_back(oka, first)
    second = go(oka)
    summary = "<summary>\nStep one.\n</summary>"
    assert seen(second) == [summary, *told("two")]
    # Counted over the conversation as that run had it: the note, a step's two messages, and the result before them.
    oka.report(second, *steps("three"), CompactionStep(summary="Two steps.", kept=3), checkpoint("three"))
    give_back(oka, second)
    assert seen(go(oka)) == ["<summary>\nTwo steps.\n</summary>", NOTE, *told("three")]


def resumes(plane: Plane, order: WorkOrder) -> Resumption | None:
    """Where the run begins that the order was placed for."""
    placed = plane.facts(order.order_id).placed
    return placed.resumes if placed else None


def test_a_run_that_died_before_its_first_checkpoint_leaves_nothing_to_go_on_from(
    plane: Plane, oka: DroneStandIn
) -> None:
    first = begin(plane, oka)
    oka.report(first, *steps("one"))
    give_back(oka, first)
    second = go(oka)
    assert (second.resume, second.resumed, seen(second)) == (False, None, [])
    plane.until(lambda: resumes(plane, first) == Resumption(why_not="not_stored"))
    plane.until(lambda: undone(plane, first.order_id) == ["do it", "I do one."])


# --- which checkpoint -------------------------------------------------------------------------------


def test_late_checkpoints_are_never_gone_on_from(plane: Plane, oka: DroneStandIn) -> None:
    first = begin(plane, oka)
    work(plane, oka, first, "one")
    give_back(oka, first)
    second = go(oka)
    work(plane, oka, first, "late")
    plane.until(lambda: undone(plane, first.order_id, ["assistant"]) == ["I do late."])
    give_back(oka, second)
    third = go(oka)
    assert third.resumed is not None
    assert (third.resumed.commit, seen(third)) == (commit_of("one"), ["do it", *told("one")])


def test_the_drone_that_ran_it_goes_on_from_its_own_disk(plane: Plane, oka: DroneStandIn) -> None:
    first = begin(plane, oka)
    work(plane, oka, first, "kept on the drone", stored=False)
    plane.drone("a-drone-of-more-room", concurrency=20)
    give_back(oka, first)
    second = go(oka)
    assert second.resumed is not None
    assert (second.resumed.commit, second.resumed.bundle) == (commit_of("kept on the drone"), None)
    placed = plane.facts(first.order_id).placed
    assert placed is not None
    assert (placed.drone, placed.code, placed.resumes and placed.resumes.step) == ("oka", "workspace", 6)


@pytest.mark.parametrize(("stored", "goes_to"), [(False, "oka"), (True, "mila")])
def test_what_one_disk_alone_has_waits_there_for_a_slot_and_what_is_stored_goes_elsewhere(
    plane: Plane, stored: bool, goes_to: str
) -> None:
    oka = plane.drone("oka", concurrency=1)
    plane.collector(), plane.supervisor()
    first = begin(plane, oka)
    work(plane, oka, first, "the work", stored=stored)
    plane.submit("another", drone="oka")
    plane.drone("mila", concurrency=1)
    give_back(oka, first)
    plane.until(lambda: plane.order(first.order_id).generation == 2)
    assert plane.order(first.order_id).drone == goes_to


def test_a_workspace_that_is_as_the_base_can_be_had_anywhere(plane: Plane, oka: DroneStandIn) -> None:
    first = begin(plane, oka)
    oka.report(first, *steps("looked"), checkpoint("", commit="", bundle_sha256=None, changed=False))
    mila = plane.drone("mila")
    draining(plane, oka)
    give_back(oka, first)
    second = go(mila)
    assert (second.resume, seen(second)) == (True, ["do it", *told("looked")])


def test_the_bundle_of_another_run_with_the_same_commit_will_do(plane: Plane, oka: DroneStandIn) -> None:
    first = begin(plane, oka)
    work(plane, oka, first, "one")
    give_back(oka, first)
    second = go(oka)
    oka.report(second, *steps("looked"), checkpoint("one", changed=False, bundle_sha256=None))
    mila = plane.drone("mila")
    draining(plane, oka)
    give_back(oka, second)
    third = go(mila)
    assert third.resumed is not None
    assert (third.resumed.run_id, third.resumed.bundle_run) == (second.run_id, first.run_id)
    assert seen(third) == ["do it", *told("one"), NOTE, *told("looked")]


def could_not(drone: DroneStandIn) -> None:
    """The next run of an order finds its checkpoint gone."""
    drone.renew_lease()
    order = drone.until(drone.take)
    assert order.resumed is not None
    assert drone.claim(order)
    drone.report(order, drone.started(), Prepared(base_commit=BASE))
    drone.report(order, ErrorStep(what="the checkpoint is gone", code="E-CHECKPOINT"))
    ended = drone.ended(status="failed", exit_status="lost", reason="the checkpoint is gone", order_at_fault=False)
    drone.report(order, ended)


def test_a_checkpoint_that_could_not_be_had_is_not_tried_again(plane: Plane, oka: DroneStandIn) -> None:
    """Once a disk turned out not to have one, only those that are stored count."""
    first = begin(plane, oka, max_attempts=9)
    work(plane, oka, first, "stored")
    work(plane, oka, first, "gone", stored=False)
    give_back(oka, first)
    could_not(oka)
    second = go(oka)
    assert seen(second) == ["do it", *told("stored")]
    # A stored bundle that cannot be used is not tried for ever, and after two in a row the order begins anew.
    work(plane, oka, second, "good", "broken")
    give_back(oka, second)
    could_not(oka)
    third = go(oka)
    assert seen(third)[-2:] == told("good")
    work(plane, oka, third, "more", "most")
    give_back(oka, third)
    could_not(oka)
    could_not(oka)
    assert go(oka).resume is False


def test_a_drone_that_cannot_go_on_begins_anew(plane: Plane) -> None:
    old = plane.drone("old")
    old.abilities = ()
    plane.edit(Drone, old.id, beat={})
    plane.collector(), plane.supervisor()
    first = begin(plane, old)
    work(plane, old, first, "one")
    give_back(old, first)
    assert go(old).resume is False
    plane.until(lambda: resumes(plane, first) == Resumption(drone="old", why_not="drone_cannot"))


# --- words ----------------------------------------------------------------------------------------------


def say(plane: Plane, order_id: str, *texts: str) -> None:
    for text in texts:
        steering.say(plane.core, plane.admin, order_id, SayRequest(text=text))


def test_a_run_is_told_only_what_the_path_has_not_heard(plane: Plane, oka: DroneStandIn) -> None:
    first = begin(plane, oka)
    plane.until(lambda: plane.status(first.order_id) == "running")
    say(plane, first.order_id, "heard", "heard in the undone part", "never heard")
    oka.report(first, UserStep(text="heard", source="steer"))
    work(plane, oka, first, "one")
    oka.report(first, UserStep(text="heard in the undone part", source="steer"))
    give_back(oka, first)
    second = go(oka)
    assert [word.text for word in second.said] == ["heard in the undone part", "never heard"]
    assert seen(second) == ["do it", "heard", *told("one")]
    unheard = ["heard in the undone part", "never heard"]
    plane.until(lambda: [word.text for word in plane.order(first.order_id).unheard] == unheard)


# --- what people see ------------------------------------------------------------------------------------


def test_what_was_undone_is_kept_and_marked_and_part_of_no_conversation(plane: Plane, oka: DroneStandIn) -> None:
    first = begin(plane, oka)
    oka.report(first, TodoStep.model_validate({"items": [{"text": "kept", "status": "pending"}]}))
    work(plane, oka, first, "one")
    oka.report(first, TodoStep.model_validate({"items": [{"text": "undone", "status": "pending"}]}))
    oka.report(first, *steps("cut off"))
    give_back(oka, first)
    second = go(oka)
    plane.until(lambda: [item["text"] for item in plane.order(first.order_id).todo] == ["kept"])
    work(plane, oka, second, "two")
    oka.report(second, Delivered())
    succeed(plane, oka, second)
    assert undone(plane, first.order_id) == ["I do cut off."]
    shown = [step.model_dump() for step in plane.order(first.order_id).steps]
    (resumed,) = [step for step in shown if step["kind"] == "resumed"]
    assert (resumed["from_step"], resumed["from_attempt"], resumed["from_drone"]) == (7, 1, "oka")
    document = plane.order(first.order_id)
    assert [run.resumed_from for run in document.runs] == [None, first.run_id]
    # All of it was paid for: four answers of half a dollar.
    assert (document.stats.cost_usd, document.stats.input_tokens) == (2.0, 30)
    trajectory = trajectory_of(plane.core, plane.admin, first.order_id)
    texts = [message["content"] for message in trajectory["messages"]]
    assert texts == ["do it", *told("one"), NOTE, *told("two"), "All done.", "done"]
    assert trajectory["info"]["dronefleet"]["run"] == second.run_id


def test_a_drone_that_speaks_of_another_orders_run_is_not_believed(plane: Plane, oka: DroneStandIn) -> None:
    other = begin(plane, oka)
    work(plane, oka, other, "secret")
    own = begin(plane, oka)
    oka.report(own, ResumedStep(run_id=other.run_id, seq=6), ResumedStep(run_id=own.run_id, seq=2))
    oka.report(own, AssistantStep(text="hello"), oka.ended())
    plane.until(lambda: plane.status(own.order_id) == "succeeded")
    plane.submit("next", session=own.session.id)
    assert seen(go(oka)) == ["do it", "hello"]


# --- the bundle -----------------------------------------------------------------------------------------------


def test_the_drone_that_goes_on_may_read_the_checkpoint_and_nobody_else(plane: Plane, oka: DroneStandIn) -> None:
    first = begin(plane, oka)
    work(plane, oka, first, "one")
    mila, other = plane.drone("mila"), plane.drone("other", labels={"other": "yes"})
    draining(plane, oka), draining(plane, other)
    give_back(oka, first)
    second = go(mila)
    assert second.resumed is not None
    name = str(second.resumed.bundle)
    assert b"".join(blobs.get_blob(plane.core, identity(plane, mila), first.run_id, name).chunks) == bundle_of("one")
    with pytest.raises(NotFound):
        blobs.get_blob(plane.core, identity(plane, other), first.run_id, name)
    # No file holds it in clear.
    files = [path.read_bytes() for path in plane.core.blobs.root.rglob("*") if path.is_file()]
    assert [b"git bundle" in content for content in files] == [False]
