"""What drones say is opened here and nowhere else: an envelope is verified, and so is whom its content speaks for."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar, get_args

from pydantic import ValidationError
from sqlalchemy.orm import Session

from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch
from shared import names
from shared.clock import Clock
from shared.envelope import Binding, CannotOpen, Direction, Opened, check_ids, open_envelope
from shared.events import Beat, Body, Delivered, Delta, Event, GapStep, Hello
from shared.registration import NewKey
from shared.terminal import logs

log = logs.get(__name__)
Report = TypeVar("Report", Event, Hello, Beat, Delta, NewKey)
REPORTS: Mapping[type[Event | Hello | Beat | Delta | NewKey], Direction] = MappingProxyType(
    {Event: "event", Hello: "hello", Beat: "beat", Delta: "live", NewKey: "key"}
)
"""Every kind of report, with the direction that its envelopes are bound to."""
_REPEAT_AFTER_S = 600.0
_KNOWN = frozenset(body.model_fields["kind"].default for body in get_args(get_args(Body)[0]))


class InvalidReport(Exception):
    """The report is not its sender's, or cannot be read; a retry would not change that."""


class ForeignRun(InvalidReport):
    """The report is about a run that was not given to its sender."""


@dataclass(frozen=True)
class ReportSender:
    """A drone as the name of its stream or channel, and the keys that it registered, authenticate it."""

    drone_id: str
    public_keys: tuple[bytes, ...]
    """The registered one, and the one that replaces it, if the drone was given one."""
    drone_of_run: Callable[[str], str | None]
    """The id of the drone that was given a run; None for an unknown run."""


def sender_of(db: Session, drone: Drone) -> ReportSender:
    """The drone as the sender of reports. Runs are looked up in this session, each once."""
    # Rows rather than ids: the session forgets a row that nothing refers to, and its next user would read it again.
    known: dict[str, Dispatch | None] = {}

    def drone_of_run(run_id: str) -> str | None:
        if run_id not in known:
            known[run_id] = db.get(Dispatch, run_id)
        dispatch = known[run_id]
        return dispatch.drone_id if dispatch is not None else None

    keys = (base64.b64decode(key) for key in (drone.public_key, drone.next_public_key) if key)
    return ReportSender(drone.id, tuple(keys), drone_of_run)


def open_report(kind: type[Report], envelope: str, sender: ReportSender, keys: Mapping[str, bytes]) -> Report:
    """The report in an envelope, without entries about runs of other drones.

    `keys` are the control plane's private keys. Raises InvalidReport if the envelope is not from the sender, or if the
    content names another drone, order, run or generation than the envelope; ForeignRun if all of it is about a run of
    another drone.
    """
    opened = _opened(envelope, Binding(direction=REPORTS[kind], drone=sender.drone_id), sender, keys)
    report = _read(kind, opened.body)
    try:
        check_ids(report, opened.binding)
    except CannotOpen as error:
        raise InvalidReport(str(error)) from error
    if isinstance(report, Event) and isinstance(report.body, Delivered):
        _check_branches(report.order_id, report.body)
    return _of_own_runs(report, sender)


def _check_branches(order_id: str, work: Delivered) -> None:
    """Raise InvalidReport unless the work is on branches of its own order: people and later orders check them out."""
    late = names.late_branch(order_id, 0).removesuffix("0")
    is_late = work.late_ref is None or (work.late_ref.startswith(late) and work.late_ref.removeprefix(late).isdecimal())
    if work.branch not in {None, names.branch(order_id)} or not is_late:
        raise InvalidReport(f"the work is on a branch of another order: {(work.branch, work.late_ref)}"[:500])


def _opened(envelope: str, expect: Binding, sender: ReportSender, keys: Mapping[str, bytes]) -> Opened:
    """The envelope's content, if it is from one of the sender's keys."""
    refusal: CannotOpen | None = None
    for key in sender.public_keys:
        try:
            return open_envelope(envelope, recipients=keys, sender=key, expect=expect)
        except CannotOpen as error:
            refusal = refusal or error
    raise InvalidReport(f"the envelope cannot be opened: {refusal}") from refusal


def _read(kind: type[Report], text: str) -> Report:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        newer = _newer_event(text) if kind is Event else None
        if isinstance(newer, kind):
            return newer
        what = f"not a valid {kind.__name__.lower()}"
        raise InvalidReport(f"{what}: {error.error_count()} invalid fields: {error}"[:500]) from error


def _of_own_runs(report: Report, sender: ReportSender) -> Report:
    if isinstance(report, NewKey):
        return report
    if isinstance(report, (Event, Delta)):
        if sender.drone_of_run(report.run_id) != sender.drone_id:
            raise ForeignRun(f"run {report.run_id} does not belong to this drone")
        return report
    # Dropped, not refused: a home that was registered anew still contains the runs of its former drone.
    own = tuple(run for run in report.runs if sender.drone_of_run(run.run_id) in {None, sender.drone_id})
    return report.model_copy(update={"runs": own})


class RefusalLog:
    """Logs that reports of a drone are refused: at most once in ten minutes, as one drone can send any number."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logged_at: dict[str, float] = {}

    def note(self, what: str, drone_id: str, error: Exception) -> None:
        now = self._clock.monotonic()
        if now - self._logged_at.get(drone_id, float("-inf")) >= _REPEAT_AFTER_S:
            self._logged_at[drone_id] = now
            log.warning(what, drone=drone_id, why=str(error)[:300])


def _newer_event(text: str) -> Event | None:
    """A placeholder for an event of an unknown kind; None for any other text.

    Without it the run would have a gap, and its end would wait until the gap was given up.
    """
    try:
        said = json.loads(text)
        kind = said["body"]["kind"]
        if kind in _KNOWN:
            return None
        why = f"the drone is newer than this control plane: unknown event kind {str(kind)[:40]!r}"
        return Event.model_validate({**said, "body": GapStep(missing=1, why=why).model_dump()})
    except (ValueError, TypeError, KeyError, RecursionError, ValidationError):
        return None
