"""What the retention removes, each kind after its time, and what it never removes, also when it is cut off."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from control_plane.contract.declarations.orders import ResumeRequest
from control_plane.contract.declarations.retention import RetentionRequest
from control_plane.contract.declarations.sessions import ForkRequest
from control_plane.contract.declarations.steering import SayRequest
from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.contract.documents.orders import OrderDocument
from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.core.blob_store import DirectoryStore
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.base import Row
from control_plane.db.batches import BatchRow
from control_plane.db.drones import Drone, RawEvent
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Dispatch, Order, Turn
from control_plane.db.runs import Blob, Run, Step
from control_plane.db.sessions import ChatSession, SessionEntry
from control_plane.db.teams import Task
from control_plane.operations.orders import reading, steering
from control_plane.operations.orders.reading import patch_of
from control_plane.operations.orders.retrying import resume
from control_plane.operations.retention import keeping, removing
from control_plane.operations.runs import blobs
from control_plane.operations.sessions import changing
from control_plane.operations.tasks import acting
from control_plane.supervisor.cleaning import clean
from shared.blobs import digest
from shared.code_hosts import CodeHostReading
from shared.events import Body, ToolResultStep, UserStep
from shared.states import OrderStatus
from tests.support.clocks import HandClock
from tests.support.connected import connect
from tests.support.database import CoreFactory
from tests.support.made import make_drone, make_project, run_of, submit
from tests.support.transcripts import problems
from tests.support.turns import CANCELED, FAILED, SUCCEEDED, end, order_as_sent, said


@dataclass
class KeptFleet:
    """Plays orders, lets time pass, and applies the retention."""

    core: Core
    admin: Caller
    clock: HandClock
    drone: AuthenticatedDrone

    def pass_days(self, days: float) -> None:
        self.clock.sleep(days * 86400)
        with self.core.database.write() as db:
            db.execute(update(Drone).values(last_seen_at=self.core.clock.now()))

    def put(self, run_id: str, content: bytes) -> str:
        """Store a file of the run, as old as the test's clock says; returns its name."""
        name = digest(content)
        blobs.put_blob(self.core, self.drone, run_id, name, BytesIO(content))
        now = self.clock.now().timestamp()
        os.utime(self.core.blobs.path(name), (now, now))
        return name

    def order(self, prompt: str = "mend it", session: str | None = None, **fields: Any) -> str:
        return submit(self.core, self.admin, prompt, session=session, **fields).id

    def play(self, prompt: str = "mend it", session: str | None = None, **how: Any) -> str:
        """An order that ended with a patch, a bundle and a log, as its drone would leave them."""
        return self.end(self.order(prompt, session, **how.pop("fields", {})), prompt, **how)

    def end(
        self,
        order_id: str,
        prompt: str = "mend it",
        *,
        to: OrderStatus = SUCCEEDED,
        work: bytes | None = b"",
        **how: Any,
    ) -> str:
        """End a placed order. `work`: the patch, else one of its own; None: it changed nothing."""
        run_id = run_of(self.core, order_id)
        log = self.put(run_id, how.pop("log", f"log of {order_id}".encode()))
        columns: dict[str, Any] = {}
        if work is not None:
            patch = self.put(run_id, work or f"patch of {order_id}".encode())
            bundle = self.put(run_id, b"bundle of " + (work or order_id.encode()))
            columns = {"result_run_id": run_id, "patch_sha256": patch, "patch_bytes": 9, "bundle_sha256": bundle}
            columns |= {"head_commit": "c" * 40, "branch": f"fleet/{order_id}"}
        steps: Sequence[Body] = [*said(prompt), ToolResultStep(call_id="long", output="cut", log_sha256=log)]
        return end(self.core, order_id, steps=steps, to=to, step_count=len(steps), **{**columns, **how})

    def session(self, order_id: str) -> str:
        return reading.order_summary(self.core, self.admin, order_id).session

    def show(self, order_id: str) -> OrderDocument:
        return reading.show_order(self.core, self.admin, order_id)

    def run(self, *, dry: bool = False) -> dict[str, tuple[int, int]]:
        """Apply the retention; returns rows and bytes of what was removed, without what is 0."""
        found = keeping.run(self.core, self.admin, RetentionRequest(dry_run=dry))
        return {each.kind: (each.rows, each.bytes) for each in found if each.rows or each.bytes}

    def rows(self, table: Any) -> int:
        with self.core.database.read() as db:
            return len(db.scalars(select(table)).all())

    def missing_files(self) -> list[str]:
        """The names of files that rows promise and that are not there."""
        with self.core.database.read() as db:
            names = db.execute(select(Blob.sha256, Blob.sealed)).all()
        return [name for name, sealed in names if not self.core.blobs.path(name, sealed=sealed).is_file()]

    def leave(self, table: Any, row_id: str, **columns: Any) -> None:
        with self.core.database.write() as db:
            db.execute(update(table).where(table.id == row_id).values(**columns))


