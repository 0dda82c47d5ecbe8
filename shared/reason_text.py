"""The sentences about orders, rendered from `shared.reasons`. They are only for people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from shared.reasons import (
    AfterOrder,
    Answered,
    AnswerOnItsWay,
    AskedAgain,
    AttemptFailed,
    CancelAsked,
    CanceledEnd,
    CannotBeSent,
    Continued,
    DroneScore,
    DroneState,
    EarlierOrder,
    Ended,
    FailedOnDrone,
    ForPerson,
    ForPool,
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
    RaceBase,
    Rearranged,
    RefusedByDrone,
    Resumption,
    Returned,
    RunEnd,
    RunLoss,
    TakenBack,
    Waits,
    WithdrawnBeforeStart,
)
from shared.states import OrderStatus
from shared.titles import title

QUESTION = 200
"""Characters of a question in a reason; `waiting_for` has all of it."""


RAISES = {"cost": "--raise USD", "steps": "--raise-steps N", "time": "--raise-seconds N"}
"""The option of `fleet approve` that raises a limit."""


def reason_text(status: OrderStatus, facts: OrderFacts) -> str:
    """The reason shown for an order in this state; empty if the facts do not contain one."""
    match status:
        case OrderStatus.QUEUED:
            return waits_text(facts.waits) if facts.waits else returned_text(facts.returned)
        case OrderStatus.ASSIGNED:
            return _assigned(facts)
        case OrderStatus.RUNNING | OrderStatus.AWAITING_APPROVAL:
            return waits_text(facts.waits) if facts.waits else _placed(facts)
        case OrderStatus.CANCELING if facts.cancel is not None:
            return f"cancel requested {asked_text(facts.cancel)}; waiting for the drone to confirm"
        case OrderStatus.CANCELING:
            return ""
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
            return f"removed from {state.drone}'s queue: the drone {state_text(state)}"
        case WithdrawnBeforeStart():
            return "the run was withdrawn before it started"
        case GivenBack(drone=drone, detail=detail):
            return f"returned by {drone}: {detail}"
        case RefusedByDrone(drone=drone, detail=detail):
            return f"refused by {drone}: {detail}; queued for another drone"
        case FailedOnDrone(drone=drone, detail=detail):
            return f"failed on {drone}: {detail.rstrip('.')}; queued for another drone"
        case AttemptFailed(attempt=attempt, attempts=attempts):
            what = loss_text(returned.loss) if returned.loss is not None else returned.detail
            return f"attempt {attempt} of {attempts} failed: {what.rstrip('.')}; queued again"
        case AskedAgain() | Rearranged() | Continued():
            return _by_a_user(returned)


def _by_a_user(returned: AskedAgain | Rearranged | Continued) -> str:
    if isinstance(returned, Continued):
        return _person_text(returned.answered)
    by = returned.by or "a user"
    if isinstance(returned, Rearranged):
        return f"moved in the queue by {by}"
    return f"requested again by {by}{'; starts from the beginning' if returned.from_start else ''}"


_GROUNDS = {
    "workspace": "has the last attempt's workspace and a free slot",
    "only_workspace": "the only drone with all of the last attempt's work",
    "only_drone": "the only matching drone that accepts work",
    "repository": "has the repository and a free slot",
    "least_work": "lowest load",
    "free_slot": "has a free slot",
    "named": "requested by name",
}


def placed_text(placed: Placed | None) -> str:
    if placed is None:
        return ""
    grounds = [*(f"has {label}" for label in placed.labels), _GROUNDS[placed.code]]
    return _joined([f"assigned to {placed.drone} ({', '.join(grounds)})", resumption_text(placed.resumes)])


_PARTS = {
    "queue_s": "queue",
    "clone_s": "clone",
    "share_s": "shared machine",
    "spread_s": "same race",
    "permit_s": "rate limit",
    "hours_s": "owner's hours",
}
"""What the parts of a score are for."""


def score_text(score: DroneScore) -> str:
    """A drone's score and its parts; `mila 62 s (clone 60 s, shared machine 2 s)`."""
    found = ((word, getattr(score, name)) for name, word in _PARTS.items())
    parts = ", ".join(f"{word} {seconds:.0f} s" for word, seconds in found if seconds >= 0.5)
    return f"{score.drone} {score.seconds:.0f} s" + (f" ({parts})" if parts else "")


