"""An older or a newer other side: what it says is acted on as far as it goes, and what is not known does no harm."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from control_plane.db.drones import Drone
from control_plane.db.runs import Run, Step
from control_plane.drones.load import has_ability
from control_plane.operations.drones import managing
from shared import names
from shared.control import ControlMessage, Drain
from shared.envelope import Binding
from shared.events import AssistantStep, CheckpointStep, Event, Prepared, UserStep
from shared.work_order import WorkOrder
from tests.support import wait_until
from tests.support.control_stand_in import ControlPlaneStandIn
from tests.support.drones import DroneUnderTest
from tests.support.planes import Plane
from tests.support.runs import order_for
from tests.support.scripted import ScriptedFactory
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


def begun(plane: Plane, drone: DroneStandIn) -> WorkOrder:
    """An order that the drone has claimed."""
    plane.collector(), plane.supervisor()
    plane.submit()
    work: WorkOrder = plane.until(drone.take)
    assert drone.claim(work)
    return work


# --- an older drone ----------------------------------------------------------------------------


def test_a_heartbeat_of_the_first_version_makes_the_drone_online_and_shows_what_it_does(plane: Plane) -> None:
    oka = plane.drone("oka", online=False)
    plane.collector()
    newer = {"mood": "words that nobody here knows", "abilities": ["fly"]}
    said = {**example("beat", **of(oka, sent_at=now(), draining=False, stopping=False)), **newer}
    plane.until(lambda: beat(oka, said) or plane.rows(Drone)[0].beat)
    assert managing.show_drone(plane.core, plane.admin, "oka").status == "online"
    assert plane.rows(Drone)[0].beat["runs"][0]["doing"] == said["runs"][0]["doing"]
    assert (has_ability(plane.rows(Drone)[0], "resume"), has_ability(plane.rows(Drone)[0], "fly")) == (False, True)


def test_a_hello_of_the_first_version_takes_back_the_run_that_it_does_not_name(plane: Plane) -> None:
    oka = plane.drone("oka")
    work = begun(plane, oka)
    oka.report(work, oka.started())
    plane.until(lambda: plane.status(work.order_id) == "running")
    said = example("hello", **of(oka, boot_id="another boot", at=now(), runs=[]))
    oka.put("hello", oka.seal(json.dumps(said), Binding(direction="hello", drone=oka.id)))
    plane.until(lambda: plane.order(work.order_id).runs[0].status == "lost")
    assert plane.until(oka.take).generation == 2


def test_a_run_in_the_words_of_the_first_version_is_stored_shown_and_ended(plane: Plane) -> None:
    oka = plane.drone("oka")
    work = begun(plane, oka)
    said = list(events_of(work))
    for event in said:
        send(oka, event)
    ended = plane.until(lambda: (order := plane.order(work.order_id)).status == "succeeded" and order)
    kept = [step.body for step in plane.rows(Step, Step.order_id == work.order_id)]
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


def test_a_drone_that_cannot_go_on_from_a_checkpoint_is_given_the_prompt_again(plane: Plane) -> None:
    oka = plane.drone("oka")
    oka.abilities = ()
    oka.beat()
    plane.edit(Drone, oka.id, beat={})
    work = begun(plane, oka)
    steps = Prepared(base_commit="a" * 40), UserStep(text="do it", source="prompt"), AssistantStep(text="half")
    oka.report(work, oka.started(), *steps, CheckpointStep(commit="", changed=False))
    plane.until(lambda: plane.rows(Run, Run.last_seq == 5))
    oka.restart()
    again = plane.until(oka.take)
    assert (again.generation, again.resume, again.resumed, again.context) == (2, False, None, ())
    assert again.prompt == work.prompt


def test_an_order_in_the_words_of_the_first_version_is_carried_out(
    stand_in: ControlPlaneStandIn,
    make_drone: Callable[..., DroneUnderTest],
    repository: Path,
    scripted: ScriptedFactory,
) -> None:
    drone = make_drone()
    drone.start_worker()
    whole = order_for(drone.id, repository, scripted([{"text": "Done."}]).url)
    older = said_by(example("work_order"), whole.model_dump(mode="json"))
    sent = stand_in.dispatch(whole, envelope=stand_in.sealed(whole, json.dumps(older)))
    assert stand_in.ended(sent, seconds=60).status == "success"


def said_by(old: Any, value: Any) -> Any:
    """The value, with no more keys than the old example has."""
    if isinstance(old, dict) and isinstance(value, dict) and value.keys() & old.keys():
        return {key: said_by(old[key], each) for key, each in value.items() if key in old}
    return value


# --- a newer one -------------------------------------------------------------------------------


def test_an_event_of_an_unknown_kind_keeps_its_place_and_holds_nothing_up(plane: Plane) -> None:
    oka = plane.drone("oka")
    work = begun(plane, oka)
    oka.report(work, oka.started())
    oka.journal(work, UserStep(text="stands for it here"))
    send(oka, {**ids_of(work), "version": 9, "seq": 2, "at": now(), "body": {"kind": "teleported", "to": "mars"}})
    oka.report(work, oka.ended())
    plane.until(lambda: plane.status(work.order_id) == "succeeded")
    gap = plane.rows(Step, Step.order_id == work.order_id, Step.run_seq == 2)[0].body
    assert (gap["kind"], gap["missing"]) == ("gap", 1)
    assert "unknown event kind 'teleported'" in gap["why"]


def test_a_control_message_of_an_unknown_kind_is_passed_over_and_the_next_one_acted_on(
    stand_in: ControlPlaneStandIn, make_drone: Callable[..., DroneUnderTest]
) -> None:
    drone = make_drone()
    drone.start_worker()
    drone.wait_consuming()
    stand_in.tell_text(drone.id, "0a0a0a0a0a0a", json.dumps({"id": "0a0a0a0a0a0a", "body": {"kind": "dance"}}))
    stand_in.tell(drone.id, ControlMessage(id=names.new_id(), body=Drain(on=True)))
    wait_until(lambda: any(beat.draining for beat in stand_in.beats(drone.id)))
    drone.terminate()
    drone.start_worker()
    wait_until(lambda: len(stand_in.hellos(drone.id)) == 2)
    assert "a control message was rejected" in drone.log()
    assert "Traceback" not in drone.log()