@pytest.fixture
def fleet_with(core_factory: CoreFactory, database_url: str, clock: HandClock) -> Callable[..., KeptFleet]:
    """`fleet_with(**settings)`."""

    def made(**settings: Any) -> KeptFleet:
        core = core_factory(database_url, clock=clock, **settings)
        admin = system_caller(core)
        make_project(core, admin)
        drone = make_drone(core, admin, concurrency=999)
        return KeptFleet(core, admin, clock, drone)

    return made


@pytest.fixture
def fleet(fleet_with: Callable[..., KeptFleet]) -> KeptFleet:
    return fleet_with()


@pytest.mark.dialects
def test_logs_go_after_90_days_work_after_180_and_steps_after_a_year(fleet: KeptFleet) -> None:
    order = fleet.play(pushed=True, to=FAILED)
    fleet.pass_days(89)
    assert (fleet.run(), fleet.show(order).removed) == ({}, None)
    fleet.pass_days(2)
    assert fleet.run() == {"logs": (1, len(f"log of {order}"))}
    fleet.pass_days(90)
    assert fleet.run() == {"work": (2, len(f"patch of {order}bundle of {order}"))}
    assert "logs, patch and bundle" in str(fleet.show(order).removed)
    fleet.pass_days(185)
    clean(fleet.core)
    shown = fleet.show(order)
    assert "steps, patch and bundle" in str(shown.removed)
    assert (shown.steps, shown.prompt) == ([], "mend it")
    assert (fleet.rows(Step), fleet.rows(Blob), list(fleet.core.blobs.files())) == (0, 0, [])
    assert resume(fleet.core, fleet.admin, order, ResumeRequest()).status == "assigned"


def test_a_dry_run_says_what_a_run_removes_in_several_transactions_and_removes_nothing(
    fleet: KeptFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removing, "AT_ONCE", 2)
    for number in range(3):
        fleet.play(f"number {number}", pushed=True, log=b"the same in all", work=b"x" if number else None)
    fleet.pass_days(400)
    expected = fleet.run(dry=True)
    assert (fleet.run(dry=True), fleet.missing_files()) == (expected, [])
    assert fleet.run() == expected
    assert (expected["logs"], fleet.rows(Step), fleet.rows(Blob)) == ((3, len("the same in all")), 0, 0)
    assert fleet.run() == fleet.run(dry=True) == {}


def test_the_last_work_of_a_session_is_kept_until_it_is_pushed(fleet: KeptFleet) -> None:
    first = fleet.play("first")
    session = fleet.session(first)
    second = fleet.play("second", session)
    fleet.play("third", session, work=None)
    fleet.pass_days(1000)
    fleet.run()
    assert fleet.show(first).removed == "Its steps, patch and bundle are no longer stored."
    assert fleet.show(second).removed == "Its steps are no longer stored."
    base = order_as_sent(fleet.core, fleet.order("go on", session)).base
    assert (base.commit, fleet.core.blobs.has(str(base.bundle))) == ("c" * 40, True)
    fleet.leave(Order, second, pushed=True)
    assert fleet.missing_files() == []


def test_an_order_that_can_be_resumed_is_kept_whole(fleet_with: Callable[..., KeptFleet]) -> None:
    fleet = fleet_with(keep_logs_days=1, keep_work_days=1, keep_steps_days=1)
    fleet.play(to=FAILED, pushed=True)
    fleet.play(to=CANCELED, pushed=True)
    fleet.pass_days(6)
    assert fleet.run() == {}
    fleet.pass_days(2)
    assert list(fleet.run()) == ["steps", "logs", "work"]


