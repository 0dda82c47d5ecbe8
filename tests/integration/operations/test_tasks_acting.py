"""What people may do with a task in each state (S-042, S-110 to S-114): the whole table, on each kind of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import Barrier
from typing import cast

import pytest

from control_plane.core import Caller, Core
from control_plane.declarations.orders import CancelRequest
from control_plane.declarations.task_documents import (
    AssignRequest,
    CommentRequest,
    TaskCancelRequest,
    TaskDocument,
    TaskRequest,
    TaskRetryRequest,
)
from control_plane.operations import tasks
from shared.errors import FleetError, Forbidden, Invalid, NotFound, Precondition, TooLarge
from shared.reasons import CancelAsked
from tests.support.clocks import HandClock
from tests.support.made import make_project
from tests.support.task_states import STATES, Workshop
from tests.support.team_rows import add_agent, begin, comments_of, edit_organization, end, kinds_of, order_of, play

Act = Callable[[Core, Caller, str], object]


def commenting(text: str) -> Act:
    return lambda core, caller, task_id: tasks.comment(core, caller, task_id, CommentRequest(text=text))


ACTS: dict[str, Act] = {
    "comment": commenting("Please have a look."),
    "comment @backend": commenting("@lead no, @backend please"),
    "comment @user": commenting("I take it: @user"),
    "comment @nobody": commenting("@nobody please"),
    "assign backend": lambda core, caller, task: tasks.assign(core, caller, task, AssignRequest(assignee="backend")),
    "assign user": lambda core, caller, task: tasks.assign(core, caller, task, AssignRequest(assignee="user")),
    "preempt": tasks.preempt,
    "done": tasks.done,
    "reopen": tasks.reopen,
    "retry": lambda core, caller, task: tasks.retry(core, caller, task, TaskRetryRequest()),
    "retry backend": lambda core, caller, task: tasks.retry(core, caller, task, TaskRetryRequest(assignee="backend")),
    "cancel": lambda core, caller, task: tasks.cancel(core, caller, task, TaskCancelRequest(reason="not needed")),
}
RULES = {
    "comment": {each: each for each in ("open/lead", "open/user", "failed/user")},
    "comment @backend": dict.fromkeys(("open/lead", "open/user", "failed/user"), "open/backend"),
    "comment @user": dict.fromkeys(("open/lead", "open/user", "failed/user"), "open/user"),
    "comment @nobody": dict.fromkeys(("open/lead", "open/user", "failed/user"), "NotFound"),
    "assign backend": dict.fromkeys(("open/lead", "open/user", "failed/user"), "open/backend"),
    "assign user": dict.fromkeys(("open/lead", "open/user", "failed/user"), "open/user"),
    "preempt": {"in_progress/lead": "open/user"},
    "done": dict.fromkeys(("open/user", "failed/user"), "done/user"),
    "reopen": dict.fromkeys(("done/user", "failed/user"), "open/user"),
    "retry": dict.fromkeys(("done/user", "failed/user"), "open/lead"),
    "retry backend": dict.fromkeys(("done/user", "failed/user"), "open/backend"),
    "cancel": dict.fromkeys(("open/lead", "open/user", "in_progress/lead", "failed/user"), "canceled/user"),
}
"""What becomes of a task by each act, from where it may be asked for; anywhere else it is a Conflict."""
CELLS = [(act, state, RULES[act].get(state, "Conflict")) for act in ACTS for state in STATES]


@pytest.fixture(scope="module")
def sqlite_workshop(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    directory = tmp_path_factory.mktemp("workshop")
    (directory / "fleet.db").write_bytes(sqlite_template.read_bytes())
    made = Workshop.create(f"sqlite:///{directory / 'fleet.db'}", directory)
    yield made
    made.core.database.dispose()


@pytest.fixture
def workshop(database_url: str, tmp_path: Path) -> Iterator[Workshop]:
    """On each kind of database."""
    made = Workshop.create(database_url, tmp_path)
    yield made
    made.core.database.dispose()


@pytest.mark.parametrize(("act", "state", "expected"), CELLS)
def test_every_act_from_every_state_does_what_the_rules_say(
    sqlite_workshop: Workshop, act: str, state: str, expected: str
) -> None:
    """S-024, S-042, S-110 to S-114."""
    check_cell(sqlite_workshop, act, state, expected)


def test_the_whole_table_of_acts_holds_on_postgresql_too(postgres_url: str, tmp_path: Path) -> None:
    """The same cells on one database, so that it need not be made anew for each."""
    workshop = Workshop.create(postgres_url, tmp_path)
    for act, state, expected in CELLS:
        check_cell(workshop, act, state, expected)
    workshop.core.database.dispose()


def check_cell(workshop: Workshop, act: str, state: str, expected: str) -> None:
    task_id = workshop.at(state)
    assert workshop.where(task_id) == state
    before = workshop.show(task_id)
    said = len(comments_of(workshop.core, task_id))

    outcome = tried(lambda: ACTS[act](workshop.core, workshop.caller, task_id))

    refused = expected in {"Conflict", "NotFound"}
    after = workshop.show(task_id)
    assert (act, state, outcome, workshop.where(task_id)) == (
        act,
        state,
        expected if refused else "done",
        state if refused else expected,
    )
    assert len(comments_of(workshop.core, task_id)) == said + (not refused)
    assert not refused or after.model_dump(exclude={"reason"}) == before.model_dump(exclude={"reason"})


def tried(act: Callable[[], object]) -> str:
    try:
        act()
    except FleetError as error:
        return type(error).__name__ if error.next else f"{error} says nothing of what to do next"
    return "done"


# --- what each does beside the state -----------------------------------------------------------


def test_who_is_given_a_task_goes_to_the_back_of_the_queue_and_hand_offs_count_anew(workshop: Workshop) -> None:
    """S-042, S-051: for an agent `queued_at` is now; for the user it stays."""
    task_id = workshop.at("failed/user")
    core, caller = workshop.core, workshop.caller
    core.clock.sleep(60)

    commenting("back to @user")(core, caller, task_id)
    kept = workshop.show(task_id)
    commenting("once more, @backend")(core, caller, task_id)
    queued = workshop.show(task_id)

    assert kept.queued_at < queued.queued_at == core.clock.now()
    assert (kept.hand_offs, queued.hand_offs) == (0, 0)


def test_preempt_names_the_run_and_frees_the_task_at_once_but_not_its_workspace(workshop: Workshop) -> None:
    """S-110, mended (W4): the next run begins only when the receipt of the old one is in."""
    task_id = workshop.at("in_progress/lead")
    run_id = begin(workshop.core, order_of(workshop.core, task_id).id)
    edit_organization(workshop.core, workshop.caller, paused_at=None)

    answer = tasks.preempt(workshop.core, workshop.caller, task_id)
    old = order_of(workshop.core, task_id).id
    assigned = tasks.assign(workshop.core, workshop.caller, task_id, AssignRequest(assignee="backend"))
    waits = workshop.show(task_id)
    end(workshop.core, old, "canceled")

    assert (answer.status, answer.assignee, answer.stopped_run) == ("open", "user", run_id)
    assert f"run {run_id} on anna is being stopped" in answer.note
    assert kinds_of(workshop.core, task_id)[:1] == ["preempted"]
    assert (assigned.status, waits.status) == ("open", "open")
    assert "is canceling" in waits.reason
    assert workshop.where(task_id) == "in_progress/backend"
    assert order_of(workshop.core, task_id).id != old


def test_a_run_that_no_drone_has_begun_ends_with_the_preempt(core: Core, admin: Caller) -> None:
    workshop = Workshop(core, admin)
    waiting_for_a_drone(workshop)
    task_id = workshop.new()

    answer = tasks.preempt(core, admin, task_id)

    assert workshop.order_status(task_id) == "canceled"
    assert "had not started" in answer.note
    assert (answer.status, answer.assignee) == ("open", "user")


def test_cancel_stops_the_run_and_says_why(workshop: Workshop) -> None:
    """S-114."""
    task_id = workshop.at("in_progress/lead")
    run_id = begin(workshop.core, order_of(workshop.core, task_id).id)

    answer = tasks.cancel(workshop.core, workshop.caller, task_id, TaskCancelRequest(reason="the plan changed"))

    order = order_of(workshop.core, task_id)
    assert (answer.status, answer.assignee, answer.stopped_run) == ("canceled", "user", run_id)
    assert answer.ended_at == workshop.core.clock.now()
    assert order.status == "canceling"
    assert order.facts.cancel == CancelAsked(by="system", text="the task was canceled")
    assert "the plan changed" in comments_of(workshop.core, task_id)[-1][2]


def test_an_order_that_is_being_canceled_already_is_left_to_it(workshop: Workshop) -> None:
    """Somebody canceled the order itself; its task can be preempted before the receipt comes."""
    from control_plane.operations.orders.canceling import cancel

    task_id = workshop.at("in_progress/lead")
    order_id = order_of(workshop.core, task_id).id
    begin(workshop.core, order_id)
    cancel(workshop.core, workshop.caller, order_id, CancelRequest(reason="by hand"))

    answer = tasks.preempt(workshop.core, workshop.caller, task_id)

    assert (answer.status, answer.assignee, workshop.order_status(task_id)) == ("open", "user", "canceling")
    assert order_of(workshop.core, task_id).facts.cancel == CancelAsked(by="system", text="by hand")


def test_retry_takes_the_agent_of_the_latest_run_and_412_where_there_was_none(workshop: Workshop) -> None:
    """S-113."""
    never_ran = tasks.done(workshop.core, workshop.caller, workshop.new("user")).id
    ran = workshop.at("failed/user")
    assert tasks.retry(workshop.core, workshop.caller, ran, TaskRetryRequest()).assignee == "lead"
    tasks.assign(workshop.core, workshop.caller, ran, AssignRequest(assignee="backend"))
    workshop.begin()
    play(workshop.core, ran, "I am through with it, @user.", how="failed")

    retried = tasks.retry(workshop.core, workshop.caller, ran, TaskRetryRequest())

    assert (retried.status, retried.assignee) == ("open", "backend")
    with pytest.raises(Precondition) as refused:
        tasks.retry(workshop.core, workshop.caller, never_ran, TaskRetryRequest())
    assert f"fleet task retry {never_ran} --assign AGENT" in refused.value.next
    with pytest.raises(Invalid):
        tasks.retry(workshop.core, workshop.caller, never_ran, TaskRetryRequest(assignee="user"))
    with pytest.raises(NotFound, match="nobody"):
        tasks.retry(workshop.core, workshop.caller, never_ran, TaskRetryRequest(assignee="nobody"))


def test_what_has_ended_has_a_time_and_what_is_opened_again_has_none(workshop: Workshop) -> None:
    task_id = workshop.at("done/user")
    ended = workshop.show(task_id).ended_at

    reopened = tasks.reopen(workshop.core, workshop.caller, task_id)

    assert ended is not None
    assert (reopened.ended_at, reopened.status, reopened.assignee) == (None, "open", "user")


def test_every_answer_says_what_happens_next(workshop: Workshop) -> None:
    core, caller = workshop.core, workshop.caller
    task_id = workshop.new("user")

    written = tasks.comment(core, caller, task_id, CommentRequest(text="Just so that you know."))
    handed = tasks.comment(core, caller, task_id, CommentRequest(text="@backend go on"))
    done = tasks.done(core, caller, workshop.new("user"))

    assert "saved without a tag" in written.note
    assert "is waiting for you" in written.note
    assert "backend is next" in handed.note
    assert "organization default is paused" in handed.note
    assert f"fleet task reopen {done.id}" in done.note


@pytest.mark.parametrize(
    "text",
    [
        "mail me@example.org about it",
        "`@nobody` is only code",
        "```\n@nobody\n```\nand that was it",
        "the price is 5@3",
        "@Backend is nobody's name",
    ],
)
def test_what_is_no_tag_hands_nothing_over_and_refuses_nothing(sqlite_workshop: Workshop, text: str) -> None:
    """Tags in code and in e-mail addresses."""
    task_id = sqlite_workshop.at("open/user")

    tasks.comment(sqlite_workshop.core, sqlite_workshop.caller, task_id, CommentRequest(text=text))

    assert sqlite_workshop.where(task_id) == "open/user"
    assert comments_of(sqlite_workshop.core, task_id)[-1][2] == text


@pytest.mark.parametrize(
    ("text", "error", "code"),
    [
        ("", Invalid, "E-EMPTY"),
        ("  \n\t ", Invalid, "E-EMPTY"),
        ("a NUL \0 in it", Invalid, "E-TEXT"),
        ("half a pair \ud800", Invalid, "E-TEXT"),
        ("x" * 100_001, TooLarge, "E-TASK-TEXT"),
        ("x" * 1_000_000, TooLarge, "E-TASK-TEXT"),
        ("@nobody and @noone", NotFound, "E-TASK-TAG"),
        ("@system do it", NotFound, "E-TASK-TAG"),
    ],
)
def test_a_comment_that_cannot_be_is_refused_and_nothing_is_stored(
    sqlite_workshop: Workshop, text: str, error: type[FleetError], code: str
) -> None:
    task_id = sqlite_workshop.at("open/lead")

    with pytest.raises(error) as refused:
        tasks.comment(sqlite_workshop.core, sqlite_workshop.caller, task_id, CommentRequest(text=text))

    assert refused.value.code == code
    assert comments_of(sqlite_workshop.core, task_id) == []
    assert sqlite_workshop.where(task_id) == "open/lead"


def test_the_longest_comment_that_is_taken_comes_back_whole(workshop: Workshop) -> None:
    text = "ä" * 100_000
    task_id = workshop.at("open/user")

    tasks.comment(workshop.core, workshop.caller, task_id, CommentRequest(text=text))

    (entry,) = workshop.show(task_id).timeline
    assert entry.comment is not None
    assert entry.comment.text == text


@pytest.mark.parametrize("act", sorted(ACTS))
def test_a_task_of_another_organization_is_one_that_does_not_exist(sqlite_workshop: Workshop, act: str) -> None:
    """S-004."""
    core, task_id = sqlite_workshop.core, sqlite_workshop.at("open/user")
    stranger = Caller(organization_id="0" * 12, organization="elsewhere", role="admin", user="eve")

    outcome = tried(lambda: ACTS[act](core, sqlite_workshop.caller, "DEFA-9999"))
    foreign = tried(lambda: tasks.show(core, stranger, task_id))

    assert outcome == "NotFound"
    assert foreign == "NotFound"


@pytest.mark.parametrize("act", sorted(ACTS))
def test_a_viewer_does_nothing_with_tasks(sqlite_workshop: Workshop, act: str) -> None:
    task_id = sqlite_workshop.at("open/user")
    own = sqlite_workshop.caller
    viewer = Caller(organization_id=own.organization_id, organization=own.organization, role="viewer", user="vera")

    with pytest.raises(Forbidden):
        ACTS[act](sqlite_workshop.core, viewer, task_id)

    assert sqlite_workshop.where(task_id) == "open/user"
    assert tasks.show(sqlite_workshop.core, viewer, task_id).id == task_id


# --- two people at once ------------------------------------------------------------------------


@pytest.mark.dialects
@pytest.mark.parametrize(
    ("state", "left", "right"),
    [
        ("failed/user", "retry", "retry backend"),
        ("failed/user", "reopen", "done"),
        ("failed/user", "cancel", "cancel"),
        ("open/user", "done", "done"),
        ("in_progress/lead", "preempt", "preempt"),
        ("in_progress/lead", "preempt", "cancel"),
        ("done/user", "reopen", "retry"),
    ],
)
def test_of_two_people_at_once_each_act_happens_only_from_where_it_may(
    workshop: Workshop, state: str, left: str, right: str
) -> None:
    """Whoever comes second is judged by what the first one left: the outcome is that of one of the two orders."""
    task_id = workshop.at(state)
    barrier = Barrier(2)

    def go(act: str) -> str:
        barrier.wait(60)
        return tried(lambda: ACTS[act](workshop.core, workshop.caller, task_id))

    with ThreadPoolExecutor(2) as pool:
        outcome = tuple(pool.map(go, (left, right)))

    allowed = {one_by_one(state, left, right, swapped=False), one_by_one(state, right, left, swapped=True)}
    assert (*outcome, workshop.where(task_id)) in allowed
    assert outcome.count("Conflict") == 1 or left != right
    assert len(kinds_of(workshop.core, task_id)) >= outcome.count("done")


def one_by_one(state: str, first: str, second: str, *, swapped: bool) -> tuple[str, str, str]:
    """What the rules make of two acts one after the other: both outcomes as they were given, and where it ends."""
    middle = RULES[first].get(state, "Conflict")
    state = state if middle == "Conflict" else middle
    last = RULES[second].get(state, "Conflict")
    words = ["Conflict" if each == "Conflict" else "done" for each in (middle, last)]
    where = state if last == "Conflict" else last
    return (words[1], words[0], where) if swapped else (words[0], words[1], where)


def test_ten_people_create_tasks_at_once_and_every_number_is_given_once(workshop: Workshop) -> None:
    """S-021."""
    with ThreadPoolExecutor(10) as pool:
        made: list[TaskDocument] = list(
            pool.map(lambda n: tasks.create(workshop.core, workshop.caller, TaskRequest(title=f"Task {n}")), range(20))
        )

    assert sorted(task.id for task in made) == [f"DEFA-{number:04}" for number in range(1, 21)]


def test_a_comment_that_comes_with_a_claim_is_stored_before_it_or_refused(workshop: Workshop) -> None:
    task_id = workshop.at("open/lead")
    barrier = Barrier(2)

    def comment() -> str:
        barrier.wait(60)
        return tried(lambda: ACTS["comment @user"](workshop.core, workshop.caller, task_id))

    def claim() -> str:
        barrier.wait(60)
        return tried(workshop.begin)

    with ThreadPoolExecutor(2) as pool:
        commented, _ = pool.submit(comment), pool.submit(claim)

    expected = {("done", "open/user"), ("Conflict", "in_progress/lead")}
    assert (commented.result(), workshop.where(task_id)) in expected


def waiting_for_a_drone(workshop: Workshop) -> None:
    """No drone is there: what begins waits."""
    make_project(workshop.core, workshop.caller)
    add_agent(workshop.core, workshop.caller, "lead")


def test_the_last_run_of_a_task_that_was_played_is_in_its_timeline(workshop: Workshop) -> None:
    """S-026: what was written and run, as it happened."""
    task_id = workshop.new()
    commenting("@backend first you")(workshop.core, workshop.caller, task_id)
    workshop.core.clock.sleep(5)
    workshop.begin()
    play(workshop.core, task_id, "Half of it is there. @user")

    told = [
        entry.run.agent if entry.run else entry.comment.author if entry.comment else "?"
        for entry in workshop.show(task_id).timeline
    ]
    assert told == ["user", "backend", "backend"]


class Dying(HandClock):
    """The process dies the n-th time that somebody asks for the time."""

    def __init__(self, at: HandClock, calls: int) -> None:
        super().__init__(at.now())
        self.calls = calls

    def now(self) -> datetime:
        self.calls -= 1
        if self.calls == 0:
            raise KeyboardInterrupt
        return super().now()


@pytest.mark.dialects
@pytest.mark.parametrize("calls", range(1, 8))
def test_wherever_a_preempt_is_cut_off_task_and_order_are_still_together(workshop: Workshop, calls: int) -> None:
    """S-110: either neither moved, and it can be asked for again, or both did."""
    task_id = workshop.at("in_progress/lead")
    begin(workshop.core, order_of(workshop.core, task_id).id)
    dying = replace(workshop.core, clock=Dying(cast("HandClock", workshop.core.clock), calls))

    with suppress(KeyboardInterrupt):
        tasks.preempt(dying, workshop.caller, task_id)

    left = workshop.where(task_id), workshop.order_status(task_id)
    assert left in {("in_progress/lead", "running"), ("open/user", "canceling")}
    again = tried(lambda: tasks.preempt(workshop.core, workshop.caller, task_id))
    assert (again, workshop.where(task_id)) == ("done" if left[1] == "running" else "Conflict", "open/user")
    assert workshop.order_status(task_id) == "canceling"
