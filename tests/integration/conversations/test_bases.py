"""Where the next turn of a session starts, as its drone is told: also the branch that users may have committed to."""

from __future__ import annotations

import pytest

from control_plane.core import Caller, Core
from control_plane.operations.orders.reading import order_summary
from shared.work_order import Base
from tests.support.made import make_drone, make_project, submit
from tests.support.turns import order_as_sent, play

HEAD, TIP = "c" * 40, "d" * 40


@pytest.fixture(autouse=True)
def fleet(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin, concurrency=9)


def base_of_next(core: Core, caller: Caller, session: str) -> Base:
    return order_as_sent(core, submit(core, caller, "go on", session=session).id).base


def session_of(core: Core, caller: Caller, order_id: str) -> str:
    return order_summary(core, caller, order_id).session


@pytest.mark.parametrize(("pushed", "names"), [(True, ("fleet/one", None)), (False, (None, "fleet/one"))])
def test_the_branch_of_the_last_work_is_named_whether_or_not_it_was_pushed(
    core: Core, admin: Caller, *, pushed: bool, names: tuple[str | None, str | None]
) -> None:
    one = play(core, admin, "one", head_commit=HEAD, branch="fleet/one", pushed=pushed)
    base = base_of_next(core, admin, session_of(core, admin, one))
    assert (base.commit, base.branch, base.unpushed_branch, base.seen) == (HEAD, *names, None)


def test_what_a_turn_without_work_started_from_is_known_to_the_next_one(core: Core, admin: Caller) -> None:
    one = play(core, admin, "one", head_commit=HEAD, branch="fleet/one", pushed=True)
    session = session_of(core, admin, one)
    play(core, admin, "two", session=session, base_commit=TIP)
    base = base_of_next(core, admin, session)
    assert (base.commit, base.branch, base.seen) == (HEAD, "fleet/one", TIP)
