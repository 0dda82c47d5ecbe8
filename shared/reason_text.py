"""The sentences about orders, rendered from `shared.reasons`. They are only for people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from shared.reasons import (
    Answered,
    AnswerOnItsWay,
    AskedAgain,
    AttemptFailed,
    CancelAsked,
    CanceledEnd,
    CannotBeSent,
    DroneState,
    EarlierOrder,
    Ended,
    ForPerson,
    GivenBack,
    InQueue,
    JustSubmitted,
    NamedDroneRemoved,
    NoDrone,
    NoDroneFits,
    NoDroneTakesWork,
    OrderFacts,
    PausesAfterFailure,
    Placed,
    Resumption,
    Returned,
    RunEnd,
    RunLoss,
    TakenBack,
    Waits,
    WithdrawnBeforeStart,
)
from shared.states import OrderStatus


def reason_text(status: OrderStatus, facts: OrderFacts) -> str:
    """The reason shown for an order in this state; empty if the facts do not contain one."""
    match status:
        case OrderStatus.QUEUED:
            return waits_text(facts.waits) if facts.waits else returned_text(facts.returned)
        case OrderStatus.ASSIGNED:
            return _assigned(facts)
        case OrderStatus.RUNNING | OrderStatus.AWAITING_APPROVAL:
            return waits_text(facts.waits) if facts.waits else _placed(facts)
        case OrderStatus.CANCELING:
            return f"cancel asked for {asked_text(facts.cancel)}; waits for the drone's receipt" if facts.cancel else ""
        case _:
            return ended_text(facts.ended, facts.cancel)


def _assigned(facts: OrderFacts) -> str:
    if isinstance(facts.waits, CannotBeSent):
        return waits_text(facts.waits)
    return _joined([_placed(facts), waits_text(facts.waits)])


def _placed(facts: OrderFacts) -> str:
    before = returned_text(facts.returned) if isinstance(facts.returned, TakenBack) else ""
    return _joined([before, placed_text(facts.placed)])


def returned_text(returned: Returned | None) -> str:
    if returned is None:
        return ""
    return _joined([_returned(returned), resumption_text(returned.resumes)])


def _returned(returned: Returned) -> str:
    match returned:
        case TakenBack(state=state):
            return f"taken back from {state.drone}: the drone {state_text(state)}"
        case WithdrawnBeforeStart():
            return "the run was withdrawn before it began"
        case GivenBack(drone=drone, detail=detail):
            return f"given back by {drone}: {detail}"
        case AttemptFailed(attempt=attempt, attempts=attempts):
            what = _lost_or(returned.loss, returned.detail)
            return f"{what}; queued again (attempt {attempt} of {attempts} ended so)"
        case AskedAgain(by=by, from_start=from_start):
            return f"{by or 'a person'} asked for it again{', from the beginning' if from_start else ''}"


_GROUNDS = {
    "workspace": "has the workspace of the last attempt, and a free slot",
    "only_workspace": "it alone has all of the last attempt",
    "only_drone": "the only drone that fits and takes work",
    "repository": "has the repository already, and a free slot",
    "least_work": "the least work in hand",
    "free_slot": "it has a free slot",
    "named": "asked for by name",
}


def placed_text(placed: Placed | None) -> str:
    if placed is None:
        return ""
    grounds = [*(f"has {label}" for label in placed.labels), _GROUNDS[placed.code]]
    return _joined([f"placed on {placed.drone}: {', '.join(grounds)}", resumption_text(placed.resumes)])


def waits_text(waits: Waits | None) -> str:
    match waits:
        case None:
            return ""
        case ForPerson() | AnswerOnItsWay() | Answered():
            return _person_text(waits)
        case JustSubmitted():
            return "was just submitted and is about to be placed"
        case InQueue(state=state):
            return f"waits in {state.drone}'s queue: the drone {state_text(state)}"
        case CannotBeSent(detail=detail):
            return f"cannot be sent to the drone: {detail}"
        case PausesAfterFailure(until=until, attempt=attempt, attempts=attempts, detail=detail):
            return f"tried again at {until:%H:%M:%S} UTC (attempt {attempt} of {attempts}: {detail})"
        case _:
            return _no_drone_text(waits)


def _no_drone_text(
    waits: EarlierOrder | NoDrone | NoDroneFits | NoDroneTakesWork | NamedDroneRemoved,
) -> str:
    match waits:
        case EarlierOrder(order=order):
            return f"waits for order {order} of the same session"
        case NoDrone():
            return "no drone is registered yet (next: fleet token create, then drone register on a workstation)"
        case NoDroneFits(labels=labels, fleet=fleet):
            known = "; ".join(f"{each.drone}: {', '.join(each.labels) or 'none'}" for each in fleet)
            return f"no drone has label {' and '.join(labels)}; labels are {known}"
        case NoDroneTakesWork(states=states):
            return f"no drone that fits takes work now: {'; '.join(f'{s.drone} {state_text(s)}' for s in states)}"
        case NamedDroneRemoved(drone=drone, order=order):
            return f"drone {drone}, which was asked for by name, was removed (next: fleet cancel {order})"


def _person_text(waits: ForPerson | AnswerOnItsWay | Answered) -> str:
    match waits:
        case ForPerson(order=order, tool=tool, why=why):
            return f"waits for a person: may {tool} be run? {why} (next: fleet approve {order}, or fleet deny {order})"
        case AnswerOnItsWay(by=by, tool=tool):
            return f"{by or 'a person'} {_decision(waits.approved)} the call of {tool}; its drone is being told"
        case Answered(by="clock"):
            return "goes on: nobody approved the call in time, so it was denied"
        case Answered(by="interruption"):
            return "goes on: the call that waited was broken off"
        case Answered():
            return f"goes on: a person {_decision(waits.approved)} the call that waited"


def _decision(approved: bool) -> str:
    return "approved" if approved else "denied"


def state_text(state: DroneState) -> str:
    """Continues "the drone"."""
    match state.code:
        case "removed":
            return "was removed"
        case "never_started":
            return "was registered but never started (next: drone start)"
        case "offline" | "unresponsive":
            return f"is {state.code} since {_time(state.since, today=state.today)}"
        case "disk_full":
            return f"takes no work, as its disk is full: {state.detail} (next: make room there)"
        case "leaving":
            return "stops when its run has ended"
        case "draining":
            return f"is draining (next: fleet drone resume {state.drone})"
        case "busy":
            return f"is busy: {state.running} of {state.slots} slots in use"


def resumption_text(resumes: Resumption | None) -> str:
    if resumes is None:
        return ""
    if resumes.step is None:
        return f"begins anew: {_WHY_ANEW[resumes.why_not].format(resumes.drone)}"
    if not resumes.drone:
        return f"goes on from step {resumes.step}"
    elsewhere = f"from step {resumes.elsewhere}" if resumes.elsewhere is not None else "anew"
    return f"goes on from step {resumes.step} on {resumes.drone}, elsewhere {elsewhere}"


_WHY_ANEW = {
    "": "no checkpoint was stored",
    "nothing_done": "nothing had been done yet",
    "lost": "its checkpoint could not be had",
    "expired": "its checkpoints are not stored, or not any more",
    "not_stored": "no checkpoint was stored",
    "drone_cannot": "drone {} cannot go on from checkpoints",
}


def ended_text(ended: Ended | None, cancel: CancelAsked | None) -> str:
    match ended:
        case None:
            return ""
        case CanceledEnd():
            return _canceled_text(ended, cancel)
        case RunEnd():
            last = f"that was the last of {ended.attempts} attempts" if ended.attempts else ""
            what = _lost_or(ended.loss, ended.detail)
            return _joined([what.rstrip("."), _unheard_text(ended)]) if ended.unheard else _joined([what, last])


def _unheard_text(ended: RunEnd) -> str:
    count = ended.unheard
    what = "what a person said last came" if count == 1 else f"{count} things that people said came"
    return f"{what} too late for it (next: fleet submit … --session {ended.session})"


def _canceled_text(ended: CanceledEnd, cancel: CancelAsked | None) -> str:
    what = f"canceled {asked_text(cancel)}" if cancel is not None else "canceled"
    what = f"{what} ({ended.earlier})" if ended.earlier else what
    match ended.code:
        case "before_start":
            return f"{what}, before it began"
        case "with_loss":
            return f"{what}; {loss_text(ended.loss) if ended.loss else ended.detail}"
        case "after_end":
            return f"{what}; it had just ended by itself: {ended.detail}"
        case "with_receipt":
            return what


def asked_text(cancel: CancelAsked) -> str:
    who = f"by {cancel.by}" if cancel.by else "by a person"
    return f"{who}: {cancel.text}" if cancel.text else who


def loss_text(loss: RunLoss) -> str:
    match loss.code:
        case "drone_removed":
            return f"drone {loss.drone} was removed"
        case "drone_silent":
            return f"nothing was heard of drone {loss.drone} since {_time(loss.since, today=loss.today)}"
        case "run_missing":
            return f"drone {loss.drone} beats, but no longer has the run"
        case "drone_restarted":
            return f"drone {loss.drone} was started again, and the run did not survive that"


def _lost_or(loss: RunLoss | None, detail: str) -> str:
    return f"lost: {loss_text(loss)}" if loss is not None else detail


def _time(moment: datetime | None, *, today: bool) -> str:
    if moment is None:
        return "the beginning"
    return f"{moment:%H:%M} UTC" if today else f"{moment:%Y-%m-%d %H:%M} UTC"


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(filter(None, parts))
