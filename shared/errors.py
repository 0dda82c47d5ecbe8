"""Every error and every signal of the fleet, one class each; the class decides what happens next.

    FleetError                 has four parts: what, why, next, help; and a stable code
    ├── OrderError             the order is at fault: running it again would end the same way
    │   └── UnsuitableDrone    on this drone: another one may be able to run it
    ├── FleetFault             the fleet is at fault: the order may run again
    │   └── Unreachable        a server does not answer (exit code 5)
    └── Refused                the caller is at fault
        ├── NotFound           404, exit code 3
        ├── Conflict           409, exit code 4
        ├── Invalid            422, exit code 2
        ├── Precondition       412, exit code 2
        ├── TooLarge           413, exit code 2
        ├── TooOften           429, exit code 1
        └── Forbidden          403, exit code 6
            └── Unauthenticated  401, exit code 6

    InterruptLoop              not a failure: ends or redirects the loop, carries the messages to append
    ├── Submitted              the model declared its work done
    ├── LimitsExceeded         steps, cost, tokens or time
    ├── FormatError            the model's answer cannot be acted on; three in a row end the run
    ├── Interrupted            a user interrupted the run with a message
    └── Preempted              the fleet asks the run to stop

HTTP statuses, exit codes and MCP errors are derived from the class attributes here; there is no second list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:  # an error must not cost the import of the wire models: `--help` raises them too
    from shared.messages import Message
    from shared.outcome import Outcome


class FleetError(Exception):
    """An error that is presented to people in four parts.

    `what` is one sentence; `why` the cause if known; `next` a command to paste; `help` where to read more.
    `code` is stable (`E-DRONE-404`): scripts match on it.
    """

    http_status = 500
    exit_code = 1

    def __init__(self, what: str, *, code: str, why: str = "", next: str = "", help: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.code = code
        self.why = why
        self.next = next
        self.help = help or f"fleet help {code}"


class OrderError(FleetError):
    """The order is at fault: running it again would end the same way."""


class UnsuitableDrone(OrderError):
    """The order would end the same way each time on this drone, which lacks something that another one may have.

    Credentials, a key and a name server are the drone's own.
    """


class FleetFault(FleetError):
    """The fleet is at fault: the order may run again."""

    http_status = 503


class Unreachable(FleetFault):
    """A required server does not answer."""

    exit_code = 5


class Refused(FleetError):
    """The caller is at fault; the error says how to fix the call."""

    http_status = 400
    exit_code = 2
    value: object = None
    """What was refused, as it was given: a form marks the field that has it."""

    def of(self, value: object) -> Self:
        """The error, which knows the value that it refuses."""
        self.value = value
        return self


class NotFound(Refused):
    """The object does not exist, or the caller may not see it."""

    http_status = 404
    exit_code = 3


class Conflict(Refused):
    """The object is in a state that does not allow this; the message names both states."""

    http_status = 409
    exit_code = 4


class Invalid(Refused):
    """A value is not acceptable."""

    http_status = 422


class Precondition(Refused):
    """Something else has to be set up first."""

    http_status = 412


class TooLarge(Refused):
    """More bytes than accepted."""

    http_status = 413


class TooOften(Refused):
    """Too many requests: retry later."""

    http_status = 429
    exit_code = 1


class Forbidden(Refused):
    """The caller is known but not allowed to do this."""

    http_status = 403
    exit_code = 6


class Unauthenticated(Forbidden):
    """The token is missing, wrong, expired or used up."""

    http_status = 401


class InterruptLoop(Exception):
    """Leave the current step; the loop appends `messages` and, with an `outcome`, ends."""

    def __init__(self, *messages: Message, outcome: Outcome | None = None) -> None:
        super().__init__(outcome.reason if outcome else "")
        self.messages = messages
        self.outcome = outcome


class Submitted(InterruptLoop):
    """The model declared its work done (M-003)."""


class LimitsExceeded(InterruptLoop):
    """A limit on steps, cost, tokens or time was reached."""


class Halted(InterruptLoop):
    """A guardrail, or all hooks of a message, ended the run."""


class FormatError(InterruptLoop):
    """The model's answer cannot be acted on; the messages say how to fix it (M-007)."""


class Interrupted(InterruptLoop):
    """A person interrupted the run with a message."""


class Preempted(InterruptLoop):
    """The fleet asked the run to stop: a cancel, a drain, or another run that now holds the order."""


class Suspended(Preempted):
    """The run waits for a person and gives up its slot: a later run continues at the same calls."""