@pytest.mark.dialects
def test_above_the_limit_of_bytes_the_oldest_go_first_and_what_is_needed_stays(
    fleet_with: Callable[..., KeptFleet],
) -> None:
    fleet = fleet_with(blob_limit_mb=1)
    logs = [bytes([number]) * 400_000 for number in range(4)]
    orders = []
    for log in logs:
        orders.append(fleet.play(log=log))
        fleet.pass_days(1)
    fleet.pass_days(2)
    assert fleet.run() == {}, "too young"
    fleet.pass_days(6)
    expected = fleet.run(dry=True)
    assert (expected, fleet.run()) == ({"logs": (2, 800_000)}, expected)
    assert [fleet.show(each).removed is None for each in orders] == [False, False, True, True]
    assert fleet.run() == {}


def test_no_message_of_a_user_counts_as_unread_once_the_steps_that_show_it_are_gone(fleet: KeptFleet) -> None:
    order = fleet.order()
    steering.say(fleet.core, fleet.admin, order, SayRequest(text="and the tests"))
    (message,) = fleet.show(order).unheard
    read = UserStep(text=message.text, source="steer", message=message.id)
    end(fleet.core, order, steps=[*said("mend it"), read], step_count=5, pushed=True)
    assert (len(fleet.show(order).steps), fleet.show(order).unheard) == (5, [])
    fleet.pass_days(366)
    clean(fleet.core)
    assert (fleet.show(order).steps, fleet.show(order).unheard) == ([], [])


@pytest.mark.dialects
def test_a_service_that_cost_nothing_goes_with_all_its_rows_and_one_that_cost_something_stays(
    fleet: KeptFleet,
) -> None:
    free, paid = (fleet.play(each, pushed=True) for each in ("free", "paid"))
    for each in (free, paid):
        fleet.leave(Order, each, purpose="title")
    with fleet.core.database.write() as db:
        db.query(Run).filter(Run.order_id == paid).update({"cost_usd": 0.01})
    fleet.pass_days(31)
    expected = fleet.run(dry=True)
    assert (expected["services"][0], fleet.run()) == (1, expected)
    tables: list[type[Row]] = [Order, Turn, Dispatch, Run, ChatSession, SessionEntry]
    assert [fleet.rows(table) for table in tables] == [1] * 6
    assert fleet.show(paid).removed is None


def test_raw_events_go_after_30_days(fleet: KeptFleet) -> None:
    with fleet.core.database.write() as db:
        event = {"drone_id": fleet.drone.drone_id, "entry_id": "1-0", "fields": {"e": "x"}, "error": "unreadable"}
        db.add(RawEvent(organization_id=fleet.admin.organization_id, at=fleet.core.clock.now(), **event))
    fleet.pass_days(31)
    assert fleet.run(dry=True) == fleet.run() == {"raw events": (1, len('{"e": "x"}'))}


def test_without_limit_everything_is_kept(fleet_with: Callable[..., KeptFleet]) -> None:
    kinds = ("steps", "logs", "work", "services", "readings", "raw_events")
    fleet = fleet_with(**{f"keep_{kind}_days": "unlimited" for kind in kinds})
    fleet.play(pushed=True)
    fleet.pass_days(10_000)
    assert fleet.run() == {}
    assert {each.kept for each in keeping.show(fleet.core, fleet.admin)} == {"unlimited", "365 days"}


def test_what_is_held_is_counted_for_each_kind(fleet: KeptFleet) -> None:
    order = fleet.play(log=b"12345")
    fleet.play(log=b"12345")
    held = {each.kind: each for each in keeping.show(fleet.core, fleet.admin)}
    assert (held["logs"].rows, held["logs"].bytes, held["logs"].kept) == (2, 5, "90 days")
    assert (held["steps"].rows, held["steps"].setting) == (10, "FLEET_KEEP_STEPS_DAYS")
    assert (held["work"].rows, held["work"].oldest) == (4, fleet.show(order).created_at)
    assert (held["all blobs"].rows, held["all blobs"].kept) == (5, "unlimited")


