"""Reads stay fast in an organization with 10,000 tasks, 100,000 comments and 100,000 runs, next to another as large.

Each read is compared with reading a single row by its key, alternating with it: a slow or busy machine changes both
alike. The milliseconds in the table are for people. The rows are written directly, without the operations, as they
would be after months. PostgreSQL is vacuumed once, as it does automatically.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from sqlalchemy import insert, select, text

from control_plane.core import Caller, Core
from control_plane.db.engine import Database
from control_plane.db.installation import Organization
from control_plane.db.orders import Dispatch, Order
from control_plane.db.projects import Project, Provider
from control_plane.db.runs import Run
from control_plane.db.sessions import ChatSession
from control_plane.db.teams import Agent, Comment, Task
from control_plane.lookups.organizations import system_caller
from control_plane.operations import status, tasks, totals
from control_plane.operations.tasks import runs
from control_plane.teams import hand_off
from control_plane.teams.routing import decide
from shared.names import new_id
from tests.support.database import core_on
from tests.support.made import make_drone, make_project

pytestmark = [pytest.mark.bench, pytest.mark.apart]

MOST = 80
"""Maximum duration of a read, in multiples of reading one row; on an idle machine that is about 50 ms."""
ROUNDS = 9
AGENTS = 20
PER_TASK = 10
"""The number of comments, and of runs."""
CHUNK = 20_000


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_reading_among_100000_runs_takes_as_long_as_a_few_rows(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cost = measured(database_url, tmp_path, capsys, count=10_000)

    assert {what: round(times) for what, times in cost.items() if times > MOST} == {}


def test_reading_among_4000_runs_takes_as_long_as_a_few_rows(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The short form: a 25th of the rows."""
    cost = measured(database_url, tmp_path, capsys, count=400)

    assert {what: round(times) for what, times in cost.items() if times > MOST} == {}


def measured(url: str, directory: Path, capsys: pytest.CaptureFixture[str], *, count: int) -> dict[str, float]:
    """Fill two organizations with `count` tasks each; return and print each read in multiples of reading one row."""
    core = core_on(url, directory)
    try:
        caller = system_caller(core)
        make_project(core, caller)
        make_drone(core, caller)
        fill(core, caller.organization_id, "DEFA", count)
        fill(core, another_organization(core), "OTHR", count)
        settle(core.database)
        one = one_row(core, caller.organization_id)
        took = {what: cost_of(read, one) for what, read in readings(core, caller, count).items()}
    finally:
        core.database.dispose()
    kind = "SQLite" if core.database.is_sqlite else "PostgreSQL"
    with capsys.disabled():
        sys.stdout.write(f"\n{kind}, {count:,} tasks and {count * PER_TASK:,} runs, twice; medians of {ROUNDS}:\n")
        sys.stdout.writelines(
            f"  {what:<28} {each.median_ms:7.1f} ms, {each.times:5.1f} times one row\n" for what, each in took.items()
        )
    return {what: each.times for what, each in took.items()}


def readings(core: Core, caller: Caller, count: int) -> dict[str, Callable[[], object]]:
    """The most frequent reads, by users and by the engine."""
    middle = f"DEFA-{count // 2:04}"
    with core.database.read() as db:
        agent_id = db.scalars(select(Agent.id).where(Agent.organization_id == caller.organization_id)).first() or ""
        run_id = db.scalars(select(Run.id).where(Run.task_id == middle)).first() or ""

    def summed(of: Callable[..., object], *which: str) -> Callable[[], object]:
        def read() -> object:
            with core.database.read() as db:
                return of(db, *which)

        return read

    return {
        "list 50": lambda: tasks.list_(core, caller),
        "list 50 open": lambda: tasks.list_(core, caller, status="open"),
        "list 50 of an agent": lambda: tasks.list_(core, caller, assignee="agent_03"),
        "list 50 done of the user": lambda: tasks.list_(core, caller, status="done", assignee="user"),
        "show with its timeline": lambda: tasks.show(core, caller, middle),
        "runs of a task": lambda: runs.of_task(core, caller, middle),
        "one run": lambda: runs.show_run(core, caller, run_id),
        "reading of the routing": lambda: route(core, middle),
        "totals of the organization": summed(totals.of_organization, caller.organization_id),
        "totals of an agent": summed(totals.of_agent, caller.organization_id, agent_id),
        "totals of a task": summed(totals.of_task, middle),
        "status": lambda: status.status(core, caller),
    }


