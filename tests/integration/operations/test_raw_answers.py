"""The raw answers of an order: asked for, sent by the drone, downloaded by users of the organization."""

from __future__ import annotations

from io import BytesIO

import pytest

from control_plane.operations.orders import reading
from control_plane.operations.runs import blobs
from shared.blobs import digest
from shared.errors import NotFound
from shared.events import AssistantStep
from tests.support.going_on import begin, identity
from tests.support.organizations import add_organization
from tests.support.planes import Plane

RAW = b'{"choices": []}\n'


def test_a_raw_answer_is_downloaded_by_its_step_and_by_no_one_else(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    order = begin(plane, oka, keep_raw=True)
    assert order.keep_raw
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
