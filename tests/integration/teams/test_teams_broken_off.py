"""A turn that is broken off and goes on: each comment is in the thread once, and the next run knows of it."""

from __future__ import annotations

from shared.events import CommentStep
from shared.work_order import WorkOrder
from tests.support.going_on import give_back, go, steps, succeed, work
from tests.support.planes import Plane
from tests.support.team_rows import add_agent, add_task, assignee_of, comments_of


def wrote(text: str) -> CommentStep:
    return CommentStep(text=text, to_task=True)


def unseen(order: WorkOrder) -> tuple[str, ...]:
    assert order.team is not None
    return order.team.unseen


def test_comments_of_runs_that_were_broken_off_stay_and_the_next_run_is_told_of_those_that_it_does_not_see(
    plane: Plane,
) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    task_id = add_task(plane.core, plane.admin, add_agent(plane.core, plane.admin, "backend"))
    first = go(oka)
    assert first.team is not None
    assert (first.task, first.agent, first.team.comments, unseen(first)) == (task_id, "backend", 0, ())
    # A step that wrote a comment and did not come to its end: the run that begins anew is told of all.
    oka.report(first, steps("one")[0], wrote("I begin."), wrote("I go on."))
    give_back(oka, first)
    second = go(oka)
    assert (second.resumed, unseen(second)) == (None, ("I begin.", "I go on."))
    oka.report(second, wrote("Anew."))
    work(plane, oka, second, "one")
    oka.report(second, steps("two")[0], wrote("Half done."), CommentStep(text="A remark on the run."))
    give_back(oka, second)
    # What its checkpoint holds, the run that goes on from it sees.
    third = go(oka)
    assert third.resumed is not None
    assert third.team is not None
    assert "Half done." in unseen(third)
    assert ("Anew." in unseen(third), third.team.comments) == (False, 4)
    # S-055: what a run writes that is not the current one any more stays out of the thread.
    oka.report(first, wrote("From the run before."))
    oka.report(third, wrote("All done. @user"))
    succeed(plane, oka, third)
    plane.until(lambda: assignee_of(plane.core, task_id) == "user")
    thread = [text for _, _, text in comments_of(plane.core, task_id)]
    assert thread == ["I begin.", "I go on.", "Anew.", "Half done.", "All done. @user"]
