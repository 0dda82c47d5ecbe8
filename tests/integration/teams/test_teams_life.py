"""The whole life of tasks, whatever people and runs do, against a small model that was written by itself."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import func, select

from control_plane.db.engine import sqlite_url_of
from control_plane.db.orders import Order
from control_plane.db.teams import Comment, Task
from control_plane.declarations.task_documents import (
    AssignRequest,
    CommentRequest,
    TaskCancelRequest,
    TaskRequest,
    TaskRetryRequest,
)
from control_plane.lookups.organizations import system_caller
from control_plane.operations import tasks
from control_plane.teams import hand_off
from shared.errors import Refused
from shared.states import ENDED
from tests.support import team_model
from tests.support.clocks import HandClock
from tests.support.database import core_on
from tests.support.made import make_drone, make_project
from tests.support.team_model import AGENTS, USER, Model, ModelTask
from tests.support.team_rows import (
    add_agent,
    assignee_of,
    begin,
    claim,
    edit_agent,
    edit_organization,
    end,
    order_of,
    say,
)

WHO = st.sampled_from([*AGENTS, USER])
TAGS = st.lists(st.sampled_from([*AGENTS, USER, "nobody"]), max_size=2)
PLACES = st.integers(0, 59)
MAY = {
    "comment": {"open", "failed"},
    "assign": {"open", "failed"},
    "preempt": {"in_progress"},
    "done": {"open", "failed"},
    "reopen": {"done", "failed"},
    "retry": {"done", "failed"},
    "cancel": {"open", "in_progress", "failed"},
}


class Life(RuleBasedStateMachine):
    """Does everything twice: to the fleet, and to the model."""

    template: Path

    @initialize(limit=st.integers(0, 2), max_hand_offs=st.integers(0, 3), first=st.sampled_from([*AGENTS]))
    def begin(self, limit: int, max_hand_offs: int, first: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="teams-life-"))
        shutil.copy(self.template, self.directory / "fleet.db")
        self.core = core_on(sqlite_url_of(self.directory / "fleet.db"), self.directory, clock=HandClock())
        self.admin = system_caller(self.core)
        make_project(self.core, self.admin)
        always = self.core.clock.now() + timedelta(days=1)
        make_drone(self.core, self.admin, concurrency=1000, last_seen_at=always, beat={"abilities": ["teams"]})
        self.agents = {name: add_agent(self.core, self.admin, name, boss) for name, boss in AGENTS.items()}
        edit_organization(self.core, self.admin, concurrency=limit, max_hand_offs=max_hand_offs)
        self.model = Model(limit=limit, max_hand_offs=max_hand_offs)
        self.comments: list[int] = []
        self.create(first, 0)

    def teardown(self) -> None:
        if hasattr(self, "core"):
            self.core.database.dispose()
            shutil.rmtree(self.directory)

    # --- people ------------------------------------------------------------------------

    @precondition(lambda self: len(self.model.tasks) < 5)
    @rule(assignee=WHO, priority=st.integers(0, 1))
    def create(self, assignee: str, priority: int) -> None:
        request = TaskRequest(title="Mend it", assignee=assignee, priority=priority)
        self._both(lambda: tasks.create(self.core, self.admin, request), lambda: self.model.create(assignee, priority))

    @rule(place=PLACES, tags=TAGS)
    def comment(self, place: int, tags: list[str]) -> None:
        self._act(place, "comment", tags, CommentRequest(text=text_of(tags)))

    @rule(place=PLACES, to=WHO)
    def assign(self, place: int, to: str) -> None:
        self._act(place, "assign", to, AssignRequest(assignee=to))

    @rule(place=PLACES, what=st.sampled_from(["preempt", "done", "reopen"]))
    def act(self, place: int, what: str) -> None:
        self._act(place, what)

    @precondition(lambda self: any(task.status == "in_progress" for task in self.model.tasks))
    @rule(place=PLACES, to=st.sampled_from([*AGENTS]))
    def preempt_for(self, place: int, to: str) -> None:
        """Somebody takes the task from its run and gives it to an agent before that has ended."""
        task = self._at(place * 5 + 1, "preempt")
        self._act_on(task, "preempt")
        self._act_on(task, "comment", [to], CommentRequest(text=text_of([to])))

    @rule(place=PLACES, to=st.sampled_from([*AGENTS, ""]))
    def retry(self, place: int, to: str) -> None:
        self._act(place, "retry", to, TaskRetryRequest(assignee=to or None))

    @rule(place=PLACES)
    def cancel(self, place: int) -> None:
        task = self._at(place, "cancel")
        both = (
            lambda: tasks.cancel(self.core, self.admin, self._id(task), TaskCancelRequest()),
            lambda: self.model.cancel(task),
        )
        self._both(*both)

    # --- runs --------------------------------------------------------------------------

    @rule(place=PLACES)
    def begins(self, place: int) -> None:
        if task := self._whose_run_is(place, "waiting"):
            self._both(
                lambda: begin(self.core, order_of(self.core, self._id(task)).id), lambda: self.model.begins(task)
            )

    @rule(place=PLACES, tags=TAGS)
    def writes(self, place: int, tags: list[str]) -> None:
        if task := self._whose_run_is(place, "working"):
            self._both(lambda: say(self.core, self._id(task), text_of(tags)), lambda: self.model.writes(task, tags))

    @rule(place=PLACES, how=st.sampled_from(["succeeded", "succeeded", "max_iterations", "failed", "lost", "canceled"]))
    def ends(self, place: int, how: str) -> None:
        if task := self._whose_run_is(place, "working"):
            self._end(task, how)

    @rule(place=PLACES)
    def receipt(self, place: int) -> None:
        """The drone of a run that was to stop says that nothing is left of it."""
        if task := self._whose_run_is(place, "stopping"):
            self._end(task, "canceled")

    @rule(place=PLACES)
    def late(self, place: int) -> None:
        """A run that is over is heard of once more, and decides nothing."""
        if task := self._whose_run_is(place, "over"):
            with self.core.database.write() as db:
                ended = select(Order).where(Order.task_id == self._id(task), Order.status.in_(ENDED))
                for order in db.scalars(ended).all():
                    hand_off.order_ended(db, self.core, order)

    # --- limits ------------------------------------------------------------------------

    @rule(
        what=st.sampled_from(["limit", "agent_limit", "paused"]),
        name=st.sampled_from([*AGENTS]),
        limit=st.integers(0, 2),
    )
    def terms(self, what: str, name: str, limit: int) -> None:
        """Somebody edits a limit, pauses the organization or lets it go on; each asks what may begin then."""
        core, model = self.core, self.model
        if what == "limit":
            edit_organization(core, self.admin, concurrency=limit)
            model.limit = limit
        elif what == "agent_limit":
            edit_agent(core, self.agents[name], concurrency=limit)
            model.agent_limit[name] = limit
        else:
            model.paused = not model.paused
            edit_organization(core, self.admin, paused_at=core.clock.now() if model.paused else None)
        self._both(lambda: claim(core, self.admin), lambda: None)

    # --- what always holds -----------------------------------------------------------------

    @invariant()
    def every_task_is_as_the_model_has_it(self) -> None:
        if hasattr(self, "model"):
            assert list(self._seen()) == list(self.model.seen())

    @invariant()
    def no_task_has_two_runs_that_have_not_ended(self) -> None:
        if hasattr(self, "model"):
            with self.core.database.read() as db:
                unfinished = select(func.count()).where(Order.status.not_in(ENDED), Order.task_id.is_not(None))
                assert all(count == 1 for count in db.scalars(unfinished.group_by(Order.task_id)))

    @invariant()
    def comments_are_only_added(self) -> None:
        if hasattr(self, "model"):
            with self.core.database.read() as db:
                ids = list(db.scalars(select(Comment.id).order_by(Comment.id)))
            assert ids[: len(self.comments)] == self.comments
            self.comments = ids

    # --- helpers ---------------------------------------------------------------------------

    def _act(self, place: int, what: str, argument: Any = None, request: Any = None) -> None:
        self._act_on(self._at(place, what), what, argument, request)

    def _act_on(self, task: ModelTask, what: str, argument: Any = None, request: Any = None) -> None:
        given = () if argument is None else (argument,)
        asked = () if request is None else (request,)
        self._both(
            lambda: getattr(tasks, what)(self.core, self.admin, self._id(task), *asked),
            lambda: getattr(self.model, what)(task, *given),
        )

    def _end(self, task: ModelTask, how: str) -> None:
        order_id = order_of(self.core, self._id(task)).id
        self._both(lambda: end(self.core, order_id, how), lambda: self.model.ends(task, how))

    def _both(self, fleet: Callable[[], object], model: Callable[[], object]) -> None:
        """Let both do it a second later: they refuse it alike, or what may begin then begins."""
        self.core.clock.sleep(1)
        self.model.now += 1
        assert refusal(fleet) == refusal(model)
        self.model.claim()

    def _at(self, place: int, what: str) -> ModelTask:
        """Mostly a task that this may be done to."""
        allowed = [task for task in self.model.tasks if task.status in MAY[what]]
        among = allowed if allowed and place % 5 else self.model.tasks
        return among[place % len(among)]

    def _whose_run_is(self, place: int, state: str) -> ModelTask | None:
        fitting = [task for task in self.model.tasks if task.run == state]
        return fitting[place % len(fitting)] if fitting else None

    def _id(self, task: ModelTask) -> str:
        return f"DEFA-{task.number:04}"

    def _seen(self) -> Any:
        with self.core.database.read() as db:
            count = select(func.count()).where(Comment.task_id == Task.id).scalar_subquery()
            rows = db.execute(select(Task, count).order_by(Task.number)).all()
        for task, comments in rows:
            yield task.status, assignee_of(self.core, task.id), task.hand_offs, comments


def text_of(tags: list[str]) -> str:
    return "Some words " + " ".join(f"@{tag}" for tag in tags)


def refusal(act: Callable[[], object]) -> str:
    """Why it was refused; empty where it was done."""
    try:
        act()
    except Refused as error:
        return type(error).__name__
    except team_model.Refused as error:
        return str(error)
    return ""


def live(template: Path, examples: int, steps: int) -> None:
    Life.template = template
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=checks
        ),
    )


def test_whatever_people_and_runs_do_every_task_is_where_the_model_has_it(sqlite_template: Path) -> None:
    live(sqlite_template, examples=8, steps=35)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_whatever_people_and_runs_do_for_long_every_task_is_where_the_model_has_it(sqlite_template: Path) -> None:
    live(sqlite_template, examples=300, steps=60)
