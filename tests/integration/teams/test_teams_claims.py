"""Which tasks begin, in which order, with what, and what the others wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update

from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.runs import Step
from control_plane.db.teams import Task
from control_plane.declarations.providers import ProviderRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations import providers, tasks
from control_plane.orders.ending import Ending, finish
from control_plane.orders.status_changes import move_task
from control_plane.supervisor.task_claims import claim_everywhere
from control_plane.teams.claiming import claim_tasks
from control_plane.teams.why_waiting import why_each_waits
from shared.errors import Conflict
from shared.reasons import NoDroneFits, RunEnd
from shared.states import ENDED, OrderStatus, TaskStatus
from tests.support.database import CoreFactory
from tests.support.made import make_drone, make_project
from tests.support.team_rows import (
    add_agent,
    add_task,
    assignee_of,
    begin,
    claim,
    comments_of,
    edit_agent,
    edit_organization,
    order_of,
    play,
    task_of,
    write_as,
)


@pytest.fixture
def core(core_factory: CoreFactory, sqlite_url: str, clock: Any) -> Core:
    """On SQLite, with a project and a drone that takes everything; the tests of two at once have both databases."""
    return with_project(core_factory(sqlite_url, clock=clock))


@pytest.fixture
def any_core(core_factory: CoreFactory, database_url: str, clock: Any) -> Core:
    return with_project(core_factory(database_url, clock=clock))


def with_project(core: Core) -> Core:
    make_project(core, system_caller(core))
    make_drone(core, system_caller(core), concurrency=100, beat={"abilities": ["teams"]})
    return core


@pytest.fixture
def lead(core: Core, admin: Caller) -> str:
    return add_agent(core, admin, "lead")


def in_progress(core: Core) -> list[str]:
    with core.database.read() as db:
        return list(db.scalars(select(Task.id).where(Task.status == TaskStatus.IN_PROGRESS).order_by(Task.id)))


# --- order and limits -------------------------------------------------------------------------


def test_urgent_tasks_begin_first_then_the_one_that_waits_longest(core: Core, admin: Caller, lead: str) -> None:
    edit_organization(core, admin, concurrency=1)
    first, urgent, last = (later_task(core, admin, lead, priority) for priority in (0, 5, 0))
    claim(core, admin)
    assert in_progress(core) == [urgent]
    play(core, urgent, "@user")
    assert in_progress(core) == [first]
    play(core, first, "@lead, more")
    assert in_progress(core) == [last]


def later_task(core: Core, admin: Caller, agent_id: str, priority: int) -> str:
    """A task that came a second after the one before."""
    core.clock.sleep(1)
    return add_task(core, admin, agent_id, claim=False, priority=priority)


def test_no_more_tasks_are_in_progress_than_the_organization_allows(core: Core, admin: Caller, lead: str) -> None:
    edit_organization(core, admin, concurrency=2)
    made = [add_task(core, admin, lead) for _ in range(4)]
    assert in_progress(core) == made[:2]
    edit_organization(core, admin, concurrency=0)
    claim(core, admin)
    assert in_progress(core) == made


def test_an_agent_at_its_limit_does_not_keep_others_back(core: Core, admin: Caller, lead: str) -> None:
    slow = add_agent(core, admin, "slow", concurrency=1)
    made = [add_task(core, admin, slow, claim=False, priority=9) for _ in range(60)]
    made.append(add_task(core, admin, lead, claim=False))
    claim(core, admin)
    assert in_progress(core) == [made[0], made[-1]]


def test_the_supervisor_finds_what_nobody_told_of(core: Core, admin: Caller, lead: str) -> None:
    task_id = add_task(core, admin, lead, claim=False)
    assert claim_everywhere(core) == [order_of(core, task_id).id]
    assert claim_everywhere(core) == []


# --- what a task waits for -----------------------------------------------------------------------


def why(core: Core, task_id: str) -> str:
    with core.database.read() as db:
        return why_each_waits(db, [db.get_one(Task, task_id)])[task_id]


def test_a_task_that_waits_says_what_for(core: Core, admin: Caller, lead: str) -> None:
    edit_agent(core, lead, concurrency=1)
    first, second = add_task(core, admin, lead), add_task(core, admin, lead)
    assert why(core, first) == ""
    assert "lead, which has 1 of 1 tasks in progress" in why(core, second)
    edit_organization(core, admin, concurrency=1)
    assert "its turn: 1 of 1 tasks are in progress" in why(core, second)
    edit_organization(core, admin, concurrency=0, paused_at=core.clock.now())
    third = add_task(core, admin, add_agent(core, admin, "tester"))
    assert in_progress(core) == [first]
    assert "fleet organization resume default" in why(core, third)


# --- what an order is made of --------------------------------------------------------------------


def test_the_order_has_the_agents_terms_and_the_tasks_before_them(core: Core, admin: Caller) -> None:
    providers.add(core, admin, ProviderRequest(name="other", model="openai/other"))
    with core.database.read() as db:
        other = db.scalars(select(Provider.id).where(Provider.name == "other")).one()
    terms = {"provider_id": other, "model": "openai/mine", "labels": {"gpu": "yes"}, "max_iterations": 7}
    agent = add_agent(core, admin, "lead", cost_limit=0.5, **terms)
    order = order_of(core, add_task(core, admin, agent, priority=3, mode="test", limits={"cost_limit": 9.0}))
    assert (order.provider_id, order.model, order.wanted_labels) == (other, "openai/mine", {"gpu": "yes"})
    assert (order.limits["max_iterations"], order.limits["cost_limit"]) == (7, 9.0)
    assert (order.priority, order.mode, order.agent_id, order.user) == (3, "test", agent, "kim")
    assert isinstance(order.facts.waits, NoDroneFits)
    assert order.facts.waits.labels == ("gpu=yes",)


def test_a_task_whose_run_could_not_start_fails_and_says_why(core: Core, admin: Caller, lead: str) -> None:
    """Without a provider, with one that was removed, which is not replaced by a guess, and in a removed project."""
    made = providers.add(core, admin, ProviderRequest(name="other", model="openai/other"))
    tasks_of = [add_task(core, admin, lead)]
    with core.database.write() as db:
        db.get_one(Provider, made.id).removed_at = core.clock.now()
    tasks_of.append(add_task(core, admin, add_agent(core, admin, "tester", provider_id=made.id)))
    tasks_of.append(add_task(core, admin, lead, claim=False))
    with core.database.write() as db:
        db.execute(update(Project).values(removed_at=core.clock.now()))
    claim(core, admin)
    assert [(task_of(core, each).status, assignee_of(core, each)) for each in tasks_of] == [("failed", "user")] * 3
    said = [comments_of(core, each)[-1][2] for each in tasks_of]
    assert "fleet agent edit lead --provider NAME" in said[0]
    assert "the provider of agent tester was removed" in said[1]
    assert "project web was removed" in said[2]


# --- two hands at once ----------------------------------------------------------------------------


def at_once(*acts: Callable[[], object]) -> list[object]:
    """Do all of it at the same time; what each gave, or the error that it raised."""
    barrier = threading.Barrier(len(acts))
    found: list[object] = [None] * len(acts)

    def act(number: int) -> None:
        barrier.wait()
        try:
            found[number] = acts[number]()
        except Exception as error:  # noqa: BLE001 - told to the test
            found[number] = error

    threads = [threading.Thread(target=act, args=(number,)) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def test_of_several_that_claim_at_once_each_counts_what_the_others_began(any_core: Core) -> None:
    admin = system_caller(any_core)
    agent = add_agent(any_core, admin, "lead")
    edit_organization(any_core, admin, concurrency=3)
    made = [add_task(any_core, admin, agent, claim=False) for _ in range(8)]
    work = lambda: any_core.database.transact(lambda db: claim_tasks(db, any_core, admin.organization_id))  # noqa: E731
    found = at_once(*[work] * 4)
    assert sorted(len(each) if isinstance(each, list) else repr(each) for each in found) == [0, 0, 0, 3]
    assert in_progress(any_core) == made[:3]


def test_runs_that_end_at_once_do_not_wait_for_each_other_for_ever(any_core: Core) -> None:
    admin = system_caller(any_core)
    agents = [add_agent(any_core, admin, name) for name in ("lead", "tester")]
    edit_organization(any_core, admin, concurrency=4, max_hand_offs=0)
    made = [add_task(any_core, admin, agents[0]) for _ in range(4)]
    found = at_once(*[lambda task_id=task_id: play_as_a_collector(any_core, task_id) for task_id in made])
    assert found == [None] * 4
    assert in_progress(any_core) == made
    assert [assignee_of(any_core, task_id) for task_id in made] == ["tester"] * 4


def play_as_a_collector(core: Core, task_id: str) -> None:
    """In one transaction: the order locked, a step stored, which points at the organization, and the run ended."""
    order_id = order_of(core, task_id).id
    run_id = begin(core, order_id)
    meeting = threading.Event()

    def work(db: Any) -> None:
        order = db.get_one(Order, order_id, with_for_update=True)
        now = core.clock.now()
        owned = {"organization_id": order.organization_id, "order_id": order_id, "run_id": run_id}
        db.add(Step(kind="comment", body={}, seq=1, run_seq=1, at=now, drone_at=now, **owned))
        db.flush()
        # Long enough for the others to be as far; with one writer at a time they are not, and need not be.
        meeting.wait(0.2)
        write_as(db, core, order, run_id, "@tester")
        finish(db, core, order, OrderStatus.SUCCEEDED, Ending("stopped", RunEnd(detail="the model stopped")))

    core.database.transact(work)


def test_of_a_preempt_and_the_runs_end_at_once_one_is_first_and_nothing_is_lost(any_core: Core) -> None:
    admin = system_caller(any_core)
    task_id = add_task(any_core, admin, add_agent(any_core, admin, "lead"))
    order_id = order_of(any_core, task_id).id
    begin(any_core, order_id)
    preempted, ended = at_once(
        lambda: tasks.preempt(any_core, admin, task_id),
        lambda: any_core.database.transact(lambda db: end_now(db, any_core, order_id)),
    )
    assert ended is None
    assert preempted is None or isinstance(preempted, Conflict) or task_of(any_core, task_id).status == "open"
    assert (task_of(any_core, task_id).status, assignee_of(any_core, task_id)) == ("open", "user")
    assert order_of(any_core, task_id).status in ENDED


def end_now(db: Any, core: Core, order_id: str) -> None:
    """As the collector does when the run's last event comes, whatever was asked of it meanwhile."""
    order = db.get_one(Order, order_id, with_for_update=True)
    to = OrderStatus.CANCELED if order.status == OrderStatus.CANCELING else OrderStatus.SUCCEEDED
    finish(db, core, order, to, Ending("stopped", RunEnd(detail="it ended")))


def test_a_task_that_went_on_with_another_order_is_not_moved_by_who_saw_the_one_before(
    core: Core, admin: Caller
) -> None:
    task_id = add_task(core, admin, None)
    seen = task_of(core, task_id)
    with core.database.write() as db:
        db.execute(update(Task).values(order_id="another one"))
    with pytest.raises(Conflict), core.database.write() as db:
        move_task(db, db.merge(seen, load=False), TaskStatus.DONE)