def waits_text(waits: Waits | None) -> str:
    match waits:
        case None:
            return ""
        case ForPerson() | AnswerOnItsWay() | Answered():
            return _person_text(waits)
        case JustSubmitted():
            return "just submitted; about to be assigned to a drone"
        case InQueue(state=state):
            return f"waiting in {state.drone}'s queue: the drone {state_text(state)}"
        case CannotBeSent(detail=detail):
            return f"cannot be sent to the drone: {detail}"
        case PausesAfterFailure(until=until, attempt=attempt, attempts=attempts, detail=detail):
            return f"attempt {attempt} of {attempts} failed: {detail.rstrip('.')}; retrying at {until:%H:%M:%S} UTC"
        case ForPool(pool=pool, drones=drones, at_most=at_most):
            there = "is" if drones == 1 else "are"
            return f"waits for a drone of the pool {pool} ({drones} of at most {at_most} {there} there)"
        case _:
            return _no_drone_text(waits)


def _no_drone_text(
    waits: EarlierOrder | AfterOrder | RaceBase | NoDrone | NoDroneFits | NoDroneTakesWork | NamedDroneRemoved,
) -> str:
    match waits:
        case AfterOrder():
            return _after_text(waits)
        case RaceBase(order=order):
            return f"waiting until order {order} has found the commit that all orders of the race start from"
        case EarlierOrder(order=order):
            return f"waiting for order {order} of the same session"
        case NoDrone():
            return "no drone is registered yet (next: fleet token add, then drone register on a workstation)"
        case NoDroneFits(labels=labels, fleet=fleet):
            known = "; ".join(f"{each.drone}: {', '.join(each.labels) or 'none'}" for each in fleet)
            return f"no drone has label {' and '.join(labels)}; labels by drone: {known}"
        case NoDroneTakesWork(states=states):
            return f"no matching drone accepts work: {'; '.join(f'{s.drone} {state_text(s)}' for s in states)}"
        case NamedDroneRemoved(drone=drone, order=order):
            return f"the requested drone {drone} was removed (next: fleet cancel {order})"


def _after_text(waits: AfterOrder) -> str:
    if waits.status == "open":
        return f"waiting for order {waits.order} to succeed"
    ended = "failed" if waits.status == "failed" else "was canceled"
    choices = f"fleet retry {waits.order}, fleet resume {waits.order}, or fleet cancel {waits.waiting}"
    return f"waiting for order {waits.order} to succeed, but it {ended} (next: {choices})"


def _person_text(waits: ForPerson | AnswerOnItsWay | Answered) -> str:
    match waits:
        case ForPerson():
            return _asked_text(waits)
        case AnswerOnItsWay(about="question", by=by):
            return f"{by or 'a user'} answered the question; waiting for the drone to confirm"
        case AnswerOnItsWay(about="plan", by=by):
            word = "approved the plan" if waits.approved else "sent the plan back"
            return f"{by or 'a user'} {word}; waiting for the drone to confirm"
        case AnswerOnItsWay(by=by, tool=tool):
            what = f"the {tool}" if tool in {"delivery", "model call", "branch", "run"} else f"the {tool} call"
            return f"{by or 'a user'} {_decision(waits.approved)} {what}; waiting for the drone to confirm"
        case Answered():
            texts = {"question": _question_text, "plan": _plan_text}
            return f"continuing: {texts.get(waits.about, _decision_text)(waits)}"


def _asked_text(asked: ForPerson) -> str:
    order, why = asked.order, asked.why
    match asked.about:
        case "limit":
            choices = f"fleet approve {order} {RAISES[asked.limit]}, fleet deny {order}"
            choices += f", or fleet deny {order} --finish" if asked.limit == "cost" else ""
            return f"waiting for a decision: {why} (next: {choices})"
        case "budget":
            return f"waiting for a decision: {why} (next: when it is raised, fleet approve {order}; fleet deny {order})"
        case "branch":
            return f"waiting for a decision: {why} (next: fleet approve {order}, or fleet deny {order})"
        case "question":
            return f"waiting for an answer: {title(why, QUESTION)} (next: fleet answer {order})"
        case "plan":
            choices = f"fleet plan show {order}, fleet plan approve {order}"
            return f"waiting for approval of the plan: {title(why, QUESTION)} (next: {choices})"
        case _:
            return f"waiting for approval of {asked.tool}: {why} (next: fleet approve {order}, or fleet deny {order})"


def _decision_text(answered: Answered) -> str:
    match answered.by:
        case "clock":
            return "the call was not approved in time and was denied automatically"
        case "interruption":
            return "the pending call was interrupted"
        case "person":
            return f"a user {_decision(answered.approved)} the pending call"


def _question_text(answered: Answered) -> str:
    match answered.by:
        case "clock":
            default = "its default counts" if answered.approved else "it has no default"
            return f"the question was not answered in time; {default}"
        case "interruption":
            return "the question was interrupted"
        case "person":
            return "a user answered the question"


