"""How a run's end moves its task, and what the thread and the people are told of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.contract.declarations.orders import CancelRequest, ResumeRequest
from control_plane.contract.declarations.task_documents import AssignRequest, CommentRequest
from control_plane.contract.declarations.webhooks import WebhookRequest
from control_plane.core import Caller, Core
from control_plane.db.automation import WebhookDelivery
from control_plane.db.orders import Order
from control_plane.operations import sessions, tasks
from control_plane.operations.automation import webhooks
from control_plane.operations.orders import retrying
from control_plane.operations.orders.canceling import cancel
from control_plane.orders.assignment import place_and_dispatch
from shared.errors import Conflict
from tests.support.made import make_drone, make_project, submit
from tests.support.refusals import code_of
from tests.support.team_rows import (
    ENDED,
    add_agent,
    add_task,
    assignee_of,
    begin,
    claim,
    comments_of,
    edit_agent,
    edit_organization,
    end,
    kinds_of,
    order_of,
    play,
    say,
    task_of,
)
from tests.support.turns import order_as_sent


@dataclass
class Team:
    """`lead`, and its reports `backend` and `tester`, with a drone that takes all of their work."""

    core: Core
    admin: Caller
    lead: str
    backend: str
    tester: str

    def task(self, agent: str = "lead", **fields: Any) -> str:
        return add_task(self.core, self.admin, getattr(self, agent), **fields)

    def begun(self) -> tuple[str, str, str]:
        """A task whose first run works: the ids of the task, the order and the run."""
        task_id = self.task()
        order_id = order_of(self.core, task_id).id
        return task_id, order_id, begin(self.core, order_id)

    def where(self, task_id: str) -> tuple[str, str]:
        return task_of(self.core, task_id).status, assignee_of(self.core, task_id)

    def last(self, task_id: str) -> tuple[str, str, str]:
        return comments_of(self.core, task_id)[-1]

    def comment(self, task_id: str, text: str) -> None:
        tasks.comment(self.core, self.admin, task_id, CommentRequest(text=text))


@pytest.fixture
def team(core: Core, admin: Caller) -> Team:
    make_project(core, admin)
    make_drone(core, admin, concurrency=10)
    lead = add_agent(core, admin, "lead")
    return Team(core, admin, lead, *(add_agent(core, admin, name, "lead") for name in ("backend", "tester")))


def test_a_task_goes_to_who_is_tagged_then_to_who_was_mentioned_then_to_the_boss_up_to_the_limit(team: Team) -> None:
    edit_organization(team.core, team.admin, max_hand_offs=3)
    task_id = team.task()
    play(team.core, task_id, "A plan. @tester will look at it.", "@backend, build it.")
    assert team.where(task_id) == ("in_progress", "backend")
    assert (kinds_of(team.core, task_id), task_of(team.core, task_id).hand_offs) == ([], 1)
    play(team.core, task_id, "built")
    assert team.where(task_id) == ("in_progress", "tester")
    play(team.core, task_id)
    assert team.where(task_id) == ("in_progress", "lead")
    assert kinds_of(team.core, task_id) == ["handed_off", "no_comment", "escalated"]
    play(team.core, task_id, "@backend")
    assert (team.where(task_id), team.last(task_id)[1]) == (("open", "user"), "hand_off_limit")
    # What a person writes lets it go on, and a run that writes nothing is not judged by an earlier one's words.
    team.comment(task_id, "go on, @backend")
    play(team.core, task_id, "@lead, once more")
    play(team.core, task_id)
    assert team.where(task_id) == ("open", "user")
    assert kinds_of(team.core, task_id)[-2:] == ["no_comment", "returned"]


def test_an_agent_that_ran_since_its_mention_is_not_next_again_after_the_clock_was_set_back(team: Team) -> None:
    """Also one that wrote nothing; a mention after its run counts, though the clock is behind that run."""
    task_id = team.task("backend")
    play(team.core, task_id, "First this, then @tester, later @lead.", "@tester")
    team.core.clock.at -= timedelta(hours=2)
    play(team.core, task_id)
    assert team.where(task_id) == ("in_progress", "lead")
    assert kinds_of(team.core, task_id) == ["no_comment", "handed_off"]
    play(team.core, task_id, "@tester is next. Now @backend.")
    play(team.core, task_id, "done")
    assert (team.where(task_id), kinds_of(team.core, task_id)[2:]) == (("in_progress", "tester"), ["handed_off"])
    play(team.core, task_id, "done, too")
    assert (team.where(task_id), kinds_of(team.core, task_id)[3:]) == (("in_progress", "lead"), ["escalated"])


def test_what_an_earlier_run_of_the_same_order_wrote_counts(team: Team) -> None:
    task_id, order_id, _ = team.begun()
    say(team.core, task_id, "@tester")
    with team.core.database.write() as db:
        order = db.get_one(Order, order_id)
        order.status, order.run_id = "queued", None
        db.flush()
        place_and_dispatch(db, team.core, order)
    play(team.core, task_id)
    assert (team.where(task_id), kinds_of(team.core, task_id)) == (("in_progress", "tester"), [])


def test_an_agent_that_was_removed_is_not_next_and_its_own_run_is_routed_all_the_same(team: Team) -> None:
    first, second, waiting = team.task("backend"), team.task("tester"), team.task("tester", claim=False)
    edit_agent(team.core, team.tester, removed_at=team.core.clock.now())
    play(team.core, first, "@tester, look")
    play(team.core, second, "@backend, look")
    claim(team.core, team.admin)
    assert (team.where(first), team.where(second)) == (("in_progress", "lead"), ("in_progress", "backend"))
    assert (team.where(waiting), team.last(waiting)[1]) == (("open", "user"), "agent_removed")


def test_a_run_that_failed_fails_its_task_and_one_at_its_iteration_limit_is_routed_and_both_say_why(team: Team) -> None:
    """The whole reason stays with the run."""
    for how, kind, said in (
        ("failed", "failed", "LLM rate limit reached"),
        ("time_limit", "failed", "The time limit of 1800 s was reached"),
        ("lost", "lost", "was lost with its drone"),
    ):
        task_id = team.task()
        order_id = play(team.core, task_id, "@backend", how=how)
        assert team.where(task_id) == ("failed", "user"), how
        assert (team.last(task_id)[:2], said in team.last(task_id)[2]) == (("system", kind), True), how
        with team.core.database.read() as db:
            assert db.get_one(Order, order_id).reason == ENDED[how][2]
    task_id = team.task()
    play(team.core, task_id, "@backend, go on", how="max_iterations")
    assert team.where(task_id) == ("in_progress", "backend")
    assert team.last(task_id) == ("system", "iteration_limit", "The run of lead reached its iteration limit (50).")


def test_a_preempted_run_may_still_write_and_decides_nothing(team: Team) -> None:
    """Nor does one whose order was canceled by hand."""
    task_id, order_id, _ = team.begun()
    tasks.preempt(team.core, team.admin, task_id)
    say(team.core, task_id, "@backend, I was just about to")
    end(team.core, order_id, "canceled")
    assert team.where(task_id) == ("open", "user")
    assert team.last(task_id) == ("lead", "comment", "@backend, I was just about to")

    task_id, order_id, _ = team.begun()
    cancel(team.core, team.admin, order_id, CancelRequest(reason="no longer needed"))
    assert team.where(task_id) == ("in_progress", "lead")
    end(team.core, order_id, "canceled")
    assert (team.where(task_id), team.last(task_id)[1]) == (("open", "user"), "run_canceled")


def test_a_comment_of_an_agent_longer_than_a_comment_may_be_is_cut_and_says_where_the_rest_is(team: Team) -> None:
    task_id, _, run_id = team.begun()
    say(team.core, task_id, " \n")
    assert comments_of(team.core, task_id) == []
    say(team.core, task_id, "x" * 150_000)
    text = team.last(task_id)[2]
    assert len(text) == 100_000
    assert text.endswith(f"[Truncated: the comment has 150,000 characters. Full text: fleet run show {run_id} --full]")


def test_webhooks_hear_when_a_task_comes_to_the_user_or_fails(team: Team) -> None:
    webhooks.create(team.core, team.admin, WebhookRequest(name="chat", url="https://example.org"))
    first, second = team.task(), team.task()
    play(team.core, first, "It is done, @user.")
    play(team.core, second, how="time_limit")
    with team.core.database.read() as db:
        sent = {row.event: row.data for row in db.scalars(select(WebhookDelivery)) if row.event.startswith("task.")}
    waiting, failed = sent["task.waiting"], sent["task.failed"]
    assert (waiting["task"], waiting["status"], waiting["reason"]) == (first, "open", "It is done, @user.")
    assert (failed["task"], failed["status"]) == (second, "failed")


def test_an_order_of_a_task_is_not_retried_by_itself_and_its_session_is_its_own(team: Team) -> None:
    core, admin, task_id = team.core, team.admin, team.task()
    for how, next_ in (("canceled", f"fleet task assign {task_id} AGENT"), ("failed", f"fleet task retry {task_id}")):
        order_id = play(core, task_id, how=how)
        with pytest.raises(Conflict) as refused:
            retrying.retry(core, admin, order_id)
        assert (refused.value.code, refused.value.next.split("    ")[0]) == ("E-ORDER-TASK", next_)
        tasks.assign(core, admin, task_id, AssignRequest(assignee="lead"))
    assert code_of(lambda: retrying.resume(core, admin, order_id, ResumeRequest())) == "E-ORDER-TASK"
    session_id = task_of(core, task_id).session_id
    assert code_of(lambda: submit(core, admin, session=session_id)) == "E-SESSION-TASK"
    assert sessions.list_(core, admin) == []
    assert [each.id for each in sessions.list_(core, admin, every=True)] == [session_id]


def test_a_run_that_ended_by_the_models_fault_leaves_its_work_to_the_next_one(team: Team) -> None:
    task_id, order_id, run_id = team.begun()
    with team.core.database.write() as db:
        order = db.get_one(Order, order_id)
        order.head_commit, order.branch, order.pushed, order.result_run_id = "c" * 40, "fleet/x", True, run_id
    end(team.core, order_id, "failed")
    team.comment(task_id, "once more, @backend")
    base = order_as_sent(team.core, order_of(team.core, task_id).id).base
    assert (base.commit, base.branch) == ("c" * 40, "fleet/x")
