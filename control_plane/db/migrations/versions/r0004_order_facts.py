"""Why an order is where it is becomes columns; the sentences that the version before stored are parsed here, once.

A sentence that none of the patterns knows stays as it is: the order shows the stored text until it moves on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import ForeignText

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

Facts = dict[str, Any]
_BATCH = 1000
_FACTS = ("returned_because", "placed_because", "waits_because", "ended_because")
_ORDERS = sa.table(
    "orders",
    sa.column("id", sa.String),
    sa.column("status", sa.String),
    sa.column("generation", sa.Integer),
    sa.column("reason", sa.Text),
    sa.column("explained", sa.String),
    sa.column("cancel_asked_by", sa.String),
    sa.column("cancel_text", sa.Text),
    *(sa.column(name, sa.JSON(none_as_null=True)) for name in _FACTS),
)


def upgrade() -> None:
    op.add_column("orders", sa.Column("explained", sa.String(40)))
    for name in _FACTS:
        op.add_column("orders", sa.Column(name, sa.JSON(none_as_null=True)))
    op.add_column("orders", sa.Column("cancel_asked_by", sa.String(128)))
    op.add_column("orders", sa.Column("cancel_text", ForeignText))
    connection, now = op.get_bind(), datetime.now(UTC)
    for row in _rows(connection):
        if facts := _facts_or_none(row.status, row.reason, now):
            values = {"explained": f"{row.status}/{row.generation}", **facts}
            connection.execute(sa.update(_ORDERS).where(_ORDERS.c.id == row.id).values(**values))


def downgrade() -> None:
    raise NotImplementedError("who canceled orders since would be gone; restore a backup instead")


def _facts_or_none(status: str, reason: str, now: datetime) -> Facts | None:
    try:
        return facts_of(status, reason, now)
    except ValueError:
        # People and models write into these sentences, also what looks like a time and is none.
        return None


def _rows(connection: sa.Connection) -> Iterator[Any]:
    """The orders, a batch at a time: a table of any size is converted in the same memory."""
    columns = sa.select(_ORDERS.c.id, _ORDERS.c.status, _ORDERS.c.generation, _ORDERS.c.reason)
    last = ""
    while rows := connection.execute(columns.where(_ORDERS.c.id > last).order_by(_ORDERS.c.id).limit(_BATCH)).all():
        yield from rows
        last = rows[-1].id


# --- the sentences of revision 0003, as they were ---------------------------------------

_NAME = r"[^\s;:,]+"
_TIME = r"the beginning|\d\d:\d\d UTC|\d{4}-\d\d-\d\d \d\d:\d\d UTC"
_STATE = (
    rf"was removed|was registered but never started \(next: drone start\)|is (?:offline|unresponsive) since (?:{_TIME})"
    r"|takes no work, as its disk is full: .+? \(next: make room there\)|stops when its run has ended"
    rf"|is draining \(next: fleet drone resume {_NAME}\)|is busy: \d+ of \d+ slots in use"
)
_RESUMES = rf"begins anew: .+?|goes on from step \d+(?: on (?:{_NAME}|its drone), elsewhere (?:anew|from step \d+))?"
_LOSS = (
    rf"drone {_NAME} was removed|nothing was heard of drone {_NAME} since (?:{_TIME})"
    rf"|drone {_NAME} beats, but no longer has the run"
    rf"|drone {_NAME} was started again, and the run did not survive that"
)
_ANEW = {
    "its checkpoint could not be had": "lost",
    "its checkpoints are not stored, or not any more": "expired",
    "no checkpoint was stored": "not_stored",
    "nothing had been done yet": "nothing_done",
}
_GROUNDS = {
    "asked for by name": "named",
    "has the workspace of the last attempt, and a free slot": "workspace",
    "it alone has all of the last attempt": "only_workspace",
    "the only drone that fits and takes work": "only_drone",
    "has the repository already, and a free slot": "repository",
    "the least work in hand": "least_work",
    "it has a free slot": "free_slot",
}
_GROUND = "|".join(map(re.escape, _GROUNDS))


def facts_of(status: str, reason: str, now: datetime) -> Facts | None:
    """The columns that this sentence becomes; None for a sentence that no pattern knows."""
    read = {
        "queued": _queued,
        "assigned": _assigned,
        "running": _running,
        "awaiting_approval": _awaiting,
        "canceling": _canceling,
        "canceled": _canceled,
    }.get(status, _ended)
    return read(reason, now)


def _match(pattern: str, text: str) -> re.Match[str] | None:
    return re.fullmatch(pattern, text, re.DOTALL)


def _queued(reason: str, now: datetime) -> Facts | None:
    for read in (_waits, _returned):
        if found := read(reason, now):
            return found
    return None


def _waits(reason: str, now: datetime) -> Facts | None:
    for pattern, read in _WAITS:
        if (found := _match(pattern, reason)) and (waits := read(found, now)):
            return {"waits_because": waits}
    return None


def _no_drone_fits(found: re.Match[str], _now: datetime) -> Facts:
    fleet = [each.partition(": ") for each in found["fleet"].split("; ")]
    known = [{"drone": name, "labels": [] if labels == "none" else labels.split(", ")} for name, _, labels in fleet]
    return {"code": "no_drone_fits", "labels": found["labels"].split(" and "), "fleet": known}


def _none_takes_work(found: re.Match[str], now: datetime) -> Facts | None:
    parts = [_match(rf"(?P<drone>{_NAME}) (?P<state>{_STATE})", each) for each in found["states"].split("; ")]
    if not all(parts):
        return None
    states = [_state(part["drone"], part["state"], now) for part in parts if part]
    return {"code": "no_drone_takes_work", "states": states}


def _pause(found: re.Match[str], now: datetime) -> Facts:
    hour, minute, second = map(int, found["until"].split(":"))
    at = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    until = min((at + timedelta(days=days) for days in (-1, 0, 1)), key=lambda each: abs(each - now))
    attempts = {"attempt": int(found["attempt"]), "attempts": int(found["attempts"])}
    return {"code": "pauses_after_failure", "until": until.isoformat(), **attempts, "detail": found["detail"]}


_WAITS: tuple[tuple[str, Callable[[re.Match[str], datetime], Facts | None]], ...] = (
    (r"was just (?:submitted|written) and is about to be placed", lambda _f, _n: {"code": "just_submitted"}),
    (r"waits for order (?P<o>\S+) of the same session", lambda f, _n: {"code": "earlier_order", "order": f["o"]}),
    (
        r"no drone is registered yet \(next: fleet token create, then drone register on a workstation\)",
        lambda _f, _n: {"code": "no_drone"},
    ),
    (r"no drone has label (?P<labels>.+?); labels are (?P<fleet>.+)", _no_drone_fits),
    (r"no drone that fits takes work now: (?P<states>.+)", _none_takes_work),
    (
        rf"drone (?P<d>{_NAME}), which was asked for by name, was removed \(next: fleet cancel (?P<o>\S+)\)",
        lambda f, _n: {"code": "named_drone_removed", "drone": f["d"], "order": f["o"]},
    ),
    (
        r"tried again at (?P<until>[\d:]{8}) UTC \(attempt (?P<attempt>\d+) of (?P<attempts>\d+): (?P<detail>.*)\)",
        _pause,
    ),
)


def _returned(reason: str, now: datetime) -> Facts | None:
    found = _match(rf"(?P<what>.+?)(?:; (?P<resumes>{_RESUMES}))?", reason)
    what = _returned_because(found["what"], now) if found else None
    return {"returned_because": {**what, "resumes": _resumption(found["resumes"])}} if found and what else None


def _returned_because(what: str, now: datetime) -> Facts | None:
    if found := _match(rf"taken back from (?P<drone>{_NAME}): the drone (?P<state>{_STATE})", what):
        return {"code": "taken_back", "state": _state(found["drone"], found["state"], now)}
    if what == "the run was withdrawn before it began":
        return {"code": "withdrawn"}
    if found := _match(rf"given back by (?P<drone>{_NAME}): (?P<detail>.*)", what):
        return {"code": "given_back", **found.groupdict()}
    if found := _match(r"(?P<text>.*); queued again \(attempt (?P<n>\d+) of (?P<of>\d+) ended so\)", what):
        return {
            "code": "run_failed",
            **_lost_or(found["text"], now),
            "attempt": int(found["n"]),
            "attempts": int(found["of"]),
        }
    if found := _match(r"(?P<by>.*?) asked for it again(?P<start>, from the beginning)?", what):
        by = "" if found["by"] == "a person" else found["by"]
        return {"code": "asked_again", "by": by, "from_start": bool(found["start"])}
    return None


def _assigned(reason: str, now: datetime) -> Facts | None:
    if found := _match(r"cannot be sent to the drone: (?P<detail>.*)", reason):
        return {"waits_because": {"code": "cannot_be_sent", "detail": found["detail"]}}
    found = _match(rf"(?P<placed>.+?)(?:; waits in (?P<drone>{_NAME})'s queue: the drone (?P<state>{_STATE}))?", reason)
    placed = _placed(found["placed"], now) if found else None
    if found is None or placed is None:
        return None
    waits = {"code": "in_queue", "state": _state(found["drone"], found["state"], now)} if found["drone"] else None
    return {**placed, "waits_because": waits}


def _placed(reason: str, now: datetime) -> Facts | None:
    found = _match(
        rf"(?:(?P<returned>taken back from .+?); )?placed on (?P<drone>{_NAME}): (?P<labels>(?:has [^;]+?, )*)"
        rf"(?P<ground>{_GROUND})(?:; (?P<resumes>{_RESUMES}))?",
        reason,
    )
    if found is None:
        return None
    returned = _returned(found["returned"], now) if found["returned"] else {}
    placed = {
        "code": _GROUNDS[found["ground"]],
        "drone": found["drone"],
        "labels": [label.removeprefix("has ") for label in found["labels"].split(", ") if label],
        "resumes": _resumption(found["resumes"]),
    }
    return {**returned, "placed_because": placed} if returned is not None else None


def _running(reason: str, now: datetime) -> Facts | None:
    if found := _match(
        r"(?P<by>.*) (?P<how>approved|denied) the call of (?P<tool>\S+); its drone is being told", reason
    ):
        by = "" if found["by"] == "a person" else found["by"]
        answer = {"by": by, "approved": found["how"] == "approved", "tool": found["tool"]}
        return {"waits_because": {"code": "answer_on_its_way", **answer}}
    if reason in _GOES_ON:
        by, approved = _GOES_ON[reason]
        return {"waits_because": {"code": "answered", "by": by, "approved": approved}}
    return _placed(reason, now)


_GOES_ON = {
    "goes on: nobody approved the call in time, so it was denied": ("clock", False),
    "goes on: the call that waited was broken off": ("interruption", False),
    "goes on: a person approved the call that waited": ("person", True),
    "goes on: a person denied the call that waited": ("person", False),
}


def _awaiting(reason: str, now: datetime) -> Facts | None:
    asked = (
        r"waits for a person: may (?P<tool>\S+) be run\? (?P<why>.*) "
        r"\(next: fleet approve (?P<order>\S+), or fleet deny (?P=order)\)"
    )
    if found := _match(asked, reason):
        return {"waits_because": {"code": "for_person", **found.groupdict()}}
    return _running(reason, now)


def _canceling(reason: str, _now: datetime) -> Facts | None:
    found = _match(r"cancel asked for by (?P<asked>.*); waits for the drone's receipt", reason)
    return _asked(found["asked"]) if found else None


def _canceled(reason: str, now: datetime) -> Facts:
    for pattern, code in _CANCELED:
        if found := _match(rf"canceled by {pattern}", reason):
            ended = {"code": code, **{key: value for key, value in found.groupdict().items() if key == "detail"}}
            if code == "with_loss":
                ended["loss"] = _loss(found["loss"], now)
            return {**_asked(found["asked"]), "ended_because": ended}
    return _ended(reason, now)


_CANCELED = (
    (r"(?P<asked>.*), before it began", "before_start"),
    (r"(?P<asked>.*?); it had just ended by itself: (?P<detail>.*)", "after_end"),
    (rf"(?P<asked>.*); (?P<loss>{_LOSS})", "with_loss"),
    (r"(?P<asked>.*)", "with_receipt"),
)


def _asked(asked: str) -> Facts:
    who, _, text = asked.partition(": ")
    return {"cancel_asked_by": "" if who == "a person" else who, "cancel_text": text}


def _ended(reason: str, now: datetime) -> Facts:
    late = r"(?:what a person said last came|(?P<n>\d+) things that people said came) too late for it"
    if found := _match(rf"(?P<text>.*); {late} \(next: fleet submit … --session (?P<session>\S+)\)", reason):
        unheard = {"unheard": int(found["n"] or 1), "session": found["session"]}
        return {"ended_because": {"code": "run_ended", **_lost_or(found["text"], now), **unheard}}
    found = _match(r"(?P<text>.*?)(?:; that was the last of (?P<attempts>\d+) attempts)?", reason)
    text, attempts = (found["text"], int(found["attempts"] or 0)) if found else (reason, 0)
    return {"ended_because": {"code": "run_ended", **_lost_or(text, now), "attempts": attempts}}


def _lost_or(text: str, now: datetime) -> Facts:
    found = _match(rf"lost: (?P<loss>{_LOSS})", text)
    return {"loss": _loss(found["loss"], now)} if found else {"detail": text}


def _loss(text: str, now: datetime) -> Facts:
    for pattern, code in (
        (r"drone (?P<drone>\S+) was removed", "drone_removed"),
        (r"drone (?P<drone>\S+) beats, but .*", "run_missing"),
        (r"drone (?P<drone>\S+) was started again, .*", "drone_restarted"),
    ):
        if found := _match(pattern, text):
            return {"code": code, "drone": found["drone"]}
    found = _match(r"nothing was heard of drone (?P<drone>\S+) since (?P<since>.*)", text)
    assert found is not None
    return {"code": "drone_silent", "drone": found["drone"], **_since(found["since"], now)}


def _state(drone: str, text: str, now: datetime) -> Facts:
    if found := _match(r"is (?P<code>offline|unresponsive) since (?P<since>.*)", text):
        return {"drone": drone, "code": found["code"], **_since(found["since"], now)}
    if found := _match(r"is busy: (?P<running>\d+) of (?P<slots>\d+) slots in use", text):
        return {"drone": drone, "code": "busy", "running": int(found["running"]), "slots": int(found["slots"])}
    if found := _match(r"takes no work, as its disk is full: (?P<detail>.*) \(next: make room there\)", text):
        return {"drone": drone, "code": "disk_full", "detail": found["detail"]}
    known = {"was": "removed", "stops": "leaving", "is": "draining"}
    return {"drone": drone, "code": "never_started" if "registered" in text else known[text.split(maxsplit=1)[0]]}


def _since(text: str, now: datetime) -> Facts:
    """A time without a day was of the day on which it was written: the last such time is taken."""
    if text == "the beginning":
        return {"since": None}
    if " " in text.removesuffix(" UTC"):
        at = datetime.strptime(text, "%Y-%m-%d %H:%M UTC").replace(tzinfo=UTC)
        return {"since": at.isoformat(), "today": False}
    hour, minute = map(int, text.removesuffix(" UTC").split(":"))
    at = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return {"since": (at if at <= now else at - timedelta(days=1)).isoformat(), "today": True}


def _resumption(text: str | None) -> Facts | None:
    if text is None:
        return None
    if found := _match(r"begins anew: drone (?P<drone>\S+) cannot go on from checkpoints", text):
        return {"drone": found["drone"], "why_not": "drone_cannot"}
    if text.startswith("begins anew: "):
        return {"why_not": _ANEW.get(text.removeprefix("begins anew: "), "")}
    found = _match(
        r"goes on from step (?P<step>\d+)(?: on (?P<drone>.+), elsewhere (?:anew|from step (?P<n>\d+)))?", text
    )
    assert found is not None
    elsewhere = int(found["n"]) if found["n"] else None
    return {"step": int(found["step"]), "drone": found["drone"] or "", "elsewhere": elsewhere}
