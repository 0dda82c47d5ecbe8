"""The reasons for a work order's state as typed facts; `shared.reason_text` renders them as sentences for people.

Codes and fields are stored: they are only ever added.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.wire import Wire

NoCheckpoint = Literal["", "nothing_done", "lost", "expired", "not_stored"]


class Resumption(Wire):
    """Where the next run begins: after a step, or from the start."""

    step: int | None = None
    """None: it begins from the start."""
    drone: str = ""
    """The only drone that can continue after `step`; empty: any."""
    elsewhere: int | None = None
    """With `drone`: the step after which any other drone would continue; None: from the start."""
    why_not: NoCheckpoint = ""
    """Why it begins from the start."""


class DroneState(Wire):
    """Why a drone does not start an order."""

    drone: str
    code: Literal[
        "removed",
        "keys_revoked",
        "never_started",
        "offline",
        "unresponsive",
        "over_quota",
        "disk_full",
        "withheld",
        "refuses",
        "unsuitable",
        "leaving",
        "draining",
        "busy",
    ]
    """`withheld`: its owner's policy allows no order now; `refuses`: it does not allow this order; `unsuitable`: the
    order failed there, and would again.
    """
    since: datetime | None = None
    today: bool = True
    """Whether `since` was on the day when this was written: then the time of day is sufficient."""
    detail: str = ""
    running: int = 0
    slots: int = 0


class RunLoss(Wire):
    """Why a run was declared lost without its drone."""

    code: Literal["drone_removed", "keys_revoked", "drone_silent", "run_missing", "drone_restarted"]
    drone: str
    since: datetime | None = None
    today: bool = True


# --- why it is in the queue again ---------------------------------------------------------


class TakenBack(Wire):
    """It was removed from the queue of a drone that did not start it."""

    code: Literal["taken_back"] = "taken_back"
    state: DroneState
    resumes: Resumption | None = None


class WithdrawnBeforeStart(Wire):
    """Its run was withdrawn before it began."""

    code: Literal["withdrawn"] = "withdrawn"
    resumes: Resumption | None = None


class GivenBack(Wire):
    """Its drone returned it."""

    code: Literal["given_back"] = "given_back"
    drone: str
    detail: str
    resumes: Resumption | None = None


class RefusedByDrone(Wire):
    """The policy of its drone's owner does not allow it."""

    code: Literal["refused_by_drone"] = "refused_by_drone"
    drone: str
    detail: str
    resumes: Resumption | None = None


class FailedOnDrone(Wire):
    """Its drone lacks something that it needs; another drone may have it."""

    code: Literal["failed_on_drone"] = "failed_on_drone"
    drone: str
    detail: str
    resumes: Resumption | None = None


class AttemptFailed(Wire):
    """Its run failed through a fault of the fleet, and another attempt is left."""

    code: Literal["run_failed"] = "run_failed"
    detail: str = ""
    loss: RunLoss | None = None
    attempt: int
    attempts: int
    resumes: Resumption | None = None


class AskedAgain(Wire):
    """A person resubmitted an ended order."""

    code: Literal["asked_again"] = "asked_again"
    by: str
    """Empty: a person without a name."""
    from_start: bool = False
    """It was requested to begin from the start, even if it could continue."""
    resumes: Resumption | None = None


class Rearranged(Wire):
    """A user moved it, or another order before it, in the queues."""

    code: Literal["rearranged"] = "rearranged"
    by: str
    """Empty: a person without a name."""
    resumes: Resumption | None = None


class Answered(Wire):
    """The approval it waited for was decided; it no longer waits."""

    code: Literal["answered"] = "answered"
    about: str = "approval"
    by: Literal["person", "clock", "interruption"]
    approved: bool = False


class Continued(Wire):
    """The wait at which its run was suspended is over."""

    code: Literal["continued"] = "continued"
    answered: Answered
    resumes: Resumption | None = None


Returned = Annotated[
    TakenBack
    | WithdrawnBeforeStart
    | GivenBack
    | RefusedByDrone
    | FailedOnDrone
    | AttemptFailed
    | AskedAgain
    | Rearranged
    | Continued,
    Field(discriminator="code"),
]

# --- why it was placed on its drone -------------------------------------------------------


class Placed(Wire):
    """Why this drone was chosen."""

    code: Literal["named", "workspace", "only_workspace", "only_drone", "repository", "least_work", "free_slot"]
    drone: str
    labels: tuple[str, ...] = ()
    resumes: Resumption | None = None


class DroneScore(Wire):
    """How a drone was scored for an order; all parts are seconds, and the lowest sum is the best."""

    drone: str
    free: bool
    """It had a free slot; such a drone goes before all others."""
    seconds: float
    """The sum of the parts: about how long until its work begins there, and what counts against the drone."""
    queue_s: float = 0.0
    """Until one of its slots is free, by what runs of the project usually take."""
    clone_s: float = 0.0
    """Cloning the repository, by what that took before; 0: it ran the project before and has a mirror."""
    share_s: float = 0.0
    """What other runs on its machine cost this one."""
    spread_s: float = 0.0
    """It has another order of the same race."""
    permit_s: float = 0.0
    """Until the rate limit of the drone's own key allows a call."""
    hours_s: float = 0.0
    """By how much the run would exceed its owner's hours."""