def _plan_text(answered: Answered) -> str:
    match answered.by:
        case "clock":
            return "the plan was not approved in time"
        case "interruption":
            return "the plan was interrupted"
        case "person":
            return f"a user {'approved the plan' if answered.approved else 'sent the plan back'}"


def _decision(approved: bool) -> str:
    return "approved" if approved else "denied"


_STATES = {
    "removed": "was removed",
    "keys_revoked": "has no keys, because they were revoked (next: drone register)",
    "never_started": "was registered but never started (next: drone start)",
    "over_quota": "filled more of the broker's memory than its quota and may not write there "
    "(next: fleet help E-DRONE-QUOTA)",
    "leaving": "stops after its current run",
}


def state_text(state: DroneState) -> str:
    """Continues "the drone"."""
    match state.code:
        case "offline" | "unresponsive":
            return f"has been {state.code} since {_time(state.since, today=state.today)}"
        case "disk_full":
            return f"accepts no work because its disk is full: {state.detail} (next: free disk space there)"
        case "withheld":
            return f"accepts no work now by its owner's policy: {state.detail}"
        case "refuses":
            return f"refused this order: {state.detail} (next: submit it for another drone, or ask the drone's owner)"
        case "unsuitable":
            return f"cannot run this order: {state.detail}"
        case "draining":
            return f"is draining (next: fleet drone resume {state.drone})"
        case "busy":
            return f"is busy: {state.running} of {state.slots} slots in use"
        case _:
            return _STATES[state.code]


def resumption_text(resumes: Resumption | None) -> str:
    if resumes is None:
        return ""
    if resumes.step is None:
        return f"starts over: {_WHY_ANEW[resumes.why_not]}"
    if not resumes.drone:
        return f"resumes from step {resumes.step}"
    elsewhere = f"from step {resumes.elsewhere}" if resumes.elsewhere is not None else "from the beginning"
    return f"resumes from step {resumes.step} on {resumes.drone}, or {elsewhere} on another drone"


_WHY_ANEW = {
    "": "no checkpoint was stored",
    "nothing_done": "nothing had been done yet",
    "lost": "its checkpoint was unavailable",
    "expired": "its checkpoints were not stored or were deleted",
    "not_stored": "no checkpoint was stored",
}


def ended_text(ended: Ended | None, cancel: CancelAsked | None) -> str:
    match ended:
        case None:
            return ""
        case CanceledEnd():
            return _canceled_text(ended, cancel)
        case RunEnd():
            last = f"last of {ended.attempts} attempts" if ended.attempts else ""
            last = f"so it was on {ended.drones} drones" if ended.drones else last
            what = _lost_or(ended.loss, ended.detail)
            return _joined([what.rstrip("."), _unheard_text(ended)]) if ended.unheard else _joined([what, last])


def _unheard_text(ended: RunEnd) -> str:
    count = ended.unheard
    what = "1 steering message" if count == 1 else f"{count} steering messages"
    return f"{what} arrived too late (next: fleet submit … --session {ended.session})"


def _canceled_text(ended: CanceledEnd, cancel: CancelAsked | None) -> str:
    what = f"canceled {asked_text(cancel)}" if cancel is not None else "canceled"
    match ended.code:
        case "before_start":
            return f"{what}; it had not started"
        case "with_loss":
            return f"{what}; {loss_text(ended.loss) if ended.loss else ended.detail}"
        case "after_end":
            return f"{what}; it had already ended: {ended.detail}"
        case "with_receipt":
            return what
        case "exported":
            return f"was {ended.detail} when its organization was exported; not included in the export"


def asked_text(cancel: CancelAsked) -> str:
    who = f"by {cancel.by}" if cancel.by else "by a user"
    return f"{who}: {cancel.text}" if cancel.text else who


def loss_text(loss: RunLoss) -> str:
    match loss.code:
        case "drone_removed":
            return f"drone {loss.drone} was removed"
        case "keys_revoked":
            return f"the keys of drone {loss.drone} were revoked"
        case "drone_silent":
            return f"drone {loss.drone} has not reported since {_time(loss.since, today=loss.today)}"
        case "run_missing":
            return f"drone {loss.drone} is online but no longer has the run"
        case "drone_restarted":
            return f"drone {loss.drone} restarted, which ended the run"


def _lost_or(loss: RunLoss | None, detail: str) -> str:
    return f"lost: {loss_text(loss)}" if loss is not None else detail


def _time(moment: datetime | None, *, today: bool) -> str:
    if moment is None:
        return "it was registered"
    return f"{moment:%H:%M} UTC" if today else f"{moment:%Y-%m-%d %H:%M} UTC"


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(filter(None, parts))
