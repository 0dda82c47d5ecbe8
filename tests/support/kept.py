"""A control plane whose orders have files: what is still there of each after the retention was applied."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from sqlalchemy import select, update

from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.runs import Blob
from control_plane.declarations.retention import RetentionRequest
from control_plane.documents.orders import OrderDocument
from control_plane.operations.orders import reading
from control_plane.operations.retention import keeping
from control_plane.operations.runs import blobs
from shared.blobs import digest
from shared.events import ABILITIES, Body, ToolResultStep
from shared.states import OrderStatus
from tests.support.clocks import HandClock
from tests.support.made import make_drone, make_project, run_of, submit
from tests.support.turns import SUCCEEDED, end, said


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


def kept_fleet(core: Core, admin: Caller, clock: HandClock) -> KeptFleet:
    make_project(core, admin)
    return KeptFleet(core, admin, clock, make_drone(core, admin, concurrency=999, beat={"abilities": list(ABILITIES)}))
