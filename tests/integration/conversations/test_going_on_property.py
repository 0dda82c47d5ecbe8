"""However often a run is broken off, the conversation is that of an undisturbed run of the steps that survive."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_plane.conversations.run_paths import order_path
from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.engine import sqlite_url_of
from control_plane.db.orders import Order
from control_plane.db.runs import Blob, Run, Step
from control_plane.documents.orders import ResumeRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.orders import retrying
from control_plane.orders.assignment import place_and_dispatch
from control_plane.orders.ending import Ending, finish, requeue
from shared.blobs import digest
from shared.events import AssistantStep, Body, CheckpointStep, CompactionStep, ToolResultStep, UserStep
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus
from shared.reasons import RunEnd, WithdrawnBeforeStart
from shared.states import OrderStatus
from shared.transcripts import problems
from shared.work_order import WorkOrder
from tests.support.clocks import HandClock
from tests.support.database import core_on
from tests.support.made import make_drone, make_project, start_run, submit
from tests.support.turns import context, order_as_sent, report

ABLE = {"abilities": ["resume"]}
WHERE = st.sampled_from(["anna", "berta"])
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("step"), st.integers(1, 3), st.booleans()),
        st.tuples(st.just("compact"), st.integers(0, 6)),
        st.tuples(st.just("broken_off"), st.integers(1, 3), WHERE),
        st.tuples(st.just("late"), WHERE),
        st.tuples(st.just("resumed_by_hand"), WHERE),
    ),
    max_size=10,
)


@dataclass(frozen=True)
class Kept:
    """A checkpoint in the model: where it can be had, and the conversation up to it."""

    drone: str
    stored: bool
    transcript: list[Message]


@dataclass
class Played:
    """An order in the database, and beside it what its loop has in hand."""

    core: Core
    drone: str = "anna"
    order_id: str = ""
    run_id: str = ""
    transcript: list[Message] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def begin(self) -> None:
        self.order_id = submit(self.core, system_caller(self.core), "do it", drone=self.drone).id
        self._go(expected=[])

    def step(self, calls: int, stored: bool) -> None:
        """A complete step and its checkpoint; one that is not stored is on the disk of its drone alone."""
        self._say(*self._answered(calls, calls))
        self.kept.append(Kept(self.drone, stored, list(self.transcript)))
        name = digest(f"{self.run_id}/{next(self.numbers)}".encode())
        if stored:
            with self.core.database.write() as db:
                owned = {"organization_id": db.get_one(Order, self.order_id).organization_id, "run_id": self.run_id}
                db.add(Blob(sha256=name, size=1, sealed=True, created_at=self.core.clock.now(), **owned))
        report(self.core, self.run_id, [CheckpointStep(commit=name[:40], bundle_sha256=name)])

    def compact(self, keep: int) -> None:
        """A summary for all but the last messages, which no result is parted from its call by."""
        keep = min(keep, len(self.transcript))
        while keep and self.transcript[-keep].role == "tool":
            keep -= 1
        report(self.core, self.run_id, [CompactionStep(summary="so far", kept=keep)])
        tail = self.transcript[-keep:] if keep else []
        self.transcript = [Message(role="user", content="<summary>\nso far\n</summary>", part="summary"), *tail]

    def broken_off(self, calls: int, drone: str) -> None:
        """The run dies in the middle of a step; the next one is on this drone."""
        self._say(*self._answered(calls, calls - 1))
        self.drone = drone
        with self.core.database.write() as db:
            order = db.get_one(Order, self.order_id)
            order.wanted_drone_id = db.query(Drone.id).filter(Drone.name == drone).scalar()
            requeue(db, self.core, order, WithdrawnBeforeStart())
            place_and_dispatch(db, self.core, order)
        self._go(expected=self._newest())

    def late(self, drone: str) -> None:
        """The run dies, and goes on reporting while another has the order."""
        stale = self.run_id
        self.broken_off(1, drone)
        report(self.core, stale, [*self._answered(2, 2), CheckpointStep(commit="")], late=True)

    def resumed_by_hand(self, drone: str) -> None:
        self.drone = drone
        with self.core.database.write() as db:
            order = db.get_one(Order, self.order_id)
            order.wanted_drone_id = db.query(Drone.id).filter(Drone.name == drone).scalar()
            finish(db, self.core, order, OrderStatus.FAILED, Ending(ExitStatus.TIME_LIMIT, RunEnd()))
        retrying.resume(self.core, system_caller(self.core), self.order_id, ResumeRequest())
        self._go(expected=self._newest())

    def end(self) -> list[Message]:
        """The session's conversation once the order has ended."""
        self._say(AssistantStep(text="done"))
        with self.core.database.write() as db:
            order = db.get_one(Order, self.order_id)
            finish(
                db,
                self.core,
                order,
                OrderStatus.SUCCEEDED,
                Ending(ExitStatus.STOPPED, RunEnd()),
            )
            session = order.session_id
        return context(self.core, session)

    def undone(self) -> int:
        """How many messages of the order's steps are marked as undone, and not late."""
        with self.core.database.read() as db:
            path = order_path(db, db.get_one(Order, self.order_id))
            steps = db.query(Step).filter(Step.order_id == self.order_id, Step.kind.in_(["user", "assistant"]))
            return sum(path.undone(step.run_id, step.run_seq) for step in steps if not step.late)

    def _newest(self) -> list[Message]:
        """What the next run is to be given: checkpoints that only another drone has cannot be had."""
        usable = [kept for kept in self.kept if kept.stored or kept.drone == self.drone]
        return usable[-1].transcript if usable else []

    def _go(self, expected: list[Message]) -> None:
        """Begin the next run with what its order holds."""
        order = order_as_sent(self.core, self.order_id)
        assert problems(order.context) == []
        assert list(order.context) == expected
        self.run_id = start_run(self.core, self.order_id)
        self.transcript = list(order.context)
        self._went_on(order)
        note = UserStep(text="It goes on.", source="loop") if order.resumed else UserStep(text="do it", source="prompt")
        self._say(note)

    def _went_on(self, order: WorkOrder) -> None:
        """What the collector writes as the run's first events come in."""
        with self.core.database.write() as db:
            db.get_one(Order, self.order_id).attempt += 1
            if order.resumed is not None:
                run = db.get_one(Run, self.run_id)
                run.resumed_run_id, run.resumed_seq = order.resumed.run_id, order.resumed.seq

    def _answered(self, calls: int, answers: int) -> list[Body]:
        ids = [f"call {next(self.numbers)}" for _ in range(calls)]
        asked = tuple(ToolCall(id=each, name="shell") for each in ids)
        results = [ToolResultStep(call_id=each, output=f"result of {each}") for each in ids[:answers]]
        return [AssistantStep(text="I call.", tool_calls=asked), *results]

    def _say(self, *bodies: Body) -> None:
        report(self.core, self.run_id, bodies)
        for body in bodies:
            match body:
                case AssistantStep():
                    said = Message(role="assistant", content=body.text, tool_calls=body.tool_calls)
                case ToolResultStep():
                    said = Message(role="tool", tool_call_id=body.call_id, content=body.output)
                case UserStep():
                    said = Message(
                        role="user", content=body.text, part="opening" if body.source == "prompt" else "other"
                    )
                case _:
                    raise AssertionError(body)
            self.transcript.append(said)


@pytest.fixture(scope="module")
def core(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Core]:
    directory = tmp_path_factory.mktemp("going-on")
    shutil.copy(sqlite_template, directory / "fleet.db")
    made = core_on(sqlite_url_of(directory / "fleet.db"), directory, clock=HandClock())
    make_project(made, system_caller(made))
    for name in ("anna", "berta"):
        make_drone(made, system_caller(made), name, concurrency=10_000, beat=ABLE)
    yield made
    made.database.dispose()


@given(acts=ACTS)
@settings(max_examples=15, deadline=None)
def test_any_steps_breaks_and_goings_on_give_the_conversation_of_an_undisturbed_run(
    core: Core, acts: list[tuple[str, ...]]
) -> None:
    played = Played(core)
    played.begin()
    for act, *how in acts:
        getattr(played, act)(*how)
    conversation = played.end()
    assert problems(conversation) == []
    assert conversation == played.transcript
