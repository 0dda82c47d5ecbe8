"""Tasks, runs and sums as people read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from control_plane.contract.declarations.task_documents import TaskCancelRequest
from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from control_plane.operations import status, tasks
from control_plane.operations.tasks import runs
from control_plane.orders import totals
from shared.events import AssistantStep
from tests.support.task_states import Workshop
from tests.support.team_rows import add_task, begin, end, order_of, play, say
from tests.support.turns import report


@pytest.fixture
def workshop(database_url: str, tmp_path: Path) -> Iterator[Workshop]:
    made = Workshop.create(database_url, tmp_path)
    yield made
    made.core.database.dispose()


def spend(workshop: Workshop, task_id: str, **figures: Any) -> str:
    """Begin the task's run and let it have spent this; returns its id."""
    workshop.begin()
    run_id = begin(workshop.core, order_of(workshop.core, task_id).id)
    with workshop.core.database.write() as db:
        run = db.get_one(Run, run_id)
        for name, value in figures.items():
            setattr(run, name, value)
    return run_id


@pytest.mark.dialects
def test_cost_is_summed_over_runs_when_it_is_asked_for(workshop: Workshop) -> None:
    """S-034: a task's, an agent's and the organization's totals are the sums of their runs."""
    core, caller = workshop.core, workshop.caller
    first, second, third = workshop.new(), workshop.new("backend"), workshop.new()
    spend(workshop, first, cost_usd=0.25, input_tokens=100, output_tokens=10, duration_ms=1000)
    spend(workshop, second, cost_usd=0.25, assumed_usd=0.25, input_tokens=200, output_tokens=20, duration_ms=2000)
    spend(workshop, third, cost_usd=None, input_tokens=400, output_tokens=40, duration_ms=4000)

    with core.database.read() as db:
        lead = db.get_one(Order, order_of(core, first).id).agent_id or ""
        of_all = totals.of_organization(db, caller.organization_id)
        of_lead = totals.of_agent(db, caller.organization_id, lead)
        of_tasks = totals.of_tasks(db, [first, third, "DEFA-9999"])

    assert (of_all.runs, of_all.cost_usd, of_all.unknown_costs) == (3, 0.75, 1)
    assert (of_all.input_tokens, of_all.output_tokens, of_all.duration_ms) == (700, 70, 7000)
    assert (of_lead.runs, of_lead.cost_usd, of_lead.unknown_costs, of_lead.input_tokens) == (2, 0.25, 1, 500)
    assert (of_tasks[first].cost_usd, of_tasks[third].cost_usd, of_tasks["DEFA-9999"]) == (0.25, None, totals.NOTHING)
    assert status.status(core, caller).totals == of_all
    assert workshop.show(first).totals == of_tasks[first]
    assert [run.cost_usd for run in runs.of_task(core, caller, second)] == [0.5]


def test_a_row_of_the_list_says_how_long_the_run_is_on_and_how_long_all_took(workshop: Workshop) -> None:
    """S-025."""
    core, caller, task_id = workshop.core, workshop.caller, workshop.new()
    run_id = spend(workshop, task_id, duration_ms=1500, doing="shell: npm test", doing_since=core.clock.now())
    (run,) = runs.of_task(core, caller, task_id)
    assert (workshop.show(task_id).reason, run.doing, run.run_id) == ("shell: npm test", "shell: npm test", run_id)
    core.clock.sleep(42)
    (row,) = tasks.list_(core, caller)
    end(core, order_of(core, task_id).id, "failed")
    (ended,) = tasks.list_(core, caller)
    assert (row.current_run_elapsed_seconds, row.status) == (42.0, "in_progress")
    assert (ended.current_run_elapsed_seconds, ended.total_duration_seconds) == (None, 1.5)


def test_the_timeline_is_in_order_of_time_with_a_run_before_what_it_wrote(workshop: Workshop) -> None:
    """S-026."""
    core, task_id = workshop.core, workshop.new()
    workshop.begin()
    order_id = order_of(core, task_id).id
    begin(core, order_id)
    say(core, task_id, "At once.")
    core.clock.sleep(10)
    say(core, task_id, "Later, @user.")
    end(core, order_id)
    tasks.cancel(core, workshop.caller, task_id, TaskCancelRequest())
    timeline = workshop.show(task_id).model_dump()["timeline"]
    told = [f"run of {each['run']['agent']}" if each["run"] else each["comment"]["text"] for each in timeline]
    assert told == ["run of lead", "At once.", "Later, @user.", "system canceled the task."]


def test_what_a_task_delivered_is_that_of_its_newest_run_with_work(workshop: Workshop) -> None:
    core, task_id = workshop.core, workshop.new()
    workshop.begin()
    with core.database.write() as db:
        order = db.get_one(Order, order_of(core, task_id).id)
        order.branch, order.head_commit, order.pushed = "fleet/first", "a" * 40, True
    play(core, task_id, "@backend now you.")
    workshop.begin()
    play(core, task_id, "I changed nothing, @user.")
    task = workshop.show(task_id)
    assert (task.branch, task.head_commit, task.pushed) == ("fleet/first", "a" * 40, True)
    assert [run.agent for run in runs.of_task(core, workshop.caller, task_id)] == ["lead", "backend"]


def test_a_failure_is_short_in_the_timeline_and_whole_in_the_run(workshop: Workshop) -> None:
    """S-031, S-032, S-084: with its steps, numbered from 1."""
    task_id = workshop.new()
    why = "litellm.RateLimitError: 429 from the provider, try again in 3 h, and a lot of other text"
    run_id = spend(workshop, task_id, exit_status="model_error", reason=why)
    report(workshop.core, run_id, [AssistantStep(text="I look."), AssistantStep(text="I see.")])
    with workshop.core.database.write() as db:
        db.query(Step).update({"seq": Step.seq + 6})
    end(workshop.core, order_of(workshop.core, task_id).id, "failed")
    (entry,) = [each.run for each in workshop.show(task_id).timeline if each.run]
    run = runs.show_run(workshop.core, workshop.caller, run_id)
    assert (entry.reason, run.reason) == ("LLM rate limit reached", why)
    assert [(step["number"], step["text"]) for step in run.steps] == [(1, "I look."), (2, "I see.")]


def test_a_list_costs_as_many_queries_for_many_tasks_as_for_one(workshop: Workshop) -> None:
    core, caller, seen = workshop.core, workshop.caller, []
    event.listen(core.database.engine, "before_cursor_execute", lambda *arguments: seen.append(arguments[2]))

    def queries() -> int:
        seen.clear()
        tasks.list_(core, caller)
        return len(seen)

    add_task(core, caller, None)
    few = queries()
    for _ in range(20):
        add_task(core, caller, None)
    assert queries() == few
