"""Reminders to an agent: near the end of its budget, and once if it would end without a report (S-054)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from drone.agent.agent import Agent
from drone.agent.budget import RunBudget
from drone.runs.verification import Verifier
from drone.tools import AddComment
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome, Verification

MORE_ANSWERS = 5
"""Additional answers of the model, within all other limits."""
MESSAGE = (
    "Your turn is about to end, and you have written nothing to the thread: the others would not know what you did or "
    "who is next. Call add_comment now, with what they need to know and the tag of who is next; then end again."
)
LAST = 3
"""With this many answers left or fewer, the agent is reminded before each."""


_LAST_WORDS = (
    "Write your last comment in time: what is done, what is open, and the tag of who is next. "
    "The calls of the last answer are still run."
)


@dataclass(frozen=True)
class Nudge:
    """The one reminder to the agent before its end."""

    agent: Agent
    budget: RunBudget
    missing: Callable[[], str]
    """What the agent is told now; empty: it reported everything."""
    harmless: frozenset[str]
    """The names of the tools that do not change the work."""
    _given: list[str] = field(default_factory=list)

    def is_due(self, outcome: Outcome) -> bool:
        """Whether the run would end normally and without its report. At a limit no answer is left to write one."""
        return outcome.succeeded and self.budget.may_answer and bool(self.missing())

    def give(self) -> Outcome:
        """Remind the agent, and return the outcome of what it did then."""
        self._given.append(self.missing())
        with self.budget.at_most(MORE_ANSWERS):
            return self.agent.go_on(self._given[-1])

    def changed(self) -> bool:
        """Whether the agent has since called a tool that may have changed the work."""
        since: set[str] = set()
        for message in reversed(self.agent.transcript):
            if message.role == "user" and message.content in self._given:
                return not since <= self.harmless
            since.update(call.name for call in message.tool_calls)
        # A compaction removed the message, so this is unknown.
        return True


def silence(thread: AddComment, before: int) -> str:
    """What an agent is told that wrote no comment to its thread; `before`: comments that earlier runs wrote."""
    return "" if before or thread.written else MESSAGE


def few_answers_left(budget: RunBudget) -> tuple[Message, ...]:
    """For the next request only: how many answers are left, if they are few (S-071)."""
    left = budget.answers_left
    if left is None or left > LAST:
        return ()
    many = "This is the last answer" if left <= 1 else f"{left} answers, including this one, are left"
    return (Message(role="user", content=f"<budget>\n{many} in this turn. {_LAST_WORDS}\n</budget>"),)


def judged(outcome: Outcome, agent: Agent, verifier: Verifier, nudge: Nudge | None) -> tuple[Outcome, Verification]:
    """Verify the work with the project's commands, nudge the agent to report it, and return how the run ends.

    The commands come first: their failures go back to the model, so the agent can report correctly only after them. The
    nudge does not change how the run ends, unless the agent changed the work again: then it is verified once more.
    """
    outcome, verification = verifier.judge(outcome, agent)
    if nudge is not None and nudge.is_due(outcome):
        after = nudge.give()
        if after.exit_status is ExitStatus.CANCELED:
            return after, verification
        if after.succeeded and agent.take_up_messages():
            outcome, verification = verifier.judge(agent.go_on(), agent)
        elif nudge.changed():
            outcome, verification = verifier.judge(outcome, agent)
    return verifier.in_words(outcome, verification), verification