def test_a_file_that_another_row_names_stays_and_one_that_no_row_names_goes_after_a_week(fleet: KeptFleet) -> None:
    fleet.play(work=b"the same", pushed=True)
    fleet.pass_days(200)
    young = fleet.play(work=b"the same", pushed=True)
    assert fleet.run()["work"] == (2, 0)
    assert (patch_of(fleet.core, fleet.admin, young), fleet.missing_files()) == (b"the same", [])
    with fleet.core.database.write() as db:
        db.execute(delete(Blob))
    assert fleet.run() == {}
    fleet.pass_days(8)
    assert fleet.run()["unnamed files"][0] == 3
    assert list(fleet.core.blobs.files()) == []


def test_a_delivered_patch_that_is_also_a_checkpoints_is_kept_when_the_checkpoint_goes(fleet: KeptFleet) -> None:
    order_id, patch = fleet.order(), b"old mode 100644\nnew mode 100755\n"
    run_id = run_of(fleet.core, order_id)
    blobs.put_blob(fleet.core, fleet.drone, run_id, digest(patch), BytesIO(patch), "checkpoint")
    fleet.end(order_id, work=patch)
    fleet.pass_days(2)
    clean(fleet.core)
    assert (patch_of(fleet.core, fleet.admin, order_id), fleet.missing_files()) == (patch, [])


def test_a_checkpoint_that_comes_again_counts_as_new_among_those_of_its_run(fleet: KeptFleet) -> None:
    run_id, first = run_of(fleet.core, fleet.order()), b"the state before"
    for content in (first, *(f"state {number}".encode() for number in range(20)), first):
        blobs.put_blob(fleet.core, fleet.drone, run_id, digest(content), BytesIO(content), "checkpoint")
        fleet.clock.sleep(1)
    fleet.clock.sleep(7200)
    clean(fleet.core)
    with fleet.core.database.read() as db:
        kept = db.scalars(select(Blob.sha256)).all()
    assert (len(kept), digest(first) in kept) == (15, True)


def test_the_orders_of_an_open_task_and_of_a_batch_with_waiting_rows_are_kept_whole(fleet: KeptFleet) -> None:
    of_batch, of_task = (fleet.play(each, pushed=True) for each in ("row", "turn"))
    batch, owner, now = "b" * 12, fleet.admin.organization_id, fleet.core.clock.now()
    with fleet.core.database.write() as db:
        db.add(OrderGroup(id=batch, organization_id=owner, kind="batch", name="x", created_at=now))
        db.flush()
        row = {"number": 2, "key": "2", "digest": "d" * 64, "request": {}, "state": "waiting"}
        db.add(BatchRow(batch_id=batch, organization_id=owner, **row))
    fleet.leave(Order, of_batch, group_id=batch)
    request = TaskRequest(title="mend it", assignee="user", project="web")
    task = acting.create(fleet.core, fleet.admin, request).id
    fleet.leave(ChatSession, fleet.session(of_task), task_id=task)
    fleet.pass_days(1000)
    assert fleet.run() == {}
    fleet.leave(OrderGroup, batch, canceled_at=fleet.core.clock.now())
    assert (list(fleet.run()), fleet.show(of_task).removed) == (["steps", "logs", "work"], None)
    fleet.leave(Task, task, status="done")
    assert list(fleet.run()) == ["steps", "logs", "work"]


def test_what_an_open_order_builds_on_and_the_orders_of_an_undecided_race_are_kept_whole(fleet: KeptFleet) -> None:
    base, *of_race = (fleet.play(each, pushed=True) for each in ("base", "one", "two"))
    waiting, race = fleet.order("later", after=[base]), "a" * 12
    with fleet.core.database.write() as db:
        owned = {"organization_id": fleet.admin.organization_id, "created_at": fleet.core.clock.now()}
        db.add(OrderGroup(id=race, kind="race", name="", **owned))
    for each in of_race:
        fleet.leave(Order, each, group_id=race)
    fork = changing.fork(fleet.core, fleet.admin, fleet.session(base), ForkRequest()).id
    fleet.pass_days(1000)
    assert fleet.run() == {}
    fleet.leave(OrderGroup, race, winner_id=of_race[0])
    assert list(fleet.run()) == ["steps", "logs", "work"]
    assert [fleet.show(each).removed is None for each in (base, *of_race)] == [True, False, False]
    fleet.end(waiting, pushed=True)
    fleet.pass_days(1000)
    assert fleet.run(dry=True) == fleet.run() != {}
    assert fleet.show(base).removed is not None
    # A conversation whose steps are gone goes on, from the branch of its last work.
    sent = order_as_sent(fleet.core, fleet.order("go on", fork))
    assert (problems(sent.context), sent.base.branch) == ([], f"fleet/{base}")


