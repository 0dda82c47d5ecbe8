"""Sessions on their way through Redis: long ones beside it, compactions that are asked for, reports of drones."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from control_plane.core import AuthenticatedDrone
from control_plane.db.runs import Blob, Step
from control_plane.db.sessions import ChatSession as Chat
from control_plane.declarations.sessions import CompactRequest
from control_plane.drones.inbox import send_new
from control_plane.operations import sessions
from control_plane.operations.runs import blobs
from control_plane.supervisor.outbox_relay import Relay
from shared import names
from shared.blobs import INLINE_CONTEXT
from shared.errors import NotFound
from shared.events import AssistantStep, Body, CompactionStep, ToolResultStep, UserStep
from shared.messages import Message, ToolCall
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

HISTORY: TypeAdapter[list[Message]] = TypeAdapter(list[Message])


def long_turn(results: int) -> list[Body]:
    """A turn with so many results of 100 kB each."""
    calls = tuple(ToolCall(id=f"c{number}", name="shell") for number in range(results))
    answers = [ToolResultStep(call_id=call.id, output=f"{call.id} " + "x" * 100_000) for call in calls]
    return [UserStep(text="look", source="prompt"), AssistantStep(tool_calls=calls), *answers]


def reported(plane: Plane, drone: DroneStandIn, *bodies: Body) -> str:
    """A session of one turn that went so, as its drone reported it."""
    order_id = plane.submit("look", drone=drone.name)
    order = plane.until(drone.take)
    assert drone.claim(order)
    drone.report(order, drone.started(), *bodies, drone.ended())
    plane.until(lambda: plane.status(order_id) == "succeeded")
    return plane.order(order_id).session


def identity(plane: Plane, drone: DroneStandIn) -> AuthenticatedDrone:
    return AuthenticatedDrone(drone.id, plane.admin.organization_id, drone.name)


def fetched(plane: Plane, drone: DroneStandIn, order: WorkOrder) -> list[Message]:
    """The context as the drone reads it."""
    found = blobs.get_blob(plane.core, identity(plane, drone), order.run_id, str(order.context_blob))
    return HISTORY.validate_json(b"".join(found.chunks))


@pytest.mark.timeout(240)
def test_a_session_of_five_megabytes_travels_beside_redis_and_the_order_stays_small(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    session = reported(plane, drone, *long_turn(50))
    short = reported(plane, drone, UserStep(text="x" * (INLINE_CONTEXT - 1000), source="prompt"))
    plane.submit("and now", session=short)
    inline = plane.until(drone.take)
    assert (inline.context_blob, len(inline.context)) == (None, 1)
    plane.submit("and now", session=session)
    plane.until(drone.queued)
    [message] = plane.core.broker.redis.lrange(names.queue(drone.id), 0, -1)
    order = plane.until(drone.take)
    assert len(message) < INLINE_CONTEXT
    assert order.context == ()
    given = fetched(plane, drone, order)
    assert sum(len(each.content) for each in given) > 5_000_000
    assert [given[0].content, given[2].content[:3], given[-1].tool_call_id] == ["look", "c0 ", "c49"]


def test_a_long_context_is_its_own_runs_alone_and_publishing_it_again_changes_nothing(plane: Plane) -> None:
    drone, other = plane.drone(), plane.drone("mila")
    plane.collector(), plane.supervisor()
    session = reported(plane, drone, *long_turn(1))
    plane.submit("and now", session=session, drone="oka")
    first = plane.until(drone.take)
    with pytest.raises(NotFound):
        fetched(plane, other, first)
    Relay(plane.core).publish([first.run_id])
    again = plane.until(drone.take)
    assert again.context_blob == first.context_blob
    assert len(plane.rows(Blob, Blob.run_id == first.run_id)) == 1


# --- compaction that is asked for -----------------------------------------------------------


def compacted(plane: Plane, session: str) -> bool:
    return plane.rows(Chat, Chat.id == session)[0].compact is None


def test_a_running_order_is_told_to_compact_and_the_wish_ends_with_its_step(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order_id = plane.submit()
    session = plane.order(order_id).session
    order = plane.until(drone.take)
    drone.claim(order)
    drone.report(order, drone.started())
    plane.until(lambda: plane.status(order_id) == "running")
    answer = sessions.compact(plane.core, plane.admin, session, CompactRequest(instructions="Be brief."))
    [message] = plane.until(lambda: drone.told("compact"))
    assert (message.body.run_id, message.body.instructions) == (order.run_id, "Be brief.")
    assert answer.order == order_id
    # A compaction for another reason does not fulfil the wish.
    drone.report(order, CompactionStep(summary="s", cause="window"))
    plane.until(lambda: len(plane.rows(Step, Step.kind == "compaction")) == 1)
    assert not compacted(plane, session)
    drone.report(order, CompactionStep(summary="s", cause="asked"))
    plane.until(lambda: compacted(plane, session))


def test_a_compaction_asked_while_the_order_lay_in_the_queue_is_told_when_its_run_begins(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    order_id = plane.submit()
    session = plane.order(order_id).session
    plane.until(lambda: plane.dispatch(order_id).published_at)
    plane.round()
    answer = sessions.compact(plane.core, plane.admin, session, CompactRequest(instructions="Be brief."))
    assert (answer.order, "starts with the compaction" in answer.told) == (None, True)
    order = plane.until(drone.take)
    drone.claim(order)
    drone.report(order, drone.started())
    [message] = plane.until(lambda: drone.told("compact"))
    assert (order.session.compact, message.body.run_id) == (None, order.run_id)


def test_an_order_that_carries_the_wish_is_not_told_of_it_again(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    session = reported(plane, drone, UserStep(text="look", source="prompt"))
    sessions.compact(plane.core, plane.admin, session, CompactRequest(instructions="Be brief."))
    order_id = plane.submit("and now", session=session)
    order = plane.until(drone.take)
    drone.claim(order)
    drone.report(order, drone.started())
    plane.until(lambda: plane.status(order_id) == "running")
    send_new(plane.core)
    assert order.session.compact == "Be brief."
    assert drone.told("compact") == []
