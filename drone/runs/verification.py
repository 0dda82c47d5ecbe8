"""Verified done: the project's own commands judge the work, outside the model's control."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from drone.agent.agent import Agent
from drone.agent.protocols import Recorder
from drone.sandbox import CommandResult
from shared.clock import Clock
from shared.events import VerifyStep
from shared.outcome import ExitStatus, Outcome, Verification
from shared.work_order import WorkOrder

SHOWN_OF_COMMAND = 4_000
"""Characters of a failed command's output that its error carries."""
Run = Callable[[str, str], CommandResult]
"""Runs a command of the project in a named phase."""


@dataclass(frozen=True)
class Verifier:
    """Runs the `verify` commands of one order's project, and returns failures to the model a few times."""

    order: WorkOrder
    recorder: Recorder
    run: Run
    clock: Clock
    own_check: str | None = None
    """A command of the drone's, before those of the project."""

    def judge(self, outcome: Outcome, agent: Agent) -> tuple[Outcome, Verification]:
        """Return how the run ends, and the result of the commands; `in_words` adds it to the reason.

        A failure goes to the model as a message, up to `verify_attempts` times; the work is kept either way.
        """
        limits = self.order.limits
        if not outcome.succeeded:
            return outcome, Verification.NOT_REACHED
        if not self._commands:
            return outcome, Verification.NOTHING_TO_VERIFY
        attempt = 1
        while failure := self._failure(attempt):
            # At the limit of answers none is left to fix it with.
            if attempt > limits.verify_attempts or outcome.exit_status is ExitStatus.MAX_ITERATIONS:
                reason = f"The work is done, but {failure.summary}."
                return replace(outcome, exit_status=ExitStatus.VERIFICATION_FAILED, reason=reason), Verification.FAILED
            outcome = agent.go_on(failure.message)
            if not outcome.succeeded:
                return outcome, Verification.FAILED
            attempt += 1
        # A message that came while the commands ran is answered, and the resulting work is verified as well.
        if agent.take_up_messages():
            return self.judge(agent.go_on(), agent)
        return outcome, Verification.VERIFIED if self.order.project.verify else Verification.NOTHING_TO_VERIFY

    @property
    def _commands(self) -> tuple[str, ...]:
        return (*((self.own_check,) if self.own_check else ()), *self.order.project.verify)

    def in_words(self, outcome: Outcome, verification: Verification) -> Outcome:
        """The outcome; if the work was verified, its reason says so."""
        if verification is not Verification.VERIFIED:
            return outcome
        commands = self.order.project.verify
        count = "one command" if len(commands) == 1 else f"{len(commands)} commands"
        return replace(outcome, reason=f"{outcome.reason} Verified by {count}.")

    def _failure(self, attempt: int) -> _Failure | None:
        """Run the commands until one fails; None if all of them passed."""
        for command in self._commands:
            began = self.clock.monotonic()
            result = self.run("verifying", command)
            passed = result.return_code == 0
            self.recorder.record(
                VerifyStep(
                    attempt=attempt,
                    command=command,
                    passed=passed,
                    return_code=result.return_code,
                    output=result.output,
                    duration_ms=round((self.clock.monotonic() - began) * 1000),
                )
            )
            if not passed:
                return _Failure(command, result)
        return None


@dataclass(frozen=True)
class _Failure:
    command: str
    result: CommandResult

    @property
    def summary(self) -> str:
        return f"the project's command `{self.command}` {self.result.how_it_ended}"

    @property
    def message(self) -> str:
        return (
            f"Your work was checked and did not pass: {self.summary}. Its output:\n\n{self.result.output}\n\n"
            "Fix the work, not the check, and end again; the same commands will then be run again."
        )
