"""A turn that is broken off and goes on: each comment is in the thread once, and the next run knows of it."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from control_plane.db.teams import Comment
from shared.events import Body, CommentStep
from shared.work_order import WorkOrder
from tests.support.going_on import give_back, go, steps, succeed, work
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn
from tests.support.team_rows import add_agent, add_task, assignee_of


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    """A drone of a fleet that runs."""
    made = plane.drone("oka")
    plane.collector(), plane.supervisor()
    return made


@pytest.fixture
def turn(plane: Plane, oka: DroneStandIn) -> WorkOrder:
    """The first run of an agent's turn, begun."""
    add_task(plane.core, plane.admin, add_agent(plane.core, plane.admin, "backend"))
    return go(oka)


def wrote(text: str) -> CommentStep:
    return CommentStep(text=text, to_task=True)


def cut_off(name: str, text: str) -> list[Body]:
    """A step that wrote a comment and did not come to its end."""
    said, _ = steps(name)
    return [said, wrote(text)]


def thread(plane: Plane, task_id: str) -> list[str]:
    with plane.core.database.read() as db:
        return list(db.scalars(select(Comment.text).where(Comment.task_id == task_id).order_by(Comment.id)))


def unseen(order: WorkOrder) -> tuple[str, ...]:
    assert order.team is not None
    return order.team.unseen


def test_a_comment_that_was_cut_off_with_its_step_stays_and_the_next_run_is_told_of_it(
    plane: Plane, oka: DroneStandIn, turn: WorkOrder
) -> None:
    oka.report(turn, wrote("I begin."))
    work(plane, oka, turn, "one")
    oka.report(turn, *cut_off("two", "Half done."), CommentStep(text="A remark on the run."))
    give_back(oka, turn)
    second = go(oka)

    assert second.resumed is not None
    assert unseen(second) == ("Half done.",)
    assert second.team is not None
    assert second.team.comments == 2
    oka.report(second, wrote("All done. @user"))
    succeed(plane, oka, second)
    assert thread(plane, str(second.task)) == ["I begin.", "Half done.", "All done. @user"]
    assert assignee_of(plane.core, str(second.task)) == "user"


def test_a_run_that_begins_anew_is_told_of_all_that_was_written_also_by_those_before(
    plane: Plane, oka: DroneStandIn, turn: WorkOrder
) -> None:
    assert turn.team is not None
    assert (turn.task, turn.agent, turn.team.comments, unseen(turn)) == (turn.team.task, "backend", 0, ())
    oka.report(turn, *cut_off("one", "I begin."), wrote("I go on."))
    give_back(oka, turn)
    second = go(oka)
    assert (second.resumed, unseen(second)) == (None, ("I begin.", "I go on."))
    oka.report(second, *cut_off("one again", "Once more."))
    give_back(oka, second)
    assert unseen(go(oka)) == ("I begin.", "I go on.", "Once more.")


def test_what_a_run_writes_that_is_not_the_current_one_any_more_stays_out_of_the_thread(
    plane: Plane, oka: DroneStandIn, turn: WorkOrder
) -> None:
    """S-055: nobody is told, and nothing is doubled."""
    give_back(oka, turn)
    second = go(oka)
    oka.report(turn, wrote("From the run before."))
    oka.report(second, wrote("Done. @user"))
    succeed(plane, oka, second)
    plane.until(lambda: assignee_of(plane.core, str(second.task)) == "user")
    assert thread(plane, str(second.task)) == ["Done. @user"]
