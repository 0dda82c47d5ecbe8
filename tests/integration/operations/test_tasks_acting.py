"""What people may do with a task in each state (S-042, S-110 to S-114): the whole table, on each kind of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import cast

import pytest

from control_plane.contract.declarations.orders import CancelRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.task_documents import (
    AssignRequest,
    CommentRequest,
    TaskCancelRequest,
    TaskDocument,
    TaskRetryRequest,
)
from control_plane.core import Caller, Core
from control_plane.operations import providers, tasks
from control_plane.operations.orders.canceling import cancel
from shared.errors import FleetError, Invalid, NotFound, Precondition
from shared.reasons import CancelAsked
from tests.support.clocks import HandClock
from tests.support.refusals import code_of
from tests.support.task_states import STATES, Workshop
from tests.support.team_rows import (
    add_agent,
    begin,
    comments_of,
    edit_agent,
    edit_organization,
    end,
    kinds_of,
    order_of,
    play,
)

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
REFUSALS = {"Conflict", "NotFound"}


@pytest.fixture(scope="module")
def workshop(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """On SQLite, for tests that each make tasks of their own."""
    directory = tmp_path_factory.mktemp("workshop")
    (directory / "fleet.db").write_bytes(sqlite_template.read_bytes())
    made = Workshop.create(f"sqlite:///{directory / 'fleet.db'}", directory)
    yield made
    made.core.database.dispose()


@pytest.fixture
def any_workshop(database_url: str, tmp_path: Path) -> Iterator[Workshop]:
    """One of its own, for what depends on the locks of each kind of database."""
    made = Workshop.create(database_url, tmp_path)
    yield made
    made.core.database.dispose()


def test_every_act_from_every_state_does_what_the_rules_say(workshop: Workshop) -> None:
    """S-024, S-042, S-110 to S-114."""
    wrong = {}
    for state in STATES:
        task_id = workshop.at(state)
        for act, rules in RULES.items():
            expected = rules.get(state, "Conflict")
            refused = expected in REFUSALS
            got = outcome_of(workshop, act, task_id)
            if got != (expected, state if refused else expected, not refused):
                wrong[act, state] = got
            if not refused:
                task_id = workshop.at(state)
    assert wrong == {}


def outcome_of(workshop: Workshop, act: str, task_id: str) -> tuple[str, str, bool]:
    """What an act on the task answers, where the task is then, and whether anything of it changed."""
    core, caller = workshop.core, workshop.caller
    before, said = workshop.show(task_id), len(comments_of(core, task_id))
    answer = tried(lambda: ACTS[act](core, caller, task_id))
    after = workshop.show(task_id)
    changed = after.model_dump(exclude={"reason"}) != before.model_dump(exclude={"reason"})
    assert len(comments_of(core, task_id)) == said + changed
    where = f"{after.status}/{after.assignee}"
    return where if answer == "done" else answer, where, changed


def tried(act: Callable[[], object]) -> str:
    try:
        act()
    except FleetError as error:
        return type(error).__name__ if error.next else f"{error} says nothing of what to do next"
    return "done"


def test_who_is_given_a_task_goes_to_the_back_of_the_queue_and_hand_offs_count_anew(workshop: Workshop) -> None:
    """S-042, S-051: for an agent `queued_at` is now; for the user it stays."""
    core, caller, task_id = workshop.core, workshop.caller, workshop.at("failed/user")
    core.clock.sleep(60)
    commenting("back to @user")(core, caller, task_id)
    kept = workshop.show(task_id)
    commenting("once more, @backend")(core, caller, task_id)
    queued = workshop.show(task_id)
    assert kept.queued_at < queued.queued_at == core.clock.now()
    assert (kept.hand_offs, queued.hand_offs) == (0, 0)


def test_preempt_names_the_run_and_frees_the_task_at_once_but_not_its_workspace(workshop: Workshop) -> None:
    """S-110: the next run begins only when the receipt of the old one is in."""
    core, caller, task_id = workshop.core, workshop.caller, workshop.at("in_progress/lead")
    old = order_of(core, task_id).id
    run_id = begin(core, old)
    edit_organization(core, caller, paused_at=None)

    answer = tasks.preempt(core, caller, task_id)
    assigned = tasks.assign(core, caller, task_id, AssignRequest(assignee="backend"))
    assert (answer.status, answer.assignee, answer.stopped_run) == ("open", "user", run_id)
    assert f"run {run_id} on anna is being stopped" in answer.note
    assert kinds_of(core, task_id)[:1] == ["preempted"]
    assert (assigned.status, "is canceling" in workshop.show(task_id).reason) == ("open", True)
    end(core, old, "canceled")
    assert workshop.where(task_id) == "in_progress/backend"
    assert order_of(core, task_id).id != old


def test_cancel_stops_the_run_and_says_why(workshop: Workshop) -> None:
    """S-114. An order that somebody canceled already is left to it, also by a preempt."""
    core, caller = workshop.core, workshop.caller
    for act, by_hand, state in (("cancel", False, "canceled"), ("cancel", True, "canceled"), ("preempt", True, "open")):
        task_id = workshop.at("in_progress/lead")
        order_id = order_of(core, task_id).id
        run_id = begin(core, order_id)
        if by_hand:
            cancel(core, caller, order_id, CancelRequest(reason="by hand"))
        ACTS[act](core, caller, task_id)
        shown, order = workshop.show(task_id), order_of(core, task_id)
        assert (shown.status, shown.assignee, order.status, order.run_id) == (state, "user", "canceling", run_id)
        text = "by hand" if by_hand else "the task was canceled"
        assert order.facts.cancel == CancelAsked(by="system", text=text)
        if act == "cancel":
            assert shown.ended_at == core.clock.now()
            assert "not needed" in comments_of(core, task_id)[-1][2]


def test_retry_takes_the_agent_of_the_latest_run_and_412_where_there_was_none(workshop: Workshop) -> None:
    """S-113."""
    core, caller, ran = workshop.core, workshop.caller, workshop.at("failed/user")

    def retried(task_id: str, **fields: str) -> TaskDocument:
        return tasks.retry(core, caller, task_id, TaskRetryRequest(**fields))

    assert retried(ran).assignee == "lead"
    tasks.assign(core, caller, ran, AssignRequest(assignee="backend"))
    workshop.begin()
    play(core, ran, "I am through with it, @user.", how="failed")
    again = retried(ran)
    assert (again.status, again.assignee) == ("open", "backend")

    never_ran = tasks.done(core, caller, workshop.new("user")).id
    with pytest.raises(Precondition) as refused:
        retried(never_ran)
    assert f"fleet task retry {never_ran} --assign AGENT" in refused.value.next
    with pytest.raises(Invalid):
        retried(never_ran, assignee="user")
    with pytest.raises(NotFound, match="nobody"):
        retried(never_ran, assignee="nobody")


def test_retry_takes_the_agent_whose_run_could_not_start_after_the_latest_one(workshop: Workshop) -> None:
    core, caller = workshop.core, workshop.caller
    gone = providers.add(core, caller, ProviderRequest(name="gone", model="openai/gone"))
    tester = add_agent(core, caller, "tester", provider_id=gone.id)
    providers.remove(core, caller, "gone")
    ran, never_ran = workshop.at("failed/user"), workshop.new("tester")
    tasks.assign(core, caller, ran, AssignRequest(assignee="tester"))
    workshop.begin()
    assert [workshop.where(each) for each in (ran, never_ran)] == ["failed/user"] * 2
    edit_agent(core, tester, provider_id=None)
    for task_id in (ran, never_ran):
        assert tasks.retry(core, caller, task_id, TaskRetryRequest()).assignee == "tester"
    core.clock.sleep(1)
    workshop.begin()
    play(core, ran, "Over to you, @lead.")
    core.clock.sleep(1)
    workshop.beat()
    workshop.begin()
    play(core, ran, "I am through with it, @user.", how="failed")
    assert tasks.retry(core, caller, ran, TaskRetryRequest()).assignee == "lead"


TEXTS = {
    "`@nobody` is only code": None,
    "ä" * 100_000: None,
    "  \n\t ": "E-EMPTY",
    "a NUL \0 in it": "E-TEXT",
    "x" * 100_001: "E-TASK-TEXT",
    "@nobody and @noone": "E-TASK-TAG",
    "@system do it": "E-TASK-TAG",
}


def test_what_is_no_tag_hands_nothing_over_and_refuses_nothing(workshop: Workshop) -> None:
    """A comment that cannot be is refused, and nothing is stored."""
    for text, refused in TEXTS.items():
        task_id = workshop.at("open/user")
        code = code_of(lambda text=text, task_id=task_id: commenting(text)(workshop.core, workshop.caller, task_id))
        stored = [comment[2] for comment in comments_of(workshop.core, task_id)]
        assert (code or None, stored) == (refused, [] if refused else [text]), text[:20]
        assert workshop.where(task_id) == "open/user"


def at_once(left: Callable[[], object], right: Callable[[], object]) -> list[str]:
    """Do both at the same time; what came of each."""
    barrier = Barrier(2)

    def go(act: Callable[[], object]) -> str:
        barrier.wait(60)
        return tried(act)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(go, (left, right)))


@pytest.mark.dialects
def test_of_two_people_at_once_each_act_happens_only_from_where_it_may(any_workshop: Workshop) -> None:
    """Whoever comes second is judged by what the first one left: the outcome is that of one of the two orders."""
    core, caller = any_workshop.core, any_workshop.caller
    for state, left, right, outcomes in (
        ("failed/user", "retry", "retry backend", {"done Conflict open/lead", "Conflict done open/backend"}),
        ("failed/user", "cancel", "cancel", {"done Conflict canceled/user", "Conflict done canceled/user"}),
        ("in_progress/lead", "preempt", "cancel", {"done done canceled/user", "Conflict done canceled/user"}),
        ("done/user", "reopen", "retry", {"done Conflict open/user", "Conflict done open/lead"}),
    ):
        task_id = any_workshop.at(state)
        found = at_once(*(partial(ACTS[act], core, caller, task_id) for act in (left, right)))
        assert " ".join([*found, any_workshop.where(task_id)]) in outcomes
        assert len(kinds_of(core, task_id)) >= found.count("done")
    # A comment that comes with a claim is stored before it, or refused.
    task_id = any_workshop.at("open/lead")
    found = at_once(partial(ACTS["comment @user"], core, caller, task_id), any_workshop.begin)
    assert (found[0], any_workshop.where(task_id)) in {("done", "open/user"), ("Conflict", "in_progress/lead")}


@pytest.mark.dialects
def test_ten_people_create_tasks_at_once_and_every_number_is_given_once(any_workshop: Workshop) -> None:
    """S-021."""
    with ThreadPoolExecutor(10) as pool:
        made = list(pool.map(lambda _: any_workshop.new(), range(20)))
    assert sorted(made) == [f"DEFA-{number:04}" for number in range(1, 21)]


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


def test_wherever_a_preempt_is_cut_off_task_and_order_are_still_together(workshop: Workshop) -> None:
    """S-110: either neither moved, and it can be asked for again, or both did."""
    core, caller, seen = workshop.core, workshop.caller, set()
    for calls in range(1, 8):
        task_id = workshop.at("in_progress/lead")
        begin(core, order_of(core, task_id).id)
        dying = replace(core, clock=Dying(cast("HandClock", core.clock), calls))
        with suppress(KeyboardInterrupt):
            tasks.preempt(dying, caller, task_id)
        left = workshop.where(task_id), workshop.order_status(task_id)
        seen.add(left)
        again = tried(partial(tasks.preempt, core, caller, task_id))
        assert (again, workshop.where(task_id)) == ("done" if left[1] == "running" else "Conflict", "open/user")
        assert workshop.order_status(task_id) == "canceling"
    assert seen == {("in_progress/lead", "running"), ("open/user", "canceling")}