class DroneChoice(Wire):
    """How a drone was chosen, as it is kept with the run."""

    placed: Placed
    scores: tuple[DroneScore, ...] = ()
    """The best of the drones that might have taken it, the chosen one first; empty where there was no choice."""
    scored: int = 0
    """How many drones were scored."""


# --- why it waits -------------------------------------------------------------------------


class JustSubmitted(Wire):
    code: Literal["just_submitted"] = "just_submitted"


class EarlierOrder(Wire):
    """The orders of a session run one after the other."""

    code: Literal["earlier_order"] = "earlier_order"
    order: str


class AfterOrder(Wire):
    """It starts when another order has succeeded."""

    code: Literal["after_order"] = "after_order"
    order: str
    """The other order."""
    status: Literal["open", "failed", "canceled"]
    waiting: str
    """The order that waits."""


class RaceBase(Wire):
    """The orders of a race start from one commit, which the first of them finds."""

    code: Literal["race_base"] = "race_base"
    order: str


class NoDrone(Wire):
    code: Literal["no_drone"] = "no_drone"


class DroneLabels(Wire):
    drone: str
    labels: tuple[str, ...] = ()


class NoDroneFits(Wire):
    code: Literal["no_drone_fits"] = "no_drone_fits"
    labels: tuple[str, ...]
    fleet: tuple[DroneLabels, ...]


class NoDroneTakesWork(Wire):
    code: Literal["no_drone_takes_work"] = "no_drone_takes_work"
    states: tuple[DroneState, ...]


class ForPool(Wire):
    """No drone that is there takes it, and a pool's autoscaler may start one that does."""

    code: Literal["for_pool"] = "for_pool"
    pool: str
    drones: int
    """Of the pool, there now."""
    at_most: int


class NamedDroneRemoved(Wire):
    code: Literal["named_drone_removed"] = "named_drone_removed"
    drone: str
    order: str


class PausesAfterFailure(Wire):
    code: Literal["pauses_after_failure"] = "pauses_after_failure"
    until: datetime
    attempt: int
    attempts: int
    detail: str


class InQueue(Wire):
    """It is in the queue of a drone that does not start it."""

    code: Literal["in_queue"] = "in_queue"
    state: DroneState


class CannotBeSent(Wire):
    """The message to its drone cannot be built; this is retried."""

    code: Literal["cannot_be_sent"] = "cannot_be_sent"
    detail: str


class ForPerson(Wire):
    """Its run waits for a person: for a decision about a call, a secret in the work or money, or for an answer."""

    code: Literal["for_person"] = "for_person"
    about: str = "approval"
    """`shared.events.ApprovalStep.about`."""
    order: str
    tool: str
    why: str
    """Of a question: its text; of a plan: its title."""
    limit: Literal["cost", "steps", "time"] = "cost"
    """Of a limit: which one."""


class AnswerOnItsWay(Wire):
    """A person answered, and the drone has not confirmed it."""

    code: Literal["answer_on_its_way"] = "answer_on_its_way"
    about: str = "approval"
    by: str
    approved: bool
    tool: str


Waits = Annotated[
    JustSubmitted
    | EarlierOrder
    | AfterOrder
    | RaceBase
    | NoDrone
    | NoDroneFits
    | NoDroneTakesWork
    | ForPool
    | NamedDroneRemoved
    | PausesAfterFailure
    | InQueue
    | CannotBeSent
    | ForPerson
    | AnswerOnItsWay
    | Answered,
    Field(discriminator="code"),
]

# --- how it ended -------------------------------------------------------------------------


class RunEnd(Wire):
    """It ended like its last run."""

    code: Literal["run_ended"] = "run_ended"
    detail: str = ""
    loss: RunLoss | None = None
    attempts: int = 0
    """Over 0: the fleet was at fault, and that was the last of this many attempts."""
    drones: int = 0
    """Over 0: it failed on this many drones, each of which lacks something that it needs."""
    unheard: int = 0
    """Number of user messages that arrived too late."""
    session: str = ""
    """With `unheard`: the session in which to send them."""


class CanceledEnd(Wire):
    """It ended because a person canceled it."""

    code: Literal["before_start", "with_receipt", "with_loss", "after_end", "exported"]
    """`after_end`: its run had ended before it received the cancel. `exported`: it was under way when its organization
    was exported; `detail` is its status at that time."""
    detail: str = ""
    loss: RunLoss | None = None


Ended = RunEnd | CanceledEnd


class CancelAsked(Wire):
    """Who asked for the cancel, and why."""

    by: str
    """Empty: a person without a name."""
    text: str = ""


class OrderFacts(Wire):
    """All facts about an order in its current state."""

    returned: Returned | None = None
    placed: Placed | None = None
    waits: Waits | None = None
    cancel: CancelAsked | None = None
    ended: Ended | None = None
