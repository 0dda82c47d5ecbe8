"""Whatever a fleet did, the retention removes nothing that is needed, and says beforehand what it removes."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.conversations.history import last_work, way_to
from control_plane.core import Core
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.db.sessions import ChatSession
from control_plane.declarations.sessions import ForkRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.orders.reading import patch_of
from control_plane.operations.sessions import changing
from shared.errors import NotFound
from shared.states import ENDED
from shared.transcripts import problems
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.kept import KeptFleet, kept_fleet
from tests.support.turns import CANCELED, FAILED, SUCCEEDED, context, order_as_sent

DAYS = {"keep_logs_days": 2, "keep_work_days": 4, "keep_steps_days": 8, "keep_services_days": 3, "blob_limit_mb": 1}
LOGS = [bytes([number]) * 300_000 for number in range(4)]
WORKS = [b"the same work", b"another work", None, b"", b""]


@dataclass
class History:
    """Acts at random, and what must be true after each retention."""

    fleet: KeptFleet
    random: Random
    orders: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)

    def act(self) -> None:
        self.random.choice([self.play, self.play, self.play, self.submit, self.finish, self.fork, self.race])()
        self.fleet.pass_days(self.random.choice([0.01, 1, 2, 5]))

    def play(self) -> None:
        idle = [None, *self.idle_sessions()]
        session = self.random.choice(idle)
        self.orders.append(self.fleet.play("do it", session, **self.ending()))
        self.sessions.append(self.fleet.session(self.orders[-1]))
        if session is None and self.random.random() < 0.2:
            self.fleet.leave(Order, self.orders[-1], purpose="title")

    def ending(self) -> dict[str, Any]:
        return {
            "to": self.random.choice([SUCCEEDED, SUCCEEDED, FAILED, CANCELED]),
            "pushed": self.random.random() < 0.5,
            "log": self.random.choice(LOGS),
            "work": self.random.choice(WORKS),
        }

    def submit(self) -> None:
        shown = map(self.fleet.show, self.orders)
        done = [each.id for each in shown if each.status == SUCCEEDED and each.purpose == "work"]
        after = [self.random.choice(done)] if done and self.random.random() < 0.7 else []
        self.orders.append(self.fleet.order("later", after=after))
        self.open.append(self.orders[-1])

    def finish(self) -> None:
        if self.open:
            self.fleet.end(self.open.pop(0), **self.ending())

    def fork(self) -> None:
        if idle := self.idle_sessions():
            request = ForkRequest(at="root") if self.random.random() < 0.2 else ForkRequest()
            made = changing.fork(self.fleet.core, self.fleet.admin, self.random.choice(idle), request)
            self.sessions.append(made.id)

    def race(self) -> None:
        orders = [self.fleet.play("race", **self.ending()) for _ in range(2)]
        race = f"{len(self.orders):012}"
        now, owner = self.fleet.core.clock.now(), self.fleet.admin.organization_id
        winner = self.random.choice([None, orders[0]])
        with self.fleet.core.database.write() as db:
            db.add(OrderGroup(id=race, organization_id=owner, kind="race", name="", winner_id=winner, created_at=now))
        for each in orders:
            self.fleet.leave(Order, each, group_id=race)
        self.orders += orders

    def idle_sessions(self) -> list[str]:
        with self.fleet.core.database.read() as db:
            busy = set(db.scalars(select(Order.session_id).where(Order.ended_at.is_(None))))
            there = set(db.scalars(select(ChatSession.id)))
        return sorted(there & set(self.sessions) - busy)

    # --- what must be true ----------------------------------------------------------------

    def retain(self) -> None:
        """Apply the retention, and compare what is there with what was there."""
        before = {each: self.whole(each) for each in self.orders}
        untouchable = self.untouchable()
        bases, contexts = self.unpushed_bases(), self.young_contexts()
        expected = self.fleet.run(dry=True)
        assert self.fleet.run() == expected
        assert (self.fleet.run(dry=True), self.fleet.missing_files()) == ({}, [])
        self.orders = [each for each in self.orders if self.is_there(each)]
        for each in self.orders:
            after = self.whole(each)
            assert each not in untouchable or after == before[each]
            assert after["patch"] in {before[each]["patch"], b"(removed)"}
        assert [each for each in untouchable if not self.is_there(each)] == []
        assert (self.unpushed_bases(), self.young_contexts()) == (bases, contexts)
        assert all(self.fleet.core.blobs.has(bundle) for bundle in bases.values())

    def whole(self, order_id: str) -> dict[str, Any]:
        """The order's document and its patch; every reader of it works."""
        try:
            patch = patch_of(self.fleet.core, self.fleet.admin, order_id)
        except NotFound as error:
            patch = b"(removed)" if error.code == "E-ORDER-REMOVED" else error.code.encode()
        return {"shown": self.fleet.show(order_id).model_dump(), "patch": patch}

    def is_there(self, order_id: str) -> bool:
        with self.fleet.core.database.read() as db:
            return db.get(Order, order_id) is not None

    def untouchable(self) -> set[str]:
        """Orders that have not ended, that may be resumed, on which these build, and of undecided races."""
        with self.fleet.core.database.read() as db:
            rows = {each.id: each for each in db.scalars(select(Order))}
            races = {each.id for each in db.scalars(select(OrderGroup)) if each.winner_id is None}
        now = self.fleet.core.clock.now()
        found = set()
        for each in rows.values():
            young = each.ended_at is not None and (now - each.ended_at).total_seconds() < 7 * 86400
            again = each.status in {FAILED, CANCELED} and young and each.purpose == "work"
            of_race = [other for other in rows.values() if each.group_id in races and other.group_id == each.group_id]
            undecided = any(other.status == SUCCEEDED and other.head_commit for other in of_race)
            if each.status not in ENDED or again:
                found |= {each.id, *each.after}
            if undecided:
                found.add(each.id)
        return found

    def unpushed_bases(self) -> dict[str, str]:
        """The bundle that the next order of each session needs."""
        found = {}
        with self.fleet.core.database.read() as db:
            for session in sorted(set(self.sessions)):
                chat = db.get(ChatSession, session)
                work = last_work(db, way_to(db, chat.leaf_id)) if chat is not None else None
                if work is not None and not work.pushed and work.purpose == "work":
                    found[session] = str(work.bundle_sha256)
        return found

    def young_contexts(self) -> dict[str, Any]:
        """What the next order of each session is told, if the session was used within the time of its steps."""
        now = self.fleet.core.clock.now()
        found = {}
        with self.fleet.core.database.read() as db:
            ended = db.execute(select(Order.session_id, Order.ended_at, Order.purpose)).all()
        for session_id, at, purpose in ended:
            if at is not None and purpose == "work" and (now - at).days < DAYS["keep_steps_days"]:
                found[session_id] = context(self.fleet.core, session_id)
        return found

    def continue_all(self) -> None:
        """Each session takes another order, which starts from work that is there, with a valid conversation."""
        for session in self.idle_sessions():
            assert problems(context(self.fleet.core, session)) == []
            base = order_as_sent(self.fleet.core, self.fleet.order("go on", session)).base
            assert base.commit is None or base.branch or self.fleet.core.blobs.has(str(base.bundle))


@pytest.mark.parametrize("seed", range(3))
def test_nothing_that_is_needed_is_ever_removed(
    core_factory: CoreFactory, database_url: str, clock: HandClock, seed: int
) -> None:
    core: Core = core_factory(database_url, clock=clock, **DAYS)
    history = History(kept_fleet(core, system_caller(core), clock), Random(seed))
    for number in range(24):
        history.act()
        if number % 3 == 2:
            history.retain()
    history.continue_all()
    history.retain()
