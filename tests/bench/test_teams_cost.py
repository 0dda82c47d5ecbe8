"""Reads stay fast in an organization with 10,000 tasks, 100,000 comments and 100,000 runs, next to another as large.

Each read is compared with reading a single row by its key, alternating with it: a slow or busy machine changes both
alike. The milliseconds in the table are for people.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

import pytest
from sqlalchemy import select, update

from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.db.teams import Agent, Task
from control_plane.operations import status, tasks
from control_plane.operations.tasks import runs
from control_plane.orders import totals
from control_plane.teams import hand_off
from control_plane.teams.routing import decide
from tests.bench.table_sizes import settle
from tests.support.database import core_on
from tests.support.made import make_drone, make_project
from tests.support.many_tasks import fill
from tests.support.organizations import add_organization
from tests.support.team_rows import add_agent

pytestmark = [pytest.mark.bench, pytest.mark.apart, pytest.mark.dialects, pytest.mark.timeout(1200)]

MOST = 80
"""Maximum duration of a read, in multiples of reading one row; on an idle machine that is about 50 ms."""
ROUNDS = 9
AGENTS = 20
PER_TASK = 10
"""The number of comments, and of runs."""


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.long)])
def test_reading_among_many_runs_takes_as_long_as_a_few_rows(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    core = core_on(database_url, tmp_path)
    with ExitStack() as stack:
        stack.callback(core.database.dispose)
        stack.enter_context(capsys.disabled())
        caller = system_caller(core)
        # Orders are numbered in the whole installation.
        filled(core, add_organization(core, caller, "payments"), count)
        with core.database.write() as db:
            db.execute(update(Order).values(number=Order.number + count * PER_TASK))
        filled(core, caller, count)
        settle(core)
        one = one_row(core, caller.organization_id)
        sys.stdout.write(f"\n{count:,} tasks and {count * PER_TASK:,} runs, twice; medians of {ROUNDS}:\n")
        times = {what: compared(what, read, one) for what, read in readings(core, caller, count).items()}
    assert {what: round(each) for what, each in times.items() if each > MOST} == {}


def filled(core: Core, caller: Caller, count: int) -> None:
    """Add a project, a drone, and agents with this many tasks, of which the open ones are theirs."""
    make_project(core, caller, f"web-{caller.organization_id}")
    make_drone(core, caller, f"anna-{caller.organization_id}")
    agents = [add_agent(core, caller, f"agent_{number:02}") for number in range(AGENTS)]
    fill(core, caller, agents, tasks=count, each=PER_TASK)
    with core.database.write() as db:
        for number, agent in enumerate(agents):
            own = Task.organization_id == caller.organization_id, Task.number % AGENTS == number
            db.execute(update(Task).where(*own, Task.status == "open").values(assignee_id=agent))


def readings(core: Core, caller: Caller, count: int) -> dict[str, Callable[[], object]]:
    """The most frequent reads, by users and by the engine."""
    with core.database.read() as db:
        own = caller.organization_id
        agent = db.scalars(select(Agent).where(Agent.organization_id == own, Agent.name == "agent_17")).one()
        middle = db.scalars(select(Task.id).where(Task.organization_id == own, Task.number == count // 2)).one()
        run_id = db.scalars(select(Run.id).where(Run.task_id == middle)).first() or ""

    def summed(of: Callable[..., object], *which: object) -> Callable[[], object]:
        def read() -> object:
            with core.database.read() as db:
                return of(db, *which)

        return read

    return {
        "list 50": lambda: tasks.list_(core, caller),
        "list 50 open": lambda: tasks.list_(core, caller, status="open"),
        "list 50 of an agent": lambda: tasks.list_(core, caller, assignee=agent.name),
        "list 50 done of the user": lambda: tasks.list_(core, caller, status="done", assignee="user"),
        "show with its timeline": lambda: tasks.show(core, caller, middle),
        "runs of a task": lambda: runs.of_task(core, caller, middle),
        "one run": lambda: runs.show_run(core, caller, run_id),
        "reading of the routing": lambda: route(core, middle),
        "totals of the organization": summed(totals.of_organization, own),
        "totals of an agent": summed(totals.of_agent, own, agent.id),
        "totals of a task": summed(totals.of_tasks, [middle]),
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


def one_row(core: Core, organization_id: str) -> Callable[[], object]:
    """A read of one row by its key, in a separate transaction."""

    def read() -> object:
        with core.database.read() as db:
            return db.get_one(Organization, organization_id)

    return read


def compared(what: str, read: Callable[[], object], one: Callable[[], object]) -> float:
    """The shortest time of a read as a multiple of that of reading one row: the rest is other load on the machine."""
    read(), one()
    pairs = [(_ms(read), _ms(one)) for _ in range(ROUNDS)]
    readings, rows = zip(*pairs, strict=True)
    times = min(readings) / min(rows)
    sys.stdout.write(f"  {what:<28} {statistics.median(readings):7.1f} ms, {times:5.1f} times one row\n")
    return times


def _ms(read: Callable[[], object]) -> float:
    began = perf_counter()
    read()
    return (perf_counter() - began) * 1000
