"""Sessions on their way through Redis: long ones beside it, and compactions that are asked for."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from control_plane.contract.declarations.sessions import CompactDocument, CompactRequest
from control_plane.db.runs import Blob, Step
from control_plane.db.sessions import ChatSession as Chat
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
from tests.support.going_on import identity
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

HISTORY: TypeAdapter[list[Message]] = TypeAdapter(list[Message])


@pytest.fixture
def drone(plane: Plane) -> DroneStandIn:
    """A drone of a fleet that runs."""
    made = plane.drone()
    plane.collector(), plane.supervisor()
    return made


def started(plane: Plane, drone: DroneStandIn) -> WorkOrder:
    """Take the next order and start it."""
    order = plane.until(drone.take)
    assert drone.claim(order)
    drone.report(order, drone.started())
    plane.until(lambda: plane.status(order.order_id) == "running")
    return order


def compact(plane: Plane, session: str) -> CompactDocument:
    return sessions.compact(plane.core, plane.admin, session, CompactRequest(instructions="Be brief."))


def long_turn(results: int) -> list[Body]:
    """A turn with so many results of 100 kB each."""
    calls = tuple(ToolCall(id=f"c{number}", name="shell") for number in range(results))
    answers = [ToolResultStep(call_id=call.id, output=f"{call.id} " + "x" * 100_000) for call in calls]
    return [UserStep(text="look", source="prompt"), AssistantStep(tool_calls=calls), *answers]


def reported(plane: Plane, drone: DroneStandIn, *bodies: Body) -> str:
    """A session of one turn that went so, as its drone reported it."""
    plane.submit("look", drone=drone.name)
    order = started(plane, drone)
    drone.report(order, *bodies, drone.ended())
    plane.until(lambda: plane.status(order.order_id) == "succeeded")
    return order.session.id


def fetched(plane: Plane, drone: DroneStandIn, order: WorkOrder) -> list[Message]:
    """The context as the drone reads it."""
    found = blobs.get_blob(plane.core, identity(plane, drone), order.run_id, str(order.context_blob))
    return HISTORY.validate_json(b"".join(found.chunks))


@pytest.mark.timeout(240)
def test_a_session_of_five_megabytes_travels_beside_redis_for_its_own_run_alone(
    plane: Plane, drone: DroneStandIn
) -> None:
    session = reported(plane, drone, *long_turn(50))
    short = reported(plane, drone, UserStep(text="x" * (INLINE_CONTEXT - 1000), source="prompt"))
    plane.submit("and now", session=short)
    inline = plane.until(drone.take)
    assert (inline.context_blob, len(inline.context)) == (None, 1)
    plane.submit("and now", session=session)
    plane.until(drone.queued)
    [message] = plane.core.broker.redis.lrange(names.queue(drone.id), 0, -1)
    order = plane.until(drone.take)
    assert (len(message) < INLINE_CONTEXT, order.context) == (True, ())
    given = fetched(plane, drone, order)
    assert sum(len(each.content) for each in given) > 5_000_000
    assert [given[0].content, given[2].content[:3], given[-1].tool_call_id] == ["look", "c0 ", "c49"]
    with pytest.raises(NotFound):
        fetched(plane, plane.drone("mila"), order)
    # Publishing it again changes nothing.
    Relay(plane.core).publish([order.run_id])
    assert plane.until(drone.take).context_blob == order.context_blob
    assert len(plane.rows(Blob, Blob.run_id == order.run_id)) == 1


def test_a_running_order_is_told_to_compact_and_the_wish_ends_with_its_step(plane: Plane, drone: DroneStandIn) -> None:
    plane.submit()
    order = started(plane, drone)
    assert compact(plane, order.session.id).order == order.order_id
    [message] = plane.until(lambda: drone.told("compact"))
    assert (message.body.run_id, message.body.instructions) == (order.run_id, "Be brief.")
    # A compaction for another reason does not fulfil the wish.
    drone.report(order, CompactionStep(summary="s", cause="window"))
    plane.until(lambda: len(plane.rows(Step, Step.kind == "compaction")) == 1)
    (chat,) = plane.rows(Chat)
    assert chat.compact is not None
    drone.report(order, CompactionStep(summary="s", cause="asked"))
    plane.until(lambda: plane.rows(Chat)[0].compact is None)


def test_a_compaction_asked_while_the_order_lay_in_the_queue_is_told_when_its_run_begins_and_only_then(
    plane: Plane, drone: DroneStandIn
) -> None:
    order_id = plane.submit()
    session = plane.order(order_id).session
    plane.until(lambda: plane.dispatch(order_id).published_at)
    plane.round()
    answer = compact(plane, session)
    assert (answer.order, "starts with the compaction" in answer.told) == (None, True)
    order = started(plane, drone)
    [message] = plane.until(lambda: drone.told("compact"))
    assert (order.session.compact, message.body.run_id) == (None, order.run_id)
    # An order that carries the wish is not told of it again.
    drone.report(order, UserStep(text="look", source="prompt"), drone.ended())
    plane.until(lambda: plane.status(order_id) == "succeeded")
    compact(plane, session)
    plane.submit("and now", session=session)
    carries = started(plane, drone)
    send_new(plane.core)
    assert carries.session.compact == "Be brief."
    assert [each.body.run_id for each in drone.told("compact")] == [order.run_id]


def test_a_compaction_that_comes_too_late_for_a_run_is_for_the_next_turn_once(
    plane: Plane, drone: DroneStandIn
) -> None:
    plane.submit()
    order = started(plane, drone)
    session = order.session.id
    drone.report(order, UserStep(text="look", source="prompt"))
    compact(plane, session)
    drone.report(order, drone.ended())
    plane.until(lambda: plane.status(order.order_id) == "succeeded")
    plane.submit("and now", session=session)
    carries = started(plane, drone)
    assert carries.session.compact == "Be brief."
    drone.report(carries, UserStep(text="and now", source="prompt"), drone.ended())
    plane.until(lambda: plane.status(carries.order_id) == "succeeded")
    assert plane.rows(Chat)[0].compact is None


def test_a_compaction_asked_while_the_order_is_put_into_the_queue_is_told_when_its_run_begins(
    plane: Plane, drone: DroneStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, publish = plane.order(plane.submit()).session, plane.core.broker.publish_order

    def publish_slowly(**fields: Any) -> None:
        publish(**fields)
        plane.core.clock.sleep(1)
        compact(plane, session)

    monkeypatch.setattr(plane.core.broker, "publish_order", publish_slowly)
    order = started(plane, drone)
    [message] = plane.until(lambda: drone.told("compact"))
    assert (order.session.compact, message.body.run_id) == (None, order.run_id)
