"""A small model of tasks, written from the rules and not from the code: the allowed actions, and who is next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

AGENTS = {"lead": None, "backend": "lead", "tester": "lead"}
"""Each agent with its boss."""
USER = "user"
Tags = Sequence[str]


class Refused(Exception):
    """An action that the model does not allow; the argument is the class of the expected error."""


@dataclass
class ModelTask:
    """A task, and its newest run."""

    number: int
    assignee: str
    priority: int
    queued: float
    status: str = "open"
    hand_offs: int = 0
    comments: int = 0
    agent: str = ""
    """Of the newest run."""
    run: str = "none"
    """none, waiting, working, stopping (asked to end), over."""
    briefed_at: float = 0.0
    said: list[Tags] = field(default_factory=list)
    """The tags in each comment of the newest run."""
    mentions: list[tuple[float, str]] = field(default_factory=list)
    read_until: dict[str, float] = field(default_factory=dict)
    ran_last: str = ""


@dataclass
class Model:
    """An organization with three agents."""

    tasks: list[ModelTask] = field(default_factory=list)
    limit: int = 2
    agent_limit: dict[str, int] = field(default_factory=lambda: dict.fromkeys(AGENTS, 0))
    max_hand_offs: int = 3
    paused: bool = False
    now: float = 0.0

    # --- users -----------------------------------------------------------------------

    def create(self, assignee: str, priority: int) -> None:
        self.tasks.append(ModelTask(len(self.tasks) + 1, assignee, priority, self.now))

    def comment(self, task: ModelTask, tags: Tags) -> None:
        self._need(task.status in {"open", "failed"}, "Conflict")
        valid = [tag for tag in tags if tag in AGENTS or tag == USER]
        self._need(bool(valid) or not tags, "NotFound")
        self._write(task, tags)
        task.hand_offs = 0
        if valid:
            self._give(task, valid[-1])

    def assign(self, task: ModelTask, to: str) -> None:
        self._need(task.status in {"open", "failed"}, "Conflict")
        self._give(task, to)
        task.comments += 1

    def preempt(self, task: ModelTask) -> None:
        self._need(task.status == "in_progress", "Conflict")
        task.status, task.assignee, task.run = "open", USER, "stopping"
        task.comments += 1

    def cancel(self, task: ModelTask) -> None:
        self._need(task.status not in {"done", "canceled"}, "Conflict")
        if task.status == "in_progress":
            task.run = "stopping"
        task.status, task.assignee = "canceled", USER
        task.comments += 1

    def done(self, task: ModelTask) -> None:
        self._need(task.status in {"open", "failed"} and task.assignee == USER, "Conflict")
        task.status = "done"
        task.comments += 1

    def reopen(self, task: ModelTask) -> None:
        self._need(task.status in {"done", "failed"}, "Conflict")
        self._give(task, USER)
        task.comments += 1

    def retry(self, task: ModelTask, to: str) -> None:
        """`to` may be empty: the agent that ran last."""
        self._need(task.status in {"done", "failed"}, "Conflict")
        self._need(bool(to or task.ran_last), "Precondition")
        self._give(task, to or task.ran_last)
        task.comments += 1

    # --- runs ------------------------------------------------------------------------

    def begins(self, task: ModelTask) -> None:
        task.run, task.ran_last = "working", task.agent
        task.read_until[task.agent] = task.briefed_at

    def writes(self, task: ModelTask, tags: Tags) -> None:
        self._write(task, tags)
        task.said.append(tags)

    def ends(self, task: ModelTask, how: str) -> None:
        """`how`: succeeded, max_iterations, failed, lost or canceled (its order was canceled)."""
        current = task.status == "in_progress"
        task.run = "over"
        if not current:
            return
        if how in {"succeeded", "max_iterations"}:
            task.comments += how == "max_iterations"
            self._route(task)
        else:
            task.status, task.assignee = "open" if how == "canceled" else "failed", USER
            task.comments += 1

    def _route(self, task: ModelTask) -> None:
        task.comments += not task.said
        to, noted = self._next(task)
        if to != USER and 0 < self.max_hand_offs <= task.hand_offs:
            to, noted = USER, True
        task.comments += noted
        task.status, task.assignee = "open", to
        if to != USER:
            task.hand_offs, task.queued = task.hand_offs + 1, self.now

    def _next(self, task: ModelTask) -> tuple[str, bool]:
        """The next assignee, and whether the system comments on the reason."""
        valid = [tag for tag in (task.said[-1] if task.said else ()) if tag in AGENTS or tag == USER]
        if valid:
            return valid[-1], False
        unread = [name for at, name in task.mentions if at > task.read_until.get(name, -1) and name != task.agent]
        return (unread[-1] if unread else AGENTS[task.agent] or USER), True

    # --- consequences ------------------------------------------------------------------

    def claim(self) -> None:
        """Start every task that may start; called after every action."""
        for task in sorted(self.tasks, key=lambda each: (-each.priority, each.queued, each.number)):
            if self._may_begin(task):
                task.status, task.run, task.agent = "in_progress", "waiting", task.assignee
                task.briefed_at, task.said = self.now, []

    def _may_begin(self, task: ModelTask) -> bool:
        busy = [each.assignee for each in self.tasks if each.status == "in_progress"]
        own = self.agent_limit.get(task.assignee, 0)
        return (
            task.status == "open"
            and task.assignee != USER
            and not self.paused
            and task.run in {"none", "over"}
            and (self.limit == 0 or len(busy) < self.limit)
            and (own == 0 or busy.count(task.assignee) < own)
        )

    def _give(self, task: ModelTask, to: str) -> None:
        task.status, task.assignee, task.hand_offs = "open", to, 0
        if to != USER:
            task.queued = self.now

    def _write(self, task: ModelTask, tags: Tags) -> None:
        task.comments += 1
        task.mentions += [(self.now, tag) for tag in tags if tag in AGENTS]

    def _need(self, allowed: bool, error: str) -> None:
        if not allowed:
            raise Refused(error)

    def seen(self) -> Iterator[tuple[str, str, int, int]]:
        """The visible state of each task."""
        for task in self.tasks:
            yield task.status, task.assignee, task.hand_offs, task.comments
