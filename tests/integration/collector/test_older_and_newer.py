"""An older or a newer other side: what it says is acted on as far as it goes, and what is not known does no harm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from control_plane.db.drones import Drone
from control_plane.db.runs import Step
from control_plane.operations.drones import managing
from shared import names
from shared.envelope import Binding
from shared.events import Event, UserStep
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

EXAMPLES = Path(__file__).parents[2] / "contract" / "examples"
Doc = dict[str, Any]


def example(name: str, **changes: Any) -> Doc:
    """A stored example of the first version, with ids of this test."""
    return {**json.loads((EXAMPLES / "v1" / f"{name}.json").read_text()), **changes}


def of(drone: DroneStandIn, **more: Any) -> Doc:
    return {"drone_id": drone.id, "boot_id": drone.boot, "machine_id": f"machine-of-{drone.name}", **more}


def now() -> str:
    return datetime.now(UTC).isoformat()


def beat(drone: DroneStandIn, said: Doc) -> None:
    """Send a heartbeat, word for word."""
    sealed = drone.seal(json.dumps(said), Binding(direction="beat", drone=drone.id))
    drone.redis.publish(names.beat_channel(drone.id), sealed)


def send(drone: DroneStandIn, event: Doc) -> None:
    """Put an event into the stream, word for word."""
    ids = {"order": event["order_id"], "run": event["run_id"], "generation": event["generation"]}
    drone.put("event", drone.seal(json.dumps(event), Binding(direction="event", drone=drone.id, **ids)))


def ids_of(work: WorkOrder) -> Doc:
    return {"run_id": work.run_id, "order_id": work.order_id, "generation": work.generation}


# --- an older drone ----------------------------------------------------------------------------


def test_a_heartbeat_of_the_first_version_makes_the_drone_online_and_shows_what_it_does(plane: Plane) -> None:
    oka = plane.drone("oka", online=False)
    plane.collector()
    newer = {"mood": "words that nobody here knows", "abilities": ["fly"]}
    said = {
        **example(
            "beat", **of(oka, sent_at=now(), full="", withheld="", policy_broken=False, draining=False, stopping=False)
        ),
        **newer,
    }
    plane.until(lambda: beat(oka, said) or plane.rows(Drone)[0].beat)
    assert managing.show_drone(plane.core, plane.admin, "oka").status == "online"
    assert plane.rows(Drone)[0].beat["runs"][0]["doing"] == said["runs"][0]["doing"]
    assert plane.rows(Drone)[0].beat["abilities"] == ["fly"]


def test_a_hello_of_the_first_version_takes_back_the_run_that_it_does_not_name(
    running: Plane, oka: DroneStandIn
) -> None:
    work = running.claimed(oka)
    oka.report(work, oka.started())
    running.until(lambda: running.status(work.order_id) == "running")
    said = example("hello", **of(oka, boot_id="another boot", at=now(), runs=[]))
    oka.put("hello", oka.seal(json.dumps(said), Binding(direction="hello", drone=oka.id)))
    running.until(lambda: running.order(work.order_id).runs[0].status == "lost")
    assert running.until(oka.take).generation == 2


def test_a_run_in_the_words_of_the_first_version_is_stored_shown_and_ended(running: Plane, oka: DroneStandIn) -> None:
    work = running.claimed(oka)
    said = list(events_of(work))
    for event in said:
        send(oka, event)
    ended = running.until(lambda: (order := running.order(work.order_id)).status == "succeeded" and order)
    kept = [step.body for step in running.rows(Step, Step.order_id == work.order_id)]
    assert [body["kind"] for body in kept] == [event["body"]["kind"] for event in said]
    assert [{key: body[key] for key in event["body"]} for body, event in zip(kept, said, strict=True)] == [
        Event.model_validate(event).body.model_dump(mode="json", include=set(event["body"])) for event in said
    ]
    assert (ended.response, ended.branch) == (said[-1]["body"]["response"], said[-2]["body"]["branch"])


def events_of(work: WorkOrder) -> Iterator[Doc]:
    """Every kind of the first version once, as one run: its end last, its delivery before."""
    stems = sorted(path.stem for path in (EXAMPLES / "v1").glob("event.*.json"))
    order = ["event.run_started", "event.prepared", "event.user"]
    last = ["event.delivered", "event.run_ended"]
    middle = [stem for stem in stems if stem not in {*order, *last, "event.resumed"}]
    for seq, stem in enumerate([*order, *middle, *last], 1):
        event = example(stem, **ids_of(work), seq=seq)
        yield {**event, "body": {**event["body"], **succeeded(stem), **on_own_branches(stem, work)}}


def succeeded(stem: str) -> Doc:
    """What the run's own end has to say for the order to succeed; the example may tell of another end."""
    return {"status": "success", "give_back": False} if stem == "event.run_ended" else {}


def on_own_branches(stem: str, work: WorkOrder) -> Doc:
    """The branches of the delivery; the example names those of its own order."""
    own = {"branch": names.branch(work.order_id), "late_ref": names.late_branch(work.order_id, 2)}
    return own if stem == "event.delivered" else {}


# --- a newer one -------------------------------------------------------------------------------


def test_an_event_of_an_unknown_kind_keeps_its_place_and_holds_nothing_up(running: Plane, oka: DroneStandIn) -> None:
    work = running.claimed(oka)
    oka.report(work, oka.started())
    oka.journal(work, UserStep(text="stands for it here"))
    send(oka, {**ids_of(work), "version": 9, "seq": 2, "at": now(), "body": {"kind": "teleported", "to": "mars"}})
    oka.report(work, oka.ended())
    running.until(lambda: running.status(work.order_id) == "succeeded")
    gap = running.rows(Step, Step.order_id == work.order_id, Step.run_seq == 2)[0].body
    assert (gap["kind"], gap["missing"]) == ("gap", 1)
    assert "unknown event kind 'teleported'" in gap["why"]
