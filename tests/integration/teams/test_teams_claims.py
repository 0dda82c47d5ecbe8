"""Which tasks begin, in which order, with what, and what the others wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select, update

from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.sessions import SessionEdit
from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.runs import Step
from control_plane.db.teams import Task
from control_plane.operations import providers, sessions, tasks
from control_plane.orders.ending import Ending, finish
from control_plane.orders.status_changes import move_task
from control_plane.teams.claiming import claim_everywhere, claim_tasks
from control_plane.teams.why_waiting import why_each_waits
from shared.errors import Conflict
from shared.reasons import NoDroneFits, RunEnd
from shared.states import ENDED, OrderStatus, TaskStatus
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
def lead(core: Core, admin: Caller) -> str:
    """An agent, with a project and a drone that takes everything."""
    make_project(core, admin)
    make_drone(core, admin, concurrency=100)
    return add_agent(core, admin, "lead")


def in_progress(core: Core) -> list[str]:
    with core.database.read() as db:
        return list(db.scalars(select(Task.id).where(Task.status == TaskStatus.IN_PROGRESS).order_by(Task.id)))


def test_urgent_tasks_begin_first_then_the_one_that_waits_longest(core: Core, admin: Caller, lead: str) -> None:
    edit_organization(core, admin, concurrency=1)
    waiting = []
    for priority in (0, 5, 0, 0):
        core.clock.sleep(1)
        waiting.append(add_task(core, admin, lead, claim=False, priority=priority))
    first, urgent, last, never_told_of = waiting
    claim(core, admin)
    assert in_progress(core) == [urgent]
    play(core, urgent, "@user")
    assert in_progress(core) == [first]
    play(core, first, "@lead, more")
    assert in_progress(core) == [last]
    edit_organization(core, admin, concurrency=3)
    assert claim_everywhere(core) == [order_of(core, each).id for each in (never_told_of, first)]
    assert claim_everywhere(core) == []


def test_an_agent_at_its_limit_does_not_keep_others_back(core: Core, admin: Caller, lead: str) -> None:
    slow = add_agent(core, admin, "slow", concurrency=1)
    made = [add_task(core, admin, slow, claim=False, priority=9) for _ in range(60)]
    made.append(add_task(core, admin, lead, claim=False))
    claim(core, admin)
    assert in_progress(core) == [made[0], made[-1]]


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


def test_the_order_has_the_agents_terms_and_the_tasks_before_them(core: Core, admin: Caller, lead: str) -> None:
    providers.add(core, admin, ProviderRequest(name="other", model="openai/other"))
    with core.database.read() as db:
        other = db.scalars(select(Provider.id).where(Provider.name == "other")).one()
    terms = {"provider_id": other, "model": "openai/mine", "labels": {"gpu": "yes"}, "max_iterations": 7}
    agent = add_agent(core, admin, "tester", cost_limit=0.5, **terms)
    order = order_of(core, add_task(core, admin, agent, priority=3, mode="test", limits={"cost_limit": 9.0}))
    assert (order.provider_id, order.model, order.wanted_labels) == (other, "openai/mine", {"gpu": "yes"})
    assert (order.limits["max_iterations"], order.limits["cost_limit"]) == (7, 9.0)
    assert (order.priority, order.mode, order.agent_id, order.user) == (3, "test", agent, "kim")
    assert isinstance(order.facts.waits, NoDroneFits)
    assert order.facts.waits.labels == ("gpu=yes",)


def test_the_mode_of_a_tasks_session_is_the_mode_of_its_next_turn(core: Core, admin: Caller, lead: str) -> None:
    task_id = add_task(core, admin, lead, claim=False)
    sessions.edit(core, admin, task_of(core, task_id).session_id, SessionEdit(mode="plan"))
    claim(core, admin)
    shown = tasks.show(core, admin, task_id).mode, tasks.list_(core, admin)[0].mode
    assert (order_of(core, task_id).mode, shown) == ("plan", ("plan", "plan"))


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
    assert f"fleet agent edit lead --provider NAME, then: fleet task retry {tasks_of[0]}" in said[0]
    assert "the provider of agent tester was removed" in said[1]
    assert "project web was removed" in said[2]


def at_once(*acts: Callable[[], object]) -> list[object]:
    """Do all of it at the same time; what each gave, or the error that it raised."""
    barrier = threading.Barrier(len(acts))

    def act(work: Callable[[], object]) -> object:
        barrier.wait(60)
        return work()

    with ThreadPoolExecutor(len(acts)) as pool:
        done = [pool.submit(act, each) for each in acts]
    return [each.exception() or each.result() for each in done]


@pytest.mark.dialects
def test_of_several_that_claim_at_once_each_counts_what_the_others_began(core: Core, admin: Caller, lead: str) -> None:
    edit_organization(core, admin, concurrency=3)
    made = [add_task(core, admin, lead, claim=False) for _ in range(8)]
    work = lambda: core.database.transact(lambda db: claim_tasks(db, core, admin.organization_id))  # noqa: E731
    found = at_once(*[work] * 4)
    assert sorted(len(each) if isinstance(each, list) else repr(each) for each in found) == [0, 0, 0, 3]
    assert in_progress(core) == made[:3]


@pytest.mark.dialects
def test_runs_that_end_at_once_do_not_wait_for_each_other_for_ever(core: Core, admin: Caller, lead: str) -> None:
    add_agent(core, admin, "tester")
    edit_organization(core, admin, concurrency=4, max_hand_offs=0)
    made = [add_task(core, admin, lead) for _ in range(4)]
    found = at_once(*[lambda task_id=task_id: play_as_a_collector(core, task_id) for task_id in made])
    assert found == [None] * 4
    assert in_progress(core) == made
    assert [assignee_of(core, task_id) for task_id in made] == ["tester"] * 4


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


@pytest.mark.dialects
def test_of_a_preempt_and_the_runs_end_at_once_one_is_first_and_nothing_is_lost(
    core: Core, admin: Caller, lead: str
) -> None:
    task_id = add_task(core, admin, lead)
    order_id = order_of(core, task_id).id
    begin(core, order_id)
    preempted, ended = at_once(
        lambda: tasks.preempt(core, admin, task_id),
        lambda: core.database.transact(lambda db: end_now(db, core, order_id)),
    )
    assert ended is None
    assert preempted is None or isinstance(preempted, Conflict) or task_of(core, task_id).status == "open"
    assert (task_of(core, task_id).status, assignee_of(core, task_id)) == ("open", "user")
    assert order_of(core, task_id).status in ENDED


def end_now(db: Any, core: Core, order_id: str) -> None:
    """As the collector does when the run's last event comes, whatever was asked of it meanwhile."""
    order = db.get_one(Order, order_id, with_for_update=True)
    to = OrderStatus.CANCELED if order.status == OrderStatus.CANCELING else OrderStatus.SUCCEEDED
    finish(db, core, order, to, Ending("stopped", RunEnd(detail="it ended")))


@pytest.mark.usefixtures("lead")
def test_a_task_that_went_on_with_another_order_is_not_moved_by_who_saw_the_one_before(
    core: Core, admin: Caller
) -> None:
    task_id = add_task(core, admin, None)
    seen = task_of(core, task_id)
    with core.database.write() as db:
        db.execute(update(Task).values(order_id="another one"))
    with pytest.raises(Conflict), core.database.write() as db:
        move_task(db, db.merge(seen, load=False), TaskStatus.DONE)
