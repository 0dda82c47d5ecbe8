"""Every loop that works row by row: what one organization's row holds delays nothing of another organization."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from sqlalchemy import select, update

from control_plane.automation.budget_notices import warn
from control_plane.contract.declarations.budgets import BudgetRequest
from control_plane.core import Caller, Core
from control_plane.core.background.timings import Timings
from control_plane.db.drones import Drone, InboxMessage
from control_plane.db.orders import Dispatch, Order
from control_plane.db.spending import Budget, BudgetPeriod, SpendingBlock
from control_plane.db.teams import Task
from control_plane.drones import inbox
from control_plane.money.spending.settlement import settle_all_forgotten
from control_plane.operations import budgets
from control_plane.supervisor import Supervisor
from control_plane.supervisor.lost_runs import HeartbeatMonitor, take_back_lost_runs
from control_plane.teams.claiming import claim_everywhere
from shared.control import Drain
from shared.envelope import new_private_key, public_key
from tests.support.documents import texts
from tests.support.made import make_drone, make_project, run_of, start_run, submit
from tests.support.organizations import add_organization
from tests.support.planes import Plane
from tests.support.spending import reserve, spend_so_far
from tests.support.team_rows import add_agent, add_task

ROWS = {"before": True, "between": False, "behind": True}
"""Organizations, and whether their row is bad: wherever it is, it comes before or after another one."""


class Case(NamedTuple):
    """A loop with the row that it works on."""

    make: Callable[[Core, Caller], str]
    """Returns the row's id."""
    spoil: Callable[[str], Any]
    """The change that makes this row unreadable."""
    act: Callable[[Core], object]
    """One round."""
    moved: Callable[[str], Any]
    """Selects something once the round has done its work on this row."""


def drone_of(core: Core, caller: Caller) -> str:
    key = b64encode(public_key(new_private_key())).decode()
    return make_drone(core, caller, f"drone-{caller.organization}", public_key=key).drone_id


def ordered(core: Core, caller: Caller) -> str:
    drone_of(core, caller)
    return submit(core, caller).id


def started(core: Core, caller: Caller) -> str:
    return start_run(core, ordered(core, caller))


def tasked(core: Core, caller: Caller) -> str:
    return add_task(core, caller, add_agent(core, caller, "lead"), claim=False)


def with_budget(core: Core, caller: Caller) -> tuple[str, str]:
    """A budget, and a run that has reserved all of it."""
    made = budgets.set_(core, caller, "organization", caller.organization, BudgetRequest(usd=1, per="day"))
    run_id = started(core, caller)
    reserve(core, run_id, 1.0)
    return made.id, run_id


def used_up(core: Core, caller: Caller) -> str:
    budget_id, run_id = with_budget(core, caller)
    spend_so_far(core, run_id, 1.0)
    return budget_id


def forgotten(core: Core, caller: Caller) -> str:
    _, run_id = with_budget(core, caller)
    with core.database.write() as db:
        db.get_one(Dispatch, run_id).closed_at = core.clock.now() - timedelta(hours=1)
    return run_id


def told(core: Core, caller: Caller) -> str:
    drone = drone_of(core, caller)
    with core.database.write() as db:
        return inbox.notify_drone(db, core, drone, Drain(on=True))


def claimed(core: Core, caller: Caller) -> str:
    """By a drone that is removed, and that has not reported that it began."""
    run_id = run_of(core, ordered(core, caller))
    with core.database.write() as db:
        dispatch = db.get_one(Dispatch, run_id)
        dispatch.published_at = dispatch.claimed_at = core.clock.now()
        db.get_one(Drone, dispatch.drone_id).removed_at = core.clock.now()
    return run_id


def lose(core: Core) -> None:
    timings = Timings()
    take_back_lost_runs(core, HeartbeatMonitor(core, "me", timings, lambda: None), timings)


CASES: dict[str, Case] = {
    "teams": Case(
        tasked,
        lambda id: update(Task).where(Task.id == id).values(limits={"max_iterations": "many"}),
        claim_everywhere,
        lambda id: select(Order.id).where(Order.task_id == id),
    ),
    "budgets": Case(
        used_up,
        lambda id: update(Budget).where(Budget.id == id).values(zone="No/Where"),
        warn,
        lambda id: select(BudgetPeriod.budget_id).where(
            BudgetPeriod.budget_id == id, BudgetPeriod.exhausted_at.is_not(None)
        ),
    ),
    "settling": Case(
        forgotten,
        lambda id: update(Budget).where(of_run(Budget, id)).values(zone="No/Where"),
        settle_all_forgotten,
        lambda id: select(SpendingBlock.id).where(SpendingBlock.run_id == id, SpendingBlock.closed_at.is_not(None)),
    ),
    "lost": Case(
        claimed,
        lambda id: update(Drone).where(of_run(Drone, id)).values(beat={"runs": [7]}),
        lose,
        lambda id: select(Dispatch.id).where(Dispatch.id == id, Dispatch.closed_at.is_not(None)),
    ),
    "inbox": Case(
        told,
        lambda id: update(InboxMessage).where(InboxMessage.id == id).values(body={"kind": "odd"}),
        inbox.send_new,
        lambda id: select(InboxMessage.id).where(InboxMessage.id == id, InboxMessage.sent_at.is_not(None)),
    ),
}


def of_run(table: Any, run_id: str) -> Any:
    return table.organization_id == select(Dispatch.organization_id).where(Dispatch.id == run_id).scalar_subquery()


ALIKE = {
    *("races", "stacks", "collecting", "silent drones", "unclaimed", "stale messages", "reasons", "gone members"),
    *("quota", "continuing", "suspending", "batches", "young budgets"),
}
"""They go through their rows with `each_alone`, too."""
APART = {
    "placing": "an order that cannot be placed says so",
    "relay": "an order that cannot be sent says so",
    "schedules": "one that cannot be read is turned off",
    "webhooks": "each message has a lease and a thread",
    "messages": "each message has a lease and a thread",
    "traces": "each trace has a lease",
    "code hosts": "each connection is caught by itself",
    "inbox-missing": "it sends as the inbox does",
}
WITHOUT_ROWS = {
    *("leader", "heartbeats", "users", "refusals", "cleaning", "audit seals", "audit pruning", "outboxes"),
    "open work",
}
"""They read no content of rows, or act on all drones with one command."""


def test_every_loop_of_the_supervisor_is_tested_or_has_no_rows(plane: Plane) -> None:
    names = [loop.name for loop in Supervisor(plane.core, "me").loops]
    assert sorted(names) == sorted([*CASES, *ALIKE, *APART, *WITHOUT_ROWS])
    alone = {name for text in texts().values() for name in re.findall(r'each_alone\("([^"]+)"', text)}
    assert ALIKE - alone == set()


@pytest.mark.parametrize("loop", CASES)
def test_a_row_that_cannot_be_read_delays_no_row_of_another_organization(plane: Plane, loop: str) -> None:
    core, case = plane.core, CASES[loop]
    made: dict[str, str] = {}
    for name in ROWS:
        caller = add_organization(core, plane.admin, name)
        make_project(core, caller)
        made[name] = case.make(core, caller)
    with core.database.write() as db:
        for name, is_bad in ROWS.items():
            if is_bad:
                db.execute(case.spoil(made[name]))
    case.act(core)
    with core.database.read() as db:
        moved = {name: db.scalars(case.moved(made[name])).first() is not None for name in ROWS}
    # A message that cannot be sealed counts as sent: it would fail in each round.
    assert moved["between"]
    assert loop == "inbox" or not moved["before"]
