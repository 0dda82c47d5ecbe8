"""A wall clock that jumps, forward or back, while the supervisor runs or while it is away, deletes nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import func, select

from control_plane.core import Caller, Core
from control_plane.core.background.timings import Timings
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.audit import AuditRecord
from control_plane.db.drafts import SavedDraft
from control_plane.operations.audit.sealing import seal_head
from control_plane.supervisor import Supervisor
from control_plane.supervisor.cleaning import JUMP_SECONDS, WAIT_SECONDS
from tests.support.clocks import HandClock
from tests.support.made import make_project
from tests.support.planes import Plane

YEARS = timedelta(days=3650)
EVERY = Timings().clean_every


def jump(core: Core, by: timedelta) -> None:
    """Set the wall clock; the time since boot does not know of it."""
    assert isinstance(core.clock, HandClock)
    core.clock.at += by


def counted(core: Core) -> tuple[int, int]:
    """Records of the audit log, and drafts."""
    with core.database.read() as db:
        tables = (AuditRecord.seq, SavedDraft.number)
        records, drafts = (db.scalar(select(func.count(column))) or 0 for column in tables)
    return records, drafts


@pytest.fixture
def kept(plane: Plane) -> Core:
    """Records that are signed, and a draft."""
    make_project(plane.core, plane.admin)
    seal_head(plane.core)
    draft(plane.core, plane.admin)
    return plane.core


def draft(core: Core, admin: Caller) -> None:
    own = {"organization_id": admin.organization_id, "author": "kim", "updated_at": core.clock.now()}
    with core.database.write() as db:
        db.add(SavedDraft(subject="order", text="half", version=1, **own))


def rounds(core: Core, supervisor: Supervisor, seconds: float) -> None:
    core.clock.sleep(seconds)
    supervisor.round()


@pytest.mark.parametrize("by", [YEARS, -YEARS, timedelta(seconds=JUMP_SECONDS + 60)])
def test_a_clock_that_jumps_while_the_supervisor_runs_deletes_nothing(kept: Core, by: timedelta) -> None:
    supervisor, before = Supervisor(kept, "me"), counted(kept)
    rounds(kept, supervisor, 1)
    jump(kept, by)
    for _ in range(3):
        rounds(kept, supervisor, EVERY + 1)
    assert counted(kept) >= before
    # Set right again, it has jumped again.
    jump(kept, -by)
    rounds(kept, supervisor, EVERY + 1)
    assert counted(kept) >= before
    supervisor.stop()


def test_a_clock_that_is_wrong_at_the_start_deletes_nothing(kept: Core) -> None:
    before = counted(kept)
    jump(kept, YEARS)
    supervisor = Supervisor(kept, "me")
    for _ in range(3):
        rounds(kept, supervisor, EVERY + 1)
    assert counted(kept) >= before
    supervisor.stop()


def test_what_is_due_is_deleted_while_the_clock_is_right_and_a_day_after_it_jumped(kept: Core) -> None:
    supervisor, before = Supervisor(kept, "me"), counted(kept)
    rounds(kept, supervisor, 1)
    rounds(kept, supervisor, timedelta(days=400).total_seconds())
    assert counted(kept)[1] == 0
    draft(kept, system_caller(kept))
    jump(kept, YEARS)
    rounds(kept, supervisor, EVERY + 1)
    assert counted(kept)[1] == 1
    # A clock that stays where it jumped is believed after a day.
    rounds(kept, supervisor, WAIT_SECONDS + 1)
    assert (counted(kept)[0] < before[0], counted(kept)[1]) == (True, 0)
    supervisor.stop()