def route(core: Core, task_id: str) -> object:
    """Everything that is read to decide who is next when no comment has a tag and the whole thread is searched."""
    with core.database.read() as db:
        task = db.get_one(Task, task_id)
        order = db.scalars(select(Order).where(Order.task_id == task_id).order_by(Order.number.desc())).first()
        assert order is not None
        organization = db.get_one(Organization, task.organization_id)
        end = hand_off._Ending(db, core, organization, task, order, db.get_one(Agent, order.agent_id))
        end._last_comment()
        return decide(None, hand_off._newest_first(db, task_id), end._situation())


@dataclass(frozen=True)
class Cost:
    """A read's median in milliseconds, and its shortest time as a multiple of reading one row."""

    median_ms: float
    times: float


def one_row(core: Core, organization_id: str) -> Callable[[], object]:
    """A read of one row by its key, in a separate transaction."""

    def read() -> object:
        with core.database.read() as db:
            return db.get_one(Organization, organization_id)

    return read


def cost_of(read: Callable[[], object], one: Callable[[], object]) -> Cost:
    read(), one()
    pairs = [(_one_ms(read), _one_ms(one)) for _ in range(ROUNDS)]
    readings, rows = zip(*pairs, strict=True)
    # The shortest of each is its cost; the rest is other load on the machine.
    return Cost(statistics.median(readings), min(readings) / min(rows))


def _one_ms(read: Callable[[], object]) -> float:
    began = perf_counter()
    read()
    return (perf_counter() - began) * 1000


# --- filling -----------------------------------------------------------------------------------


def another_organization(core: Core) -> str:
    """Create another organization with its own project and provider; return its id."""
    now = core.clock.now()
    organization = Organization(id=new_id(), name="other", acronym="OTHR", created_at=now)
    common = {"organization_id": organization.id, "created_at": now}
    with core.database.write() as db:
        db.add(organization)
        db.flush()
        db.add(Provider(id=new_id(), name="local", model="openai/scripted", params={}, fallbacks=[], **common))
        git = {"git_url": "https://git.example/web.git", "setup": [], "verify": []}
        db.add(Project(id=new_id(), slug="web", name="web", **git, **common))
    return organization.id


def fill(core: Core, organization_id: str, acronym: str, count: int) -> None:
    """Add `count` tasks: one in fifty is open, twenty are in progress, the rest ended; each has comments and runs."""
    made = Made(core, organization_id, acronym, count)
    with core.database.write() as db:
        db.execute(insert(Agent), list(made.agents()))
    for model, rows in (
        (ChatSession, made.sessions()),
        (Task, made.tasks()),
        (Order, made.orders()),
        (Dispatch, made.dispatches()),
        (Run, made.runs()),
        (Comment, made.comments()),
    ):
        for chunk in chunks(rows):
            with core.database.write() as db:
                db.execute(insert(model), chunk)


