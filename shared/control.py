"""Control messages from the control plane to a drone: cancel, say, take back, decide, suspend, compact, confirm,
resend, drain, rotate keys, rename.

Each travels sealed: by pub/sub for speed, and in the drone's inbox until the drone's beat reports that it was handled.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shared.names import DRONE_NAME
from shared.plans import AgentPlan
from shared.wire import Wire


class Cancel(Wire):
    """End this run and send the receipt."""

    kind: Literal["cancel"] = "cancel"
    run_id: str
    generation: int
    reason: str = ""


class Say(Wire):
    """A user message: after the tool results (steer), when the model stops (`after`), or immediately (`interrupt`)."""

    kind: Literal["say"] = "say"
    run_id: str
    text: str
    after: bool = False
    interrupt: bool = False
    """Abort the running command or answer, and continue with this message."""
    review: tuple[str, ...] = ()
    """The ids of the review comments that the text contains."""
    message: str = ""
    """The message's id, under which the run records it; '' from a control plane that takes none back."""
    alone: bool = False
    """The model answers this message before it is given the next one."""


class TakeBack(Wire):
    """Messages that the run must not give to the model, if it has not yet (only for the ability `queue`)."""

    kind: Literal["take_back"] = "take_back"
    run_id: str
    messages: tuple[str, ...]
    """The ids of `Say`."""


class Decide(Wire):
    """A person's answer to an approval, a question or a plan."""

    kind: Literal["decide"] = "decide"
    run_id: str
    call_id: str
    approved: bool
    comment: str = ""
    raise_usd: float | None = None
    """Of an order at its cost limit: by how much the limit is raised. None: as before."""
    finish: bool = False
    """Of an order at its cost limit: it makes one more call, for a summary, and ends."""
    answer: str = ""
    """The answer to a question."""
    who: str = ""
    """The name of the person who answered a question or a plan."""
    raise_steps: int | None = None
    """Of an order at its limit of steps: by how many the limit is raised."""
    raise_seconds: float | None = None
    """Of an order at its time limit: by how much the limit is raised."""
    plan: AgentPlan | None = None
    """The plan as edited and approved; None: it was sent back, with `comment`."""
    in_time: bool = True
    """False: the deadline passed without an answer while the run was suspended."""


class Suspend(Wire):
    """End this run if it still waits for this answer, so that another run can continue there once it is answered (only
    for the ability `suspend`).
    """

    kind: Literal["suspend"] = "suspend"
    run_id: str
    call_id: str


class Compact(Wire):
    """Compact the run's context before the next question to the model."""

    kind: Literal["compact"] = "compact"
    run_id: str
    instructions: str = ""


class Confirm(Wire):
    """Every event of this run up to `last_seq` is in the database; the drone may forget the run."""

    kind: Literal["confirm"] = "confirm"
    run_id: str
    last_seq: int


class Resend(Wire):
    """Events are missing: send them again from the journal."""

    kind: Literal["resend"] = "resend"
    run_id: str
    from_seq: int


class Drain(Wire):
    """Stop taking orders, or start taking them again."""

    kind: Literal["drain"] = "drain"
    on: bool


class RotateKeys(Wire):
    """Replace the drone's key, token and broker password, as soon as its runs have ended."""

    kind: Literal["rotate_keys"] = "rotate_keys"


class Rename(Wire):
    """The drone has another name. Its worker is named by it as soon as its runs have ended."""

    kind: Literal["rename"] = "rename"
    name: str = Field(pattern=DRONE_NAME)


class ControlMessage(Wire):
    """One message of the inbox."""

    id: str
    body: Annotated[
        Cancel | Say | TakeBack | Decide | Suspend | Compact | Confirm | Resend | Drain | RotateKeys | Rename,
        Field(discriminator="kind"),
    ]
