"""What a hostile drone tries with its key: reports about others, forged, replayed and absurd ones."""

from __future__ import annotations

import base64
import json
import math
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from shared import envelope, names
from shared.envelope import Binding
from shared.events import ResumedStep
from tests.hostile.hostile_drone import Doc, GotThrough, HostileDrone, Try
from tests.support import wait_until

ANSWER: Doc = {"kind": "assistant", "text": "stolen"}
END: Doc = {"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "stolen"}
ALTERED = "altered, or not from the expected sender"
FOREIGN = "does not belong to this drone"
OTHER_ORDER = "belongs to another order or generation"
OTHER_CONTENT = "its content has another"
OTHER_BRANCH = "on a branch of another order"
INVALID = "not a valid event"
KEPT = 1000

SEALED: dict[str, tuple[Callable[[HostileDrone], tuple[Any, Doc]], str]] = {
    "end the run of another drone": (lambda it: _of_oka(it, END), FOREIGN),
    "end a run of another organization": (lambda it: _of_mila(it, END), FOREIGN),
    "name another's order in its own run": (lambda it: _both(it, END, order_id=it.victims.oka_order), OTHER_ORDER),
    "name another attempt of its order": (lambda it: _both(it, END, generation=99), OTHER_ORDER),
    "name another's run in the content alone": (
        lambda it: (it.event(END, run_id=it.victims.oka_run), _own(it)),
        OTHER_CONTENT,
    ),
    "bind an envelope to another drone": (lambda it: (it.event(END), {"drone": it.victims.oka}), "bound to another"),
    "deliver its work on main": (lambda it: _delivers(it, branch="main"), OTHER_BRANCH),
    "deliver a patch outside the directory": (lambda it: _delivers(it, patch_sha256="../../../etc/passwd"), INVALID),
    "number an event 2^70": (lambda it: _both(it, ANSWER, seq=2**70), INVALID),
    "nest an event 100,000 times": (lambda it: ("[" * 100_000, _own(it)), INVALID),
    "send no JSON": (lambda it: ("\x00\x1b]0;x\x07", _own(it)), INVALID),
    "report a negative cost": (lambda it: _spends(it, cost_usd=-1000.0), INVALID),
    "report a cost that is no number": (lambda it: _spends(it, cost_usd=math.nan), INVALID),
}
"""Events in a valid envelope: each try gives the content, and what the envelope is bound to; and why it is refused."""
PICKLE = base64.b64encode(pickle.dumps(print)).decode()


def tries() -> Iterator[Try]:
    for what, (make, why) in SEALED.items():
        yield Try(what, partial(_event, make=make, why=why), "raw")
    yield Try("write a pickle", lambda it: it.refused_entry({"t": "event", "e": PICKLE}, "cannot be opened"), "raw")
    yield Try("say hello as another drone", _hello_of_oka, "raw")
    yield Try("seal an event with another key", _other_key, "raw")
    yield Try("change one letter of an envelope", _changed, "raw")
    yield Try("say hello with the runs of another drone", _hello_with_runs)
    yield Try("repeat a report", _repeated)
    yield Try("jump in the numbers of its events", _jump)
    yield Try("resume from a run of another drone", _resumed)
    yield Try("beat as another drone", _beat_of_oka)
    yield Try("say in a heartbeat that another's run has ended", _beat_with_run)
    yield Try("say in a heartbeat that another's messages were acted on", _beat_with_messages)
    yield Try("repeat a captured heartbeat of another drone", _captured_beat)
    yield Try("send 5,000 heartbeats at once", _flood_of_beats)


def after_the_end() -> Iterator[Try]:
    """What is said of a run that has ended, and more reports than are kept."""
    yield Try("go on after the end", partial(_late, body=ANSWER))
    yield Try("give back an order that succeeded", partial(_late, body={**END, "give_back": True}))
    yield Try("write 3,000 entries of garbage at once", _flood_of_entries, "raw")


def _own(it: HostileDrone) -> Doc:
    return {"order": it.held.order_id, "run": it.held.run_id, "generation": it.held.generation}


def _both(it: HostileDrone, body: Doc, **fields: Any) -> tuple[Doc, Doc]:
    """An event with these fields, in an envelope that is bound to the same."""
    said = it.event(body, **fields)
    return said, {"order": said["order_id"], "run": said["run_id"], "generation": said["generation"]}


def _delivers(it: HostileDrone, **fields: Any) -> tuple[Doc, Doc]:
    return _both(it, {"kind": "delivered", **fields})


def _spends(it: HostileDrone, **usage: Any) -> tuple[Doc, Doc]:
    return _both(it, {**ANSWER, "usage": usage})


def _of_oka(it: HostileDrone, body: Doc) -> tuple[Doc, Doc]:
    return _both(it, body, run_id=it.victims.oka_run, order_id=it.victims.oka_order, generation=1)


def _of_mila(it: HostileDrone, body: Doc) -> tuple[Doc, Doc]:
    return _both(it, body, run_id=it.victims.mila_run, order_id=it.victims.mila_order, generation=1)


def _event(it: HostileDrone, make: Callable[[HostileDrone], tuple[Any, Doc]], why: str) -> None:
    said, binding = make(it)
    it.refused_entry({"t": "event", "e": it.seal(said, **binding)}, why)


def _other_key(it: HostileDrone) -> None:
    said, binding = _both(it, END)
    bound = Binding(direction="event", drone=it.id, **binding)
    stranger = {"sender": envelope.new_private_key(), "recipient": it.played.control_key}
    sealed = envelope.seal(json.dumps(said), bound, issued_at=it.played._now(), **stranger)
    it.refused_entry({"t": "event", "e": sealed}, ALTERED)


def _changed(it: HostileDrone) -> None:
    said, binding = _both(it, END)
    sealed = it.seal(said, **binding)
    other = "B" if sealed[60] != "B" else "C"
    it.refused_entry({"t": "event", "e": sealed[:60] + other + sealed[61:]}, ALTERED)


def _said_hello(it: HostileDrone, **fields: Any) -> str:
    return it.seal({**it.played._self(), "at": it.played._now().isoformat(), **fields}, direction="hello")


def _hello_of_oka(it: HostileDrone) -> None:
    it.refused_entry({"t": "hello", "e": _said_hello(it, drone_id=it.victims.oka)}, OTHER_CONTENT)


def _stolen_run(it: HostileDrone, **fields: Any) -> Doc:
    known = it.victims
    return {"run_id": known.oka_run, "order_id": known.oka_order, "generation": 1, "ended": True, **fields}


def _hello_with_runs(it: HostileDrone) -> None:
    # Of the same boot: its own run goes on.
    it.ignored_report("hello", _said_hello(it, runs=[_stolen_run(it), _own_run(it)]))


def _own_run(it: HostileDrone) -> Doc:
    return it.played.run_beat(it.held, ended=True).model_dump(mode="json")


def _beat_of_oka(it: HostileDrone) -> None:
    """It changes nothing of the drone itself either, and its next one counts."""
    # Until one was looked at: the collector looks at the latest heartbeat alone.
    forged = {"version": "forged", "drone_id": it.victims.oka}
    wait_until(lambda: it.played.forge_beat(**forged) or it.beats_refused(), every=0.1)
    _counts(it)
    if it.row().version == "forged":
        raise GotThrough("the heartbeat was stored")


def _counts(it: HostileDrone, *runs: Doc, **fields: Any) -> None:
    """Send a heartbeat of a new boot with these runs and fields until it is stored."""
    boot = names.new_id()

    def stored() -> bool:
        it.played.forge_beat(*runs, boot_id=boot, **fields)
        return it.row().boot_id == boot

    wait_until(stored)


def _beat_with_run(it: HostileDrone) -> None:
    _counts(it, _stolen_run(it, last_seq=99), {**_stolen_run(it), "run_id": it.victims.mila_run})


def _beat_with_messages(it: HostileDrone) -> None:
    """The ids of all messages that wait for the other drone."""
    waiting = it.control.hkeys(names.inbox_key(it.victims.oka))
    _counts(it, done=waiting)
    if it.control.hkeys(names.inbox_key(it.victims.oka)) != waiting:
        raise GotThrough("messages of another drone are gone")


def _captured_beat(it: HostileDrone) -> None:
    with it.control.pubsub(ignore_subscribe_messages=True) as listening:
        listening.subscribe(names.beat_channel(it.victims.oka))
        captured = wait_until(lambda: listening.get_message(timeout=0.5))["data"]
    for _ in range(3):
        it.played.redis.publish(names.beat_channel(it.id), captured)
        _counts(it)


def _flood_of_beats(it: HostileDrone) -> None:
    with it.played.redis.pipeline(transaction=False) as pipe:
        for _ in range(5000):
            pipe.publish(names.beat_channel(it.id), "x" * 100)
        pipe.execute()
    it.wait_for_beat_of_oka()


def _flood_of_entries(it: HostileDrone) -> None:
    with it.played.redis.pipeline(transaction=False) as pipe:
        for _ in range(3000):
            pipe.xadd(names.events_stream(it.id), {"t": "garbage", "e": "x" * 100})
        pipe.publish(names.live_channel(it.id), '{"t": "event"}')
        pipe.execute()
    it.wait_for_beat_of_oka()
    # The held event of the run stays.
    wait_until(lambda: it.control.xlen(names.events_stream(it.id)) <= 1, seconds=60)
    if it.refused_reports() > KEPT:
        raise GotThrough(f"{it.refused_reports()} reports are kept")


def _repeated(it: HostileDrone) -> None:
    sealed = it.seal(it.played.journals[it.held.run_id][0].model_dump(mode="json"), **_own(it))
    it.ignored_report("event", sealed)


def _jump(it: HostileDrone) -> None:
    said, binding = _both(it, END, seq=1000)
    it.played.put("event", it.seal(said, **binding))
    wait_until(lambda: it.played.told("resend"))
    if it.shown()["status"] != "running":
        raise GotThrough("the end counted without what is before it")


def _resumed(it: HostileDrone) -> None:
    it.played.report(it.held, ResumedStep(run_id=it.victims.oka_run, seq=1))
    wait_until(lambda: len(it.shown()["steps"]) == len(it.played.journals[it.held.run_id]))
    if it.victims.oka_run in json.dumps(it.shown()["runs"][0]):
        raise GotThrough("it continues another's run")


def _late(it: HostileDrone, body: Doc) -> None:
    def ending() -> list[Any]:
        shown = it.shown()
        return [shown[name] for name in ("status", "reason", "attempt", "response")]

    before = ending()
    said = it.event(body)
    it.played.journals[it.held.run_id].append(said)  # type: ignore[arg-type]
    it.ignored_report("event", it.seal(said, **_own(it)))
    if ending() != before:
        raise GotThrough(f"the order is {ending()}, and was {before}")
