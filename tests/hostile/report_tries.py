"""What a hostile drone tries with its key: reports about others, forged, replayed and absurd ones."""

from __future__ import annotations

import base64
import json
import math
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from control_plane.declarations import orders
from shared import envelope, names
from shared.envelope import Binding
from shared.errors import NotFound
from shared.events import Delivered, ResumedStep
from tests.hostile.hostile_drone import Doc, GotThrough, HostileDrone, Try
from tests.support import wait_until

ANSWER: Doc = {"kind": "assistant", "text": "stolen"}
END: Doc = {"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "stolen"}
ALTERED = "altered, or not from the expected sender"
FOREIGN = "does not belong to this drone"
OTHER_CONTENT = "its content has another"
INVALID = "not a valid event"
OTHER_BRANCH = "on a branch of another order"
KEPT = 1000
CHECKED = "collector: heartbeats are checked as reports are"

SEALED: dict[str, tuple[Callable[[HostileDrone], tuple[Any, Doc]], str]] = {
    "end the run of another drone": (lambda it: _of_oka(it, END), FOREIGN),
    "say something in the run of another drone": (lambda it: _of_oka(it, ANSWER), FOREIGN),
    "end a run of another organization": (lambda it: _of_mila(it, END), FOREIGN),
    "name another's order in its own run": (
        lambda it: _both(it, END, order_id=it.victims.oka_order),
        "belongs to another order or generation",
    ),
    "name another attempt of its order": (
        lambda it: _both(it, END, generation=99),
        "belongs to another order or generation",
    ),
    "name another's run in the content alone": (
        lambda it: (it.event(END, run_id=it.victims.oka_run), _own(it)),
        OTHER_CONTENT,
    ),
    "bind an envelope to another drone": (lambda it: (it.event(END), {"drone": it.victims.oka}), "bound to another"),
    "pass a heartbeat for an event": (lambda it: (it.event(END), {"direction": "beat"}), "bound to another"),
    "pass an order for an event": (lambda it: (it.event(END), {"direction": "order"}), "bound to another"),
    "say a run that does not exist": (lambda it: _both(it, END, run_id="0" * 12), FOREIGN),
    "deliver its work on main": (lambda it: _delivers(it, branch="main"), OTHER_BRANCH),
    "deliver its work on the branch of another order": (
        lambda it: _delivers(it, branch=f"fleet/{it.victims.oka_order}"),
        OTHER_BRANCH,
    ),
    "deliver its work on a branch that git takes for an option": (
        lambda it: _delivers(it, branch="--upload-pack=touch /tmp/x"),
        OTHER_BRANCH,
    ),
    "keep late work on another branch": (lambda it: _delivers(it, late_ref="fleet-late/x/../../main"), OTHER_BRANCH),
    "deliver a patch outside the directory": (
        lambda it: _delivers(it, patch_sha256="../../../../etc/passwd"),
        INVALID,
    ),
    "deliver a commit that is a refspec": (lambda it: _delivers(it, head_commit="+x:refs/heads/main"), INVALID),
    "deliver a patch of -1 bytes": (lambda it: _delivers(it, patch_bytes=-1), INVALID),
    "name an output outside the directory": (
        lambda it: _both(it, {"kind": "tool_result", "call_id": "x", "output": "", "log_sha256": "../../master.key"}),
        INVALID,
    ),
    "number an event 0": (lambda it: _both(it, ANSWER, seq=0), INVALID),
    "number an event -1": (lambda it: _both(it, ANSWER, seq=-1), INVALID),
    "number an event 2^70": (lambda it: _both(it, ANSWER, seq=2**70), INVALID),
    "date an event to a time that cannot be": (lambda it: _both(it, ANSWER, at="99999-01-01T00:00:00Z"), INVALID),
    "leave out what an event needs": (lambda it: ({"run_id": it.victims.oka_run}, _own(it)), INVALID),
    "nest an event 100,000 times": (lambda it: ("[" * 100_000, _own(it)), INVALID),
    "send no JSON": (lambda it: ("\x00\x1b]0;x\x07", _own(it)), INVALID),
}
"""Events in a valid envelope: each try gives the content, and what the envelope is bound to; and why it is refused."""
SPENT: dict[str, Any] = {
    "a negative cost": {"cost_usd": -1000.0},
    "a cost that is no number": {"cost_usd": math.nan},
    "an endless cost": {"cost_usd": math.inf},
    "a cost of 10^300": {"cost_usd": 1e300},
    "a negative number of tokens": {"input_tokens": -1},
    "2^63 tokens": {"output_tokens": 2**63},
}
ENTRIES: dict[str, tuple[Any, str]] = {
    "write an entry of an unknown kind": ({"t": "admin", "e": "x"}, "unknown entry kind"),
    "write an entry without a kind": ({"x": "y"}, "unknown entry kind"),
    "write an entry without an envelope": ({"t": "event"}, "cannot be opened"),
    "write a pickle": ({"t": "event", "e": base64.b64encode(pickle.dumps(print)).decode()}, "cannot be opened"),
    "write bytes that are no text": ({b"t": b"event", b"e": b"\xff\xfe\x00"}, "cannot be opened"),
    "write an entry of 900 kB": ({"t": "event", "e": "A" * 900_000}, "cannot be opened"),
    "write a thousand fields": ({f"f{n}": "x" for n in range(1000)}, "unknown entry kind"),
    "write another type of Celery message": ({"t": "fleet.run", "e": "{}"}, "unknown entry kind"),
}
HELLOS: dict[str, Any] = {
    "concurrency": 10**9,
    "boot_id": "b" * 10_000,
    "machine_id": "m" * 10_000,
    "runs": [{"run_id": "r", "order_id": "o", "generation": 1, "last_seq": 0}] * 5000,
}
BEATS: dict[str, Callable[[HostileDrone], Doc]] = {
    "beat as another drone": lambda it: {"drone_id": it.victims.oka},
    "beat as a drone of another organization": lambda it: {"drone_id": it.victims.mila},
    "beat with 2^70 slots": lambda _: {"concurrency": 2**70},
    "beat with no slot": lambda _: {"concurrency": 0},
    "beat with an age that is no number": lambda _: {"policy_age_s": math.nan},
    "beat with a boot id of 10 kB": lambda _: {"boot_id": "b" * 10_000},
    "beat with a run that does nothing for 10^300 s": lambda it: {"runs": [{**_own_run(it), "doing_seconds": 1e300}]},
}


def tries() -> Iterator[Try]:
    for what, (make, why) in SEALED.items():
        yield Try(what, partial(_event, make=make, why=why), "raw")
    for what, usage in SPENT.items():
        yield Try(f"report {what}", partial(_spends, usage=usage), "raw")
    for what, (fields, why) in ENTRIES.items():
        yield Try(what, partial(HostileDrone.refused_entry, fields=fields, why=why), "raw")
    yield Try("seal an event with another key", _other_key, "raw")
    yield Try("seal an event to itself", _to_itself, "raw")
    yield Try("change one letter of an envelope", _changed, "raw")
    yield Try("say hello as another drone", _hello_of_oka, "raw")
    for name, value in HELLOS.items():
        yield Try(f"say hello with an absurd {name}", partial(_hello, **{name: value}), "raw")
    yield Try("say hello with a label that acts on terminals", _hello_with_label, "raw")
    yield Try("say hello with the runs of another drone", _hello_with_runs, "")
    yield Try("repeat a report", _repeated, "")
    yield Try("jump in the numbers of its events", _jump, "")
    yield Try("deliver the patch of another organization as its own", _foreign_patch, "")
    yield Try("resume from a run of another drone", _resumed, "")
    for what, fields in BEATS.items():
        yield Try(what, partial(_beat, make=fields), "log")
    yield Try("say in a heartbeat that another's run has ended", _beat_with_run, "")
    yield Try("say in a heartbeat that another's messages were acted on", _beat_with_messages, "")
    yield Try("repeat a captured heartbeat of another drone", _captured_beat, "log")
    yield Try("send a heartbeat of 2 MB", partial(_beat, make=lambda _: {"full": "f" * 2_000_000}), "")
    yield Try("send 5,000 heartbeats at once", _flood_of_beats, "")
    yield Try("send live messages that take long to read", _endless_messages, "")


def after_the_end() -> Iterator[Try]:
    """What is said of a run that has ended, and more reports than are kept."""
    yield Try("go on after the end", partial(_late, body=ANSWER), "")
    yield Try("fail after it succeeded", partial(_late, body={**END, "status": "failed"}), "")
    yield Try("give back an order that succeeded", partial(_late, body={**END, "give_back": True}), "")
    yield Try("write 3,000 entries of garbage at once", _flood_of_entries, "raw")


def _own(it: HostileDrone) -> Doc:
    assert it.order is not None
    return {"order": it.order.order_id, "run": it.order.run_id, "generation": it.order.generation}


def _both(it: HostileDrone, body: Doc, **fields: Any) -> tuple[Doc, Doc]:
    """An event with these fields, in an envelope that is bound to the same."""
    said = it.event(body, **fields)
    return said, {"order": said["order_id"], "run": said["run_id"], "generation": said["generation"]}


def _delivers(it: HostileDrone, **fields: Any) -> tuple[Doc, Doc]:
    return _both(it, {"kind": "delivered", **fields})


def _of_oka(it: HostileDrone, body: Doc) -> tuple[Doc, Doc]:
    return _both(it, body, run_id=it.victims.oka_run, order_id=it.victims.oka_order, generation=1)


def _of_mila(it: HostileDrone, body: Doc) -> tuple[Doc, Doc]:
    return _both(it, body, run_id=it.victims.mila_run, order_id=it.victims.mila_order, generation=1)


def _event(it: HostileDrone, make: Callable[[HostileDrone], tuple[Any, Doc]], why: str) -> str:
    said, binding = make(it)
    return it.refused_report("event", it.seal(said, **binding), why)


def _spends(it: HostileDrone, usage: Doc) -> str:
    said, binding = _both(it, {**ANSWER, "usage": usage})
    return it.refused_report("event", it.seal(said, **binding), INVALID)


def _other_key(it: HostileDrone) -> str:
    said, binding = _both(it, END)
    bound = Binding(direction="event", drone=it.id, **binding)
    stranger = {"sender": envelope.new_private_key(), "recipient": it.played.control_key}
    sealed = envelope.seal(json.dumps(said), bound, issued_at=it.played._now(), **stranger)
    return it.refused_report("event", sealed, ALTERED)


def _to_itself(it: HostileDrone) -> str:
    own = it.played.private_key
    bound = Binding(direction="event", drone=it.id)
    sealed = envelope.seal("{}", bound, sender=own, recipient=envelope.public_key(own), issued_at=it.played._now())
    return it.refused_report("event", sealed, "unknown here")


def _changed(it: HostileDrone) -> str:
    said, binding = _both(it, END)
    sealed = it.seal(said, **binding)
    other = "B" if sealed[60] != "B" else "C"
    return it.refused_report("event", sealed[:60] + other + sealed[61:], ALTERED)


def _said_hello(it: HostileDrone, **fields: Any) -> Doc:
    return {**it.played._self(), "at": it.played._now().isoformat(), **fields}


def _hello(it: HostileDrone, **fields: Any) -> str:
    return it.refused_report("hello", it.seal(_said_hello(it, **fields), direction="hello"), "not a valid hello")


def _hello_with_label(it: HostileDrone) -> str:
    sealed = it.seal(_said_hello(it, labels={"\x1b]0;x\x07": "y"}), direction="hello")
    return it.refused_report("hello", sealed, "invalid label")


def _hello_of_oka(it: HostileDrone) -> str:
    sealed = it.seal(_said_hello(it, drone_id=it.victims.oka), direction="hello")
    return it.refused_report("hello", sealed, OTHER_CONTENT)


def _stolen_run(it: HostileDrone, **fields: Any) -> Doc:
    known = it.victims
    return {"run_id": known.oka_run, "order_id": known.oka_order, "generation": 1, "ended": True, **fields}


def _hello_with_runs(it: HostileDrone) -> str:
    # Of the same boot: its own run goes on.
    runs = [_stolen_run(it), {**_own_run(it)}]
    sealed = it.seal(_said_hello(it, runs=runs), direction="hello")
    return it.ignored_report("hello", sealed, "collector: runs of other drones are ignored")


def _own_run(it: HostileDrone) -> Doc:
    assert it.order is not None
    return it.played.run_beat(it.order, ended=True).model_dump(mode="json")


def _beat(it: HostileDrone, make: Callable[[HostileDrone], Doc]) -> str:
    """A heartbeat with these fields changes nothing of the drone itself either, and its next one counts."""
    for _ in range(3):
        # Until one was looked at: the collector looks at the latest heartbeat alone.
        wait_until(lambda: it.played.forge_beat(**{"version": "forged", **make(it)}) or it.beats_refused(), every=0.1)
        boot = names.new_id()
        wait_until(partial(_beats_as, it, boot))
    if it.row().version == "forged":
        raise GotThrough("the heartbeat was stored")
    return CHECKED


def _beats_as(it: HostileDrone, boot: str) -> bool:
    """Send a good heartbeat; whether one of this boot is stored."""
    it.played.forge_beat(boot_id=boot)
    return it.row().boot_id == boot


def _beat_with_run(it: HostileDrone) -> str:
    runs = [_stolen_run(it, last_seq=99), {**_stolen_run(it), "run_id": it.victims.mila_run}]
    it.played.forge_beat(*runs, boot_id=(boot := names.new_id()))
    wait_until(lambda: it.row().boot_id == boot or it.played.forge_beat(*runs, boot_id=boot))
    return "collector: runs of other drones are ignored"


def _beat_with_messages(it: HostileDrone) -> str:
    """The ids of all messages that wait for the other drone."""
    waiting = it.control.hkeys(names.inbox_key(it.victims.oka))
    it.played.forge_beat(done=waiting, boot_id=(boot := names.new_id()))
    wait_until(lambda: it.row().boot_id == boot or it.played.forge_beat(done=waiting, boot_id=boot))
    if it.control.hkeys(names.inbox_key(it.victims.oka)) != waiting:
        raise GotThrough("messages of another drone are gone")
    return "collector: only the drone's own messages are closed"


def _captured_beat(it: HostileDrone) -> str:
    with it.control.pubsub(ignore_subscribe_messages=True) as listening:
        listening.subscribe(names.beat_channel(it.victims.oka))
        captured = wait_until(lambda: listening.get_message(timeout=0.5))["data"]
    for _ in range(3):
        it.played.redis.publish(names.beat_channel(it.id), captured)
        wait_until(partial(_beats_as, it, names.new_id()))
    return "collector: an envelope names its sender"


def _flood_of_beats(it: HostileDrone) -> str:
    with it.played.redis.pipeline(transaction=False) as pipe:
        for _ in range(5000):
            pipe.publish(names.beat_channel(it.id), "x" * 100)
        pipe.execute()
    it.wait_for_beat_of_oka()
    return "collector: only the latest is read"


def _flood_of_entries(it: HostileDrone) -> str:
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
    return "collector: at most 1,000 refused reports of a drone are kept"


def _endless_messages(it: HostileDrone) -> str:
    with it.played.redis.pipeline(transaction=False) as pipe:
        for text in ("[" * 100_000, "{" * 100_000, "x" * 1_000_000):
            for _ in range(10):
                pipe.publish(names.live_channel(it.id), text)
        pipe.execute()
    it.wait_for_beat_of_oka()
    return "collector: what is too long or too nested is dropped"


def _repeated(it: HostileDrone) -> str:
    assert it.order is not None
    first = it.played.journals[it.order.run_id][0]
    sealed = it.seal(first.model_dump(mode="json"), **_own(it))
    for _ in range(3):
        it.ignored_report("event", sealed, "")
    return "collector: an event counts once"


def _jump(it: HostileDrone) -> str:
    assert it.order is not None
    said, binding = _both(it, END, seq=1000)
    it.played.put("event", it.seal(said, **binding))
    wait_until(lambda: it.played.told("resend"))
    if it.client.call(orders.SHOW, order_id=it.order.order_id)["status"] != "running":
        raise GotThrough("the end counted without what is before it")
    return "collector: held back until the drone sends what is missing"


def _resumed(it: HostileDrone) -> str:
    assert it.order is not None
    it.played.report(it.order, ResumedStep(run_id=it.victims.oka_run, seq=1))
    wait_until(lambda: _stored(it) == len(it.played.journals[_run(it)]))
    run = it.client.call(orders.SHOW, order_id=it.order.order_id)["runs"][0]
    if it.victims.oka_run in json.dumps(run):
        raise GotThrough("it continues another's run")
    return "collector: claims about other orders are ignored"


def _foreign_patch(it: HostileDrone) -> str:
    """The report is about its own run; who asks for the patch gets no file that this run did not store."""
    assert it.order is not None
    order_id = it.order.order_id
    it.played.report(it.order, Delivered(patch_sha256=it.victims.mila_patch, patch_bytes=1))
    wait_until(lambda: _stored(it) == len(it.played.journals[_run(it)]))
    shown = it.client.call(orders.SHOW, order_id=order_id)["patch"]
    try:
        raise GotThrough(f"the patch is {it.client.call(orders.PATCH, order_id=order_id)!r}, and shown as {shown!r}")
    except NotFound as error:
        if shown is not None:
            raise GotThrough(f"the patch is shown: {shown!r}") from error
        return f"API: {error.code} for whoever asks for it"


def _run(it: HostileDrone) -> str:
    assert it.order is not None
    return it.order.run_id


def _stored(it: HostileDrone) -> int:
    assert it.order is not None
    return len(it.client.call(orders.SHOW, order_id=it.order.order_id)["steps"])


def _late(it: HostileDrone, body: Doc) -> str:
    assert it.order is not None
    before = _ending(it)
    said = it.event(body)
    it.played.journals[it.order.run_id].append(said)  # type: ignore[arg-type]
    by = it.ignored_report("event", it.seal(said, **_own(it)), "collector: a run ends once")
    if _ending(it) != before:
        raise GotThrough(f"the order is {_ending(it)}, and was {before}")
    return by


def _ending(it: HostileDrone) -> list[Any]:
    assert it.order is not None
    shown = it.client.call(orders.SHOW, order_id=it.order.order_id)
    return [shown[name] for name in ("status", "reason", "attempt", "response")]
