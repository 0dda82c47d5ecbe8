"""Whatever ends a run, its order goes on from the newest checkpoint that it can have, by itself and by hand."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from control_plane.contract.declarations.orders import ResumeRequest, SubmitRequest
from control_plane.contract.declarations.sessions import ForkRequest, SwitchRequest
from control_plane.contract.declarations.steering import SayRequest
from control_plane.contract.documents.orders import OrderSummary
from control_plane.db.drones import Drone
from control_plane.db.orders import Order, Turn
from control_plane.db.projects import Project, Provider
from control_plane.db.runs import Blob
from control_plane.operations import projects, sessions
from control_plane.operations.orders import retrying, steering
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.orders.submitting import _hash
from control_plane.operations.orders.trajectories import trajectory_of
from control_plane.operations.runs import blobs, push_grants
from control_plane.supervisor.cleaning import clean
from shared.blobs import digest
from shared.errors import Conflict, NotFound, Precondition
from shared.events import AssistantStep, CompactionStep, Delivered, ErrorStep, Prepared, ResumedStep, TodoStep, UserStep
from shared.reasons import EarlierOrder, Resumption, RunEnd, RunLoss
from shared.work_order import Resumed, WorkOrder
from tests.support.going_on import (
    BASE,
    NOTE,
    begin,
    bundle_of,
    checkpoint,
    commit_of,
    fail,
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
from tests.support.refusals import code_of
from tests.support.stand_in import DroneStandIn
from tests.support.transcripts import problems


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


def resumed(order: WorkOrder) -> Resumed:
    """Where the run goes on from."""
    return order.resumed


@pytest.mark.dialects
def test_a_chain_of_runs_is_one_conversation_that_goes_on_from_each_last_complete_step(
    plane: Plane, oka: DroneStandIn
) -> None:
    first = begin(plane, oka)
    work(plane, oka, first, "zero", "one")
    oka.report(first, *steps("cut off")[:1])
    give_back(oka, first)
    second = go(oka)
    assert (second.resumed is not None, seen(second)) == (True, ["do it", *told("zero", "one")])
    found = resumed(second)
    assert (found.run_id, found.commit, found.base) == (first.run_id, commit_of("one"), BASE)
    assert (found.cut_off, found.why, found.by_hand) == (True, "drained", False)
    assert (found.bundle, found.bundle_run) == (digest(bundle_of("one")), first.run_id)
    # Limits bind the whole path.
    assert (found.spent.iterations, found.spent.cost_usd) == (1, 0.5)
    assert (second.context[1].role, [each.id for each in second.context[1].tool_calls]) == ("assistant", ["call zero"])
    # A run that is not the current one any more may still report; nobody goes on from that.
    work(plane, oka, first, "late")
    plane.until(lambda: "I do late." in undone(plane, first.order_id, ["assistant"]))
    give_back(oka, second)
    third = go(oka)
    assert (resumed(third).commit, seen(third)) == (commit_of("one"), seen(second))
    work(plane, oka, third, "two")
    oka.report(third, *steps("lost"))
    oka.restart()
    fourth = go(oka)
    assert seen(fourth) == [*seen(third), NOTE, *told("two")]
    work(plane, oka, fourth, "three")
    succeed(plane, oka, fourth)
    plane.submit("next", session=fourth.session.id)
    after = go(oka)
    assert seen(after) == [*seen(fourth), NOTE, *told("three"), "All done."]
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
    assert seen(second) == ["<summary>\nStep one.\n</summary>", *told("two")]
    # Counted over the conversation as that run had it: the note, a step's two messages, and the result before them.
    oka.report(second, *steps("three"), CompactionStep(summary="Two steps.", kept=3), checkpoint("three"))
    give_back(oka, second)
    assert seen(go(oka)) == ["<summary>\nTwo steps.\n</summary>", NOTE, *told("three")]


def test_a_run_that_died_before_its_first_checkpoint_leaves_nothing_to_go_on_from(
    plane: Plane, oka: DroneStandIn
) -> None:
    first = begin(plane, oka)
    oka.report(first, *steps("one"))
    give_back(oka, first)
    second = go(oka)
    assert (second.resumed, seen(second)) == (None, [])
    plane.until(lambda: undone(plane, first.order_id) == ["do it", "I do one."])
    placed = plane.facts(first.order_id).placed
    assert placed is not None
    assert placed.resumes == Resumption(why_not="not_stored")


def test_what_one_disk_alone_has_waits_there_for_a_slot(plane: Plane, oka: DroneStandIn) -> None:
    plane.edit(Drone, oka.id, concurrency=1)
    first = begin(plane, oka)
    work(plane, oka, first, "kept on the drone", stored=False)
    plane.submit("another", drone="oka")
    plane.drone("a-drone-of-more-room", concurrency=20)
    give_back(oka, first)
    plane.until(lambda: plane.order(first.order_id).generation == 2)
    placed = plane.facts(first.order_id).placed
    assert placed is not None
    assert (placed.drone, placed.code, placed.resumes and placed.resumes.step) == ("oka", "only_workspace", 6)
    other, second = sorted((go(oka), go(oka)), key=lambda each: each.order_id == first.order_id)
    assert (resumed(second).commit, resumed(second).bundle) == (commit_of("kept on the drone"), None)
    # With a free slot it is the best place.
    succeed(plane, oka, other)
    give_back(oka, second)
    go(oka)
    again = plane.facts(first.order_id).placed
    assert again is not None
    assert (again.drone, again.code) == ("oka", "workspace")


def test_a_workspace_that_is_as_the_base_can_be_had_anywhere(plane: Plane, oka: DroneStandIn) -> None:
    first = begin(plane, oka)
    oka.report(first, *steps("looked"), checkpoint("", commit="", bundle_sha256=None, changed=False))
    mila = plane.drone("mila")
    draining(plane, oka)
    give_back(oka, first)
    second = go(mila)
    assert (second.resumed is not None, seen(second)) == (True, ["do it", *told("looked")])


def test_the_bundle_of_another_run_with_the_same_commit_will_do(plane: Plane, oka: DroneStandIn) -> None:
    first = begin(plane, oka)
    work(plane, oka, first, "one")
    give_back(oka, first)
    second = go(oka)
    oka.report(second, *steps("looked"), checkpoint("one", changed=False, bundle_sha256=None))
    # What is stored does not wait for a slot of that drone.
    plane.edit(Drone, oka.id, concurrency=1)
    plane.submit("another", drone="oka")
    mila = plane.drone("mila")
    give_back(oka, second)
    third = go(mila)
    assert (resumed(third).run_id, resumed(third).bundle_run) == (second.run_id, first.run_id)
    assert seen(third) == ["do it", *told("one"), NOTE, *told("looked")]


def could_not(drone: DroneStandIn) -> None:
    """The next run of an order finds its checkpoint gone."""
    drone.renew_lease()
    order = drone.until(drone.take)
    assert resumed(order)
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
    assert go(oka).resumed is None


def test_a_run_is_told_only_what_the_path_has_not_heard(plane: Plane, oka: DroneStandIn) -> None:
    first = begin(plane, oka)
    plane.until(lambda: plane.status(first.order_id) == "running")
    for text in ("heard", "heard in the undone part", "never heard"):
        steering.say(plane.core, plane.admin, first.order_id, SayRequest(text=text))
    oka.report(first, UserStep(text="heard", source="steer"))
    work(plane, oka, first, "one")
    oka.report(first, UserStep(text="heard in the undone part", source="steer"))
    give_back(oka, first)
    second = go(oka)
    unheard = ["heard in the undone part", "never heard"]
    assert [word.text for word in second.said] == unheard
    assert seen(second) == ["do it", "heard", *told("one")]
    plane.until(lambda: [word.text for word in plane.order(first.order_id).unheard] == unheard)


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
    give_back(oka, begin(plane, oka))
    # The second run of its order, so that a first one could have come before it.
    own = go(oka)
    assert own.generation == 2
    oka.report(own, ResumedStep(run_id=other.run_id, seq=6), ResumedStep(run_id=own.run_id, seq=2))
    oka.report(own, AssistantStep(text="hello"), oka.ended())
    plane.until(lambda: plane.status(own.order_id) == "succeeded")
    plane.submit("next", session=own.session.id)
    assert seen(go(oka)) == ["do it", "hello"]


def test_the_drone_that_goes_on_may_read_the_checkpoint_and_nobody_else(plane: Plane, oka: DroneStandIn) -> None:
    first = begin(plane, oka)
    work(plane, oka, first, "one")
    mila, other = plane.drone("mila"), plane.drone("other", labels={"other": "yes"})
    draining(plane, oka), draining(plane, other)
    give_back(oka, first)
    second = go(mila)
    name = str(resumed(second).bundle)
    assert b"".join(blobs.get_blob(plane.core, identity(plane, mila), first.run_id, name).chunks) == bundle_of("one")
    with pytest.raises(NotFound):
        blobs.get_blob(plane.core, identity(plane, other), first.run_id, name)
    # No file holds it in clear.
    files = [path.read_bytes() for path in plane.core.blobs.root.rglob("*") if path.is_file()]
    assert [b"git bundle" in content for content in files] == [False]


def retry(plane: Plane, order_id: str) -> OrderSummary:
    return retrying.retry(plane.core, plane.admin, order_id)


def resume(plane: Plane, order_id: str, **fields: Any) -> OrderSummary:
    return retrying.resume(plane.core, plane.admin, order_id, ResumeRequest(**fields))


def failed(plane: Plane, drone: DroneStandIn, **fields: Any) -> str:
    """An order that did one complete step, pushed its branch, and failed."""
    order = begin(plane, drone, **fields)
    work(plane, drone, order, "one")
    drone.report(
        order,
        Delivered(branch=f"fleet/{order.order_id}", base_commit=BASE, head_commit="c" * 40, pushed=True),
    )
    fail(plane, drone, order)
    return order.order_id


def test_what_a_failed_order_spent_counts_from_when_a_person_let_it_go_on(plane: Plane, oka: DroneStandIn) -> None:
    resume(plane, failed(plane, oka), say="hurry up")
    order = go(oka)
    assert seen(order) == ["do it", *told("one")]
    assert (resumed(order).by_hand, resumed(order).spent.cost_usd) == (True, 0.0)
    assert [word.text for word in order.said] == ["hurry up"]
    work(plane, oka, order, "two")
    give_back(oka, order)
    third = go(oka)
    assert (resumed(third).by_hand, resumed(third).spent.cost_usd) == (False, 0.5)


def test_an_order_that_runs_again_shows_nothing_that_is_not_true_of_it_any_more(
    plane: Plane, oka: DroneStandIn
) -> None:
    order_id = failed(plane, oka)
    resume(plane, order_id)
    found = plane.order(order_id)
    assert (found.exit_status, found.ended_at, found.receipt, found.response, found.verification) == (None,) * 5
    # What the branch was last known to be is what a push is compared with.
    assert (found.branch, found.head_commit, found.pushed) == (f"fleet/{order_id}", "c" * 40, True)
    order = go(oka)
    assert push_grants.grant_push(plane.core, identity(plane, oka), order.run_id)["known"] == "c" * 40
    (turn,) = plane.rows(Turn)
    assert (turn.status, turn.ended_at) == ("processing", None)
    succeed(plane, oka, order)
    assert [turn.status for turn in plane.rows(Turn)] == ["finished"]


def test_an_order_that_had_done_nothing_begins_anew(plane: Plane, oka: DroneStandIn) -> None:
    order_id = plane.submit(labels={"gpu": "yes"})
    cancel(plane.core, plane.admin, order_id)
    plane.edit(Drone, oka.id, labels={"gpu": "yes"})
    resume(plane, order_id)
    order = go(oka)
    assert (order.order_id, order.resumed) == (order_id, None)


def test_lost_runs_count_anew(plane: Plane, oka: DroneStandIn) -> None:
    order_id = plane.submit(max_attempts=1)
    order = go(oka)
    assert order.order_id == order_id
    work(plane, oka, order, "one")
    oka.restart()
    found = plane.until(lambda: (o := plane.order(order_id)).status == "failed" and o)
    lost = RunLoss(code="drone_restarted", drone="oka")
    assert (plane.facts(order_id).ended, found.max_attempts) == (RunEnd(loss=lost, attempts=1), 1)
    resume(plane, order_id)
    assert plane.rows(Order)[0].lost_runs == 0
    assert seen(go(oka)) == ["do it", *told("one")]


def test_a_retry_begins_anew_and_so_does_what_follows_it_until_there_is_a_new_checkpoint(
    plane: Plane, oka: DroneStandIn
) -> None:
    order_id = failed(plane, oka)
    retry(plane, order_id)
    second = go(oka)
    assert (second.resumed, seen(second), second.attempt) == (None, [], 2)
    give_back(oka, second)
    third = go(oka)
    assert third.resumed is None
    work(plane, oka, third, "anew")
    give_back(oka, third)
    fourth = go(oka)
    assert (resumed(fourth).run_id, seen(fourth)) == (third.run_id, ["do it", *told("anew")])
    plane.until(lambda: undone(plane, order_id) == ["do it", "I do one.", "do it"])


def test_an_order_that_runs_or_has_succeeded_or_cannot_run_is_not_run_again(plane: Plane, oka: DroneStandIn) -> None:
    order_id = failed(plane, oka)
    projects.remove(plane.core, plane.admin, "app")
    with pytest.raises(Precondition):
        retry(plane, order_id)
    with plane.core.database.write() as db:
        db.query(Project).update({"removed_at": None})
        db.query(Provider).update({"removed_at": plane.core.clock.now()})
    for again in (resume, retry):
        assert code_of(lambda again=again: again(plane, order_id)) == "E-ORDER-PROVIDER"
    with plane.core.database.write() as db:
        db.query(Provider).update({"removed_at": None})
    for fields in ({"say": "  "}, {"cost_limit": float("inf")}):
        assert code_of(lambda fields=fields: resume(plane, order_id, **fields)) != ""
    resume(plane, order_id)
    for again in (resume, retry):
        with pytest.raises(Conflict) as refusal:
            again(plane, order_id)
        assert (refusal.value.code, refusal.value.next) == ("E-ORDER-STATE", f"fleet follow {order_id}")
    order = go(oka)
    succeed(plane, oka, order)
    with pytest.raises(Conflict, match="succeeded") as refusal:
        resume(plane, order_id)
    assert f"--session {order.session.id}" in refusal.value.next


def test_an_order_that_later_turns_were_built_on_runs_again_only_once_its_session_went_back(
    plane: Plane, oka: DroneStandIn
) -> None:
    order_id = failed(plane, oka)
    session = plane.order(order_id).session
    plane.submit("next", session=session)
    later = go(oka)
    with pytest.raises(Conflict, match=f"has continued with order {later.order_id}"):
        resume(plane, order_id)
    succeed(plane, oka, later)
    with pytest.raises(Conflict) as refusal:
        retry(plane, order_id)
    assert refusal.value.code == "E-ORDER-LATER"
    assert refusal.value.next.startswith(f"fleet session fork {session} --at {order_id}")
    sessions.switch(plane.core, plane.admin, session, SwitchRequest(entry=order_id))
    resume(plane, order_id)
    order = go(oka)
    assert seen(order) == ["do it", *told("one")]
    succeed(plane, oka, order)
    first, second, again = [each for each in sessions.show(plane.core, plane.admin, session).entries if each.turn]
    assert (again.parent, again.is_leaf, first.on_path, second.on_path) == (None, True, False, False)


def test_an_order_that_a_fork_was_built_on_does_not_run_again(plane: Plane, oka: DroneStandIn) -> None:
    order_id = failed(plane, oka)
    session = plane.order(order_id).session
    fork = sessions.fork(plane.core, plane.admin, session, ForkRequest()).id
    for again in (resume, retry):
        assert code_of(lambda again=again: again(plane, order_id)) == "E-ORDER-LATER"
    plane.submit("another way", session=fork)
    succeed(plane, oka, go(oka))
    sessions.switch(plane.core, plane.admin, fork, SwitchRequest(entry="root"))
    assert code_of(lambda: retry(plane, order_id)) == "E-ORDER-LATER"


def test_an_order_that_waits_behind_it_goes_on_waiting(plane: Plane, oka: DroneStandIn) -> None:
    order_id = failed(plane, oka)
    session = plane.order(order_id).session
    plane.edit(Drone, oka.id, draining=True)
    waiting = plane.submit("next", session=session)
    resume(plane, order_id)
    assert plane.order(waiting).status == "queued"
    plane.edit(Drone, oka.id, draining=False)
    first = go(oka)
    assert first.order_id == order_id
    plane.until(lambda: plane.facts(waiting).waits == EarlierOrder(order=order_id))
    succeed(plane, oka, first)
    assert go(oka).order_id == waiting


def test_an_order_does_not_run_again_while_a_later_one_that_has_worked_is_queued_again(
    plane: Plane, oka: DroneStandIn
) -> None:
    order_id = failed(plane, oka)
    plane.submit("next", session=plane.order(order_id).session)
    later = go(oka)
    work(plane, oka, later, "two")
    plane.edit(Drone, oka.id, draining=True)
    give_back(oka, later)
    plane.reaches(later.order_id, "queued")
    for again in (resume, retry):
        assert code_of(lambda again=again: again(plane, order_id)) == "E-ORDER-LATER"


def test_checkpoints_are_deleted_when_nobody_goes_on_from_them_any_more(plane: Plane, oka: DroneStandIn) -> None:
    order_id = failed(plane, oka)
    (file,) = plane.core.blobs.root.rglob("*.sealed")
    clean(plane.core)
    assert file.exists()
    plane.edit(Order, order_id, ended_at=plane.core.clock.now() - timedelta(days=8))
    (blob,) = plane.rows(Blob)
    old = plane.core.clock.now().timestamp() - 8 * 24 * 3600
    os.utime(file, (old, old))
    clean(plane.core)
    assert (file.exists(), plane.rows(Blob), blob.sealed) == (False, [], True)
    mila = plane.drone("mila")
    plane.edit(Drone, oka.id, draining=True)
    resume(plane, order_id)
    assert go(mila).resumed is None
    placed = plane.facts(order_id).placed
    assert placed is not None
    assert placed.resumes == Resumption(why_not="expired")


def test_of_a_long_run_only_its_newest_checkpoints_are_kept(plane: Plane, oka: DroneStandIn) -> None:
    names = [f"step {number}" for number in range(18)]
    order = begin(plane, oka)
    work(plane, oka, order, *names)
    plane.until(lambda: len(plane.rows(Blob)) == len(names))
    now = plane.core.clock.now()
    for age, name in enumerate(reversed(names)):
        with plane.core.database.write() as db:
            stored = update(Blob).where(Blob.sha256 == digest(bundle_of(name)))
            db.execute(stored.values(created_at=now - timedelta(hours=2, minutes=age)))
    clean(plane.core)
    assert {blob.sha256 for blob in plane.rows(Blob)} == {digest(bundle_of(name)) for name in names[-15:]}


def test_a_key_that_was_used_before_an_upgrade_still_fits() -> None:
    plain = SubmitRequest(prompt="p", project="app")
    assert _hash(plain) == _hash(SubmitRequest(prompt="p", project="app", max_attempts=None))
    assert _hash(plain) != _hash(SubmitRequest(prompt="p", project="app", max_attempts=3))
