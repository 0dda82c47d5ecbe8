"""A project that is connected to a code host, without drone and host: the test says what was read there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import select, update

from control_plane.contract.declarations.code_hosts import CodeHostDocument, CodeHostRequest, HostUserRequest
from control_plane.contract.declarations.users import UserRequest
from control_plane.core import Caller, Core
from control_plane.db.code_hosts import HostLink, HostPost
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.operations.access import users
from control_plane.operations.code_hosts import connections as code_hosts
from control_plane.operations.code_hosts.syncing import SETTLES, keep_up
from shared.code_hosts import (
    CodeHostReading,
    CommentToWrite,
    SeenComment,
    SeenPull,
    SeenReview,
    SeenReviewComment,
    SyncCodeHost,
    WrittenComment,
)
from tests.support.clocks import HandClock
from tests.support.made import make_drone, make_project, start_run
from tests.support.team_rows import end

SECRET = "s3cret-s3cret-s3cret"
USER = "alice@example.org"


@dataclass
class Connected:
    """The connection `shop`, with alice mapped to an operator."""

    core: Core
    admin: Caller
    clock: HandClock

    @property
    def link(self) -> CodeHostDocument:
        return code_hosts.show(self.core, self.admin, "shop")

    def events(self) -> list[tuple[str, str]]:
        """What happened, oldest first, and what became of it."""
        listed = code_hosts.events(self.core, self.admin, "shop", limit=1000)
        return [(each.kind, each.outcome) for each in listed[::-1]]

    def work(self) -> list[Order]:
        """The orders of work, oldest first."""
        with self.core.database.read() as db:
            return list(db.scalars(select(Order).where(Order.purpose == "work").order_by(Order.number)))

    def posts(self, kind: str = "") -> list[HostPost]:
        with self.core.database.read() as db:
            wanted = select(HostPost).where(HostPost.subject.startswith(kind))
            return list(db.scalars(wanted.order_by(HostPost.created_at, HostPost.id)))

    def asked(self) -> tuple[Order, SyncCodeHost] | None:
        """The order that reads the host now, if one is due."""
        self.clock.sleep(SETTLES.total_seconds())
        with self.core.database.write() as db:
            db.execute(update(Drone).values(last_seen_at=self.core.clock.now()))
        keep_up(self.core)
        with self.core.database.read() as db:
            link = db.scalars(select(HostLink)).one()
            order = db.get(Order, link.order_id) if link.order_id is not None else None
            return (order, SyncCodeHost.model_validate(order.asked)) if order is not None else None

    def reads(self, reading: CodeHostReading | None = None, **refused: str) -> SyncCodeHost:
        """Let a drone read this; it writes what is due, except what is `refused`, by the beginning of its text."""
        if self.asked() is None:
            code_hosts.sync(self.core, self.admin, "shop")
        due = self.asked()
        assert due is not None
        order, asked = due
        written = tuple(self._written(each.id, each.text, refused) for each in asked.writes)
        told = (reading or CodeHostReading()).model_copy(update={"written": written})
        self.finish(order.id, response=told.model_dump_json())
        keep_up(self.core)
        return asked

    def writes(self) -> list[CommentToWrite]:
        """Let a drone write everything that is due; returns what it wrote, in this order."""
        found: list[CommentToWrite] = []
        while self.asked() is not None:
            found += self.reads().writes
        return found

    def finish(self, order_id: str, how: str = "succeeded", **values: Any) -> None:
        """End an order as its drone does."""
        start_run(self.core, order_id)
        with self.core.database.write() as db:
            for name, value in values.items():
                setattr(db.get_one(Order, order_id), name, value)
        end(self.core, order_id, how)

    def delivered(self, order_id: str, head: str = "c" * 40, **pull: Any) -> None:
        """End an order of work with a pushed branch and an open pull request."""
        opened = {"state": "opened", "url": "https://host/shop/calc/pull/4", "number": 4, "via": "gh", "base": "main"}
        words = {"title": "x", "body": "x", "why": "", "order": "0" * 12, "head": f"fleet/{order_id}"}
        done = {"branch": f"fleet/{order_id}", "head_commit": head, "base_commit": "b" * 40, "pushed": True}
        self.finish(order_id, **done, response="Done.")
        with self.core.database.write() as db:
            db.get_one(Order, order_id).pull_request = {**opened, **words, **pull}

    def comment(self, text: str = "@fleet fix it", **fields: Any) -> SeenComment:
        said = {"id": "1", "place": "issues/3", "author": "alice", "account": "2", "at": self.core.clock.now()}
        return SeenComment.model_validate({**said, "text": text, "title": "Wrong", "about": "It is.", **fields})

    def review(self, *texts: str, **fields: Any) -> SeenReview:
        """A review that is old enough to be complete."""
        at = self.core.clock.now() - timedelta(seconds=10)
        who = {"author": "alice", "account": "2", "at": at}
        lines = tuple(
            SeenReviewComment(id=f"5{n}", thread=f"5{n}", path="calc.py", start_line=1, end_line=1, text=text, **who)
            for n, text in enumerate(texts)
        )
        return SeenReview.model_validate({"id": "7", **who, "comments": lines, **fields})

    def pull(self, **fields: Any) -> SeenPull:
        said = {"number": 4, "state": "open", "head": "c" * 40, "branch": f"fleet/{self.work()[0].id}", "base": "main"}
        return SeenPull.model_validate({**said, "base_commit": "d" * 40, **fields})

    def _written(self, id: str, text: str, refused: dict[str, str]) -> WrittenComment:
        why = next((said for begin, said in refused.items() if text.lstrip("*").startswith(begin)), None)
        return WrittenComment(id=id, comment=f"c-{id}") if why is None else WrittenComment(id=id, error=why)


def connect(core: Core, admin: Caller, clock: HandClock, **fields: Any) -> Connected:
    make_project(core, admin)
    make_drone(core, admin, concurrency=9)
    users.add(core, admin, UserRequest(email=USER, name="Alice", role="operator"))
    values = {"name": "shop", "kind": "github", "project": "web", "repository": "shop/calc", "secret": SECRET}
    code_hosts.add(core, admin, CodeHostRequest.model_validate({**values, **fields}))
    code_hosts.map_user(core, admin, "shop", "Alice", HostUserRequest(user=USER))
    return Connected(core, admin, clock)