class Made:
    """Consistent rows, generated from their numbers."""

    def __init__(self, core: Core, organization_id: str, acronym: str, count: int) -> None:
        self._own = {"organization_id": organization_id}
        self._acronym, self._count = acronym, count
        self._began = core.clock.now() - timedelta(days=100)
        with core.database.read() as db:
            self._project = db.scalars(select(Project.id).where(Project.organization_id == organization_id)).one()
            self._provider = db.scalars(select(Provider.id).where(Provider.organization_id == organization_id)).one()
            self._drone = db.scalars(text("SELECT id FROM drones")).first()

    def agents(self) -> Iterator[dict[str, Any]]:
        base = {"instructions": "Work.", "labels": {}, "created_at": self._began, **self._own}
        for number in range(AGENTS):
            yield {"id": self._id("a", number), "name": f"agent_{number:02}", **base}

    def sessions(self) -> Iterator[dict[str, Any]]:
        base = {"project_id": self._project, "mode": "build", "allow": [], "created_at": self._began, **self._own}
        for number in range(1, self._count + 1):
            task_id = self._task(number)
            yield {"id": self._id("s", number), "name": task_id, "task_id": task_id, **base}

    def tasks(self) -> Iterator[dict[str, Any]]:
        base = {
            "project_id": self._project,
            "limits": {},
            "title": "Mend it",
            "description": "Mend it, please.",
            **self._own,
        }
        for number in range(1, self._count + 1):
            at = self._at(number * PER_TASK)
            state = self._state(number)
            whose = self._id("a", number % AGENTS) if state in {"open", "in_progress"} else None
            times = {"queued_at": at, "created_at": at, "updated_at": at}
            yield {
                "id": self._task(number),
                "number": number,
                "status": state,
                "assignee_id": whose,
                "session_id": self._id("s", number),
                "order_id": self._id("o", number * PER_TASK + PER_TASK - 1),
                **times,
                **base,
            }

    def orders(self) -> Iterator[dict[str, Any]]:
        base = {
            "project_id": self._project,
            "provider_id": self._provider,
            "model": "openai/scripted",
            "mode": "build",
            "limits": {},
            "prompt": "The briefing. " * 30,
            "wanted_labels": {},
            "late_refs": [],
            "drone_id": self._drone,
            "reason_written": "the model stopped",
            "base_commit": "a" * 40,
            **self._own,
        }
        for number, task in self._each():
            at = self._at(number)
            yield {
                "id": self._id("o", number),
                "number": number if self._acronym == "DEFA" else number + self._count * 20,
                "session_id": self._id("s", task),
                "agent_id": self._id("a", number % AGENTS),
                "task_id": self._task(task),
                "run_id": self._id("r", number),
                "result_run_id": self._id("r", number),
                "status": "running" if self._is_on(number, task) else "succeeded",
                "branch": f"fleet/{number}",
                "head_commit": "b" * 40,
                "created_at": at,
                "started_at": at,
                **base,
            }

    def dispatches(self) -> Iterator[dict[str, Any]]:
        base = {"drone_id": self._drone, "generation": 1, **self._own}
        for number, _ in self._each():
            at = self._at(number)
            own = {"id": self._id("r", number), "order_id": self._id("o", number), "created_at": at}
            yield {**own, "published_at": at, "claimed_at": at, "closed_at": at, **base}

    def runs(self) -> Iterator[dict[str, Any]]:
        base = {"drone_id": self._drone, "generation": 1, "attempt": 1, "exit_status": "stopped", **self._own}
        spent = {"tool_calls": 12, "input_tokens": 41_234, "output_tokens": 2_345, "duration_ms": 63_000}
        for number, task in self._each():
            on = self._is_on(number, task)
            yield {
                "id": self._id("r", number),
                "order_id": self._id("o", number),
                "agent_id": self._id("a", number % AGENTS),
                "task_id": self._task(task),
                "status": "running" if on else "success",
                "started_at": self._at(number),
                "ended_at": None if on else self._at(number + 1),
                "reason": "the model stopped",
                "cost_usd": 0.0123 if number % 7 else None,
                **spent,
                **base,
            }

    def comments(self) -> Iterator[dict[str, Any]]:
        for number, task in self._each():
            agent = number % AGENTS
            yield {
                "task_id": self._task(task),
                "author": f"agent_{agent:02}",
                "agent_id": self._id("a", agent),
                "text": "I have done my part of it, and the rest is with somebody else. " * 4,
                "run_id": self._id("r", number),
                "at": self._at(number + 1),
                **self._own,
            }

    def _each(self) -> Iterator[tuple[int, int]]:
        """The number of each run, in chronological order, and the number of its task."""
        for number in range(PER_TASK, (self._count + 1) * PER_TASK):
            yield number, number // PER_TASK

    def _id(self, kind: str, number: int) -> str:
        return f"{kind}{self._acronym[0]}{number:010}"

    def _task(self, number: int) -> str:
        return f"{self._acronym}-{number:04}"

    def _at(self, number: int) -> Any:
        return self._began + timedelta(seconds=number * 60)

    def _state(self, number: int) -> str:
        if number > self._count - 20:
            return "in_progress"
        return "open" if number % 50 == 0 else ("done", "done", "done", "canceled", "failed")[number % 5]

    def _is_on(self, number: int, task: int) -> bool:
        return self._state(task) == "in_progress" and number % PER_TASK == PER_TASK - 1


def chunks(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    chunk: list[dict[str, Any]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def settle(database: Database) -> None:
    """Vacuum and analyze, as PostgreSQL does automatically within minutes; SQLite is left unchanged."""
    if not database.is_sqlite:
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