def test_readings_of_code_hosts_go_after_a_week_and_the_next_one_is_made(
    core: Core, admin: Caller, clock: HandClock
) -> None:
    connected = connect(core, admin, clock)
    for _ in range(3):
        connected.reads()
    clean(core)
    assert readings(core) == 3
    clock.sleep(8 * 86400)
    due = connected.asked()
    assert due is not None
    clean(core)
    assert (readings(core), connected.asked() == due) == (1, False)
    connected.finish(due[0].id, response=CodeHostReading().model_dump_json())
    connected.reads()
    assert (readings(core), connected.link.last_error) == (2, "")


def readings(core: Core) -> int:
    with core.database.read() as db:
        return len(db.scalars(select(Order).where(Order.purpose == "code_host")).all())


def test_a_run_that_is_killed_leaves_rows_and_files_that_agree_and_the_next_one_completes_it(
    fleet: KeptFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    class DyingStore(DirectoryStore):
        """Nothing happens after the fourth file, as no handler expects this."""

        left = 4

        def remove(self, *given: Any, **named: Any) -> bool:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            return super().remove(*given, **named)

    monkeypatch.setattr(removing, "AT_ONCE", 2)
    orders = [fleet.play(f"number {number}", pushed=True) for number in range(4)]
    fleet.pass_days(400)
    with pytest.raises(KeyboardInterrupt):
        keeping.keep(replace(fleet.core, blobs=DyingStore(fleet.core.blobs.root)))
    assert (fleet.missing_files(), 0 < fleet.rows(Blob) < 12) == ([], True)
    assert [fleet.show(each).id for each in orders] == orders
    fleet.run()
    assert fleet.rows(Blob) == 0
    fleet.pass_days(7)
    fleet.run()
    assert list(fleet.core.blobs.files()) == []


def test_a_file_that_is_uploaded_again_while_its_last_row_is_removed_stays(fleet: KeptFleet) -> None:
    old = fleet.play("old", work=b"the same", pushed=True)
    fleet.pass_days(200)
    young = fleet.order("young")
    run_id = run_of(fleet.core, young)

    class UploadedMeanwhile(DirectoryStore):
        """Between the commit and the deletion of each file, the same content arrives for another run."""

        def remove(self, sha256: str, **named: Any) -> bool:
            if sha256 == digest(b"the same"):
                fleet.put(run_id, b"the same")
            return super().remove(sha256, **named)

    meanwhile = replace(fleet, core=replace(fleet.core, blobs=UploadedMeanwhile(fleet.core.blobs.root)))
    assert meanwhile.run()["work"][0] == 2
    assert (fleet.missing_files(), fleet.show(old).patch) == ([], None)
    fleet.end(young, work=b"the same")
    assert patch_of(fleet.core, fleet.admin, young) == b"the same"


@contextmanager
def waits_for_the_lock(directory: Path, act: Callable[[], object]) -> Iterator[None]:
    """`act` is called in a thread and waits, while this one has the lock of the directory of a file."""
    lock = os.open(directory, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    thread = threading.Thread(target=act)
    thread.start()
    try:
        # Without the lock, it would be over by then.
        thread.join(1)
        assert thread.is_alive()
        yield
    finally:
        os.close(lock)
        thread.join()


def test_a_removal_and_an_upload_wait_for_each_other_and_the_newer_file_stays(tmp_path: Path) -> None:
    store, content = DirectoryStore(tmp_path), b"the same"
    name, now = digest(content), datetime.now(UTC)
    path = store.path(name)
    path.parent.mkdir(parents=True)
    with waits_for_the_lock(path.parent, lambda: store.store(name, BytesIO(content))):
        assert not store.has(name)
    assert store.read(name) == content
    os.utime(path, (0, 0))
    with waits_for_the_lock(path.parent, lambda: store.remove(name, stored_before=now)):
        os.utime(path, (now.timestamp() + 1, now.timestamp() + 1))
    assert store.has(name)
