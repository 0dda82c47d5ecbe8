"""What an order is asked for, and the raw answers: sent by the drone, downloaded by users of the organization."""

from __future__ import annotations

from io import BytesIO

import pytest

from control_plane.db.orders import Order
from control_plane.operations.orders import reading
from control_plane.operations.orders.next_turn import next_turn
from control_plane.operations.runs import blobs
from control_plane.orders.draft import as_asked
from shared.blobs import digest
from shared.errors import NotFound
from shared.events import AssistantStep
from tests.support.going_on import begin, identity
from tests.support.organizations import add_organization
from tests.support.planes import Plane

ASKED = {"keep_raw": True, "ticket": "PAYM-12"}
RAW = b'{"choices": []}\n'


def test_what_an_order_is_asked_for_goes_to_its_drone_and_to_its_next_turn(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.supervisor()
    order = begin(plane, oka, **ASKED)
    with plane.core.database.read() as db:
        later = next_turn(db, plane.admin, db.get_one(Order, order.order_id), "And the docs")
    assert (as_asked(order), later.as_asked) == (ASKED, ASKED)


def test_a_raw_answer_is_downloaded_by_its_step_and_by_no_one_else(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    order = begin(plane, oka, keep_raw=True)
    blobs.put_blob(plane.core, identity(plane, oka), order.run_id, digest(RAW), BytesIO(RAW), "log")
    oka.report(order, AssistantStep(text="done", raw_sha256=digest(RAW)), AssistantStep(text="x", raw_note="not kept"))

    def answers() -> list[int]:
        return [step.seq for step in plane.order(order.order_id).steps if step.kind == "assistant"]

    seqs = plane.until(lambda: found if len(found := answers()) == 2 else [])
    assert reading.raw_of(plane.core, plane.admin, order.order_id, seqs[0]) == RAW
    with pytest.raises(NotFound, match="has no raw answer") as refusal:
        reading.raw_of(plane.core, plane.admin, order.order_id, seqs[1])
    assert refusal.value.why == "not kept"
    with pytest.raises(NotFound, match="not found"):
        reading.raw_of(plane.core, add_organization(plane.core, plane.admin), order.order_id, seqs[0])
