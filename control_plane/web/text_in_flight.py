"""Text in flight: which drone's text belongs to an order, and opening what that drone sealed."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass

from sqlalchemy import select

from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.runs import Step
from control_plane.drones.reports import ForeignRun, InvalidReport, RefusalLog, ReportSender, open_report
from shared.envelope import recipient_of
from shared.events import Delta

KEYS_AGAIN_S = 5.0


@dataclass(frozen=True)
class Source:
    """The drone and the run that work on an order now."""

    drone_id: str
    run_id: str | None
    public_key: bytes
    sent_seq: int = 0
    """The run's last event that the client has; text after a later event must wait for that event."""

    def sends(self, drone_id: str, run_id: str) -> bool:
        """Whether this drone's text of this run is the order's."""
        return (self.drone_id, self.run_id) == (drone_id, run_id)


def source_of(core: Core, order_id: str, last_step: int) -> Source | None:
    """The source of the order's text in flight for a client with the steps up to `last_step`.

    None while no drone has the order.
    """
    sent = (
        select(Step.run_seq)
        .where(Step.run_id == Order.run_id, Step.seq <= last_step)
        .order_by(Step.run_seq.desc())
        .limit(1)
        .scalar_subquery()
    )
    query = (
        select(Order.drone_id, Order.run_id, Drone.public_key, sent)
        .join(Drone, Drone.id == Order.drone_id)
        .where(Order.id == order_id)
    )
    with core.database.read() as db:
        row = db.execute(query).one_or_none()
    if row is None:
        return None
    drone_id, run_id, public_key, sent_seq = row
    return Source(drone_id, run_id, base64.b64decode(public_key), sent_seq or 0)


def last_step_of(core: Core, order_id: str) -> int:
    """The number of the order's last stored step; 0 without any."""
    with core.database.read() as db:
        return db.scalar(select(Order.step_count).where(Order.id == order_id)) or 0


class LiveKeys:
    """The control plane's private keys, kept unsealed: a piece of text arrives every few milliseconds."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._keys: dict[str, bytes] = {}
        self._read_at = -KEYS_AGAIN_S
        self._refusals = RefusalLog(core.clock)

    def open_delta(self, sender: ReportSender, envelope: str) -> Delta | None:
        """The piece of text; None if no stream waits for its run, or if it is refused, which is logged."""
        try:
            return open_report(Delta, envelope, sender, self._keys_for(recipient_of(envelope)))
        except ForeignRun:
            return None
        except InvalidReport as error:
            self._refusals.note("text in flight was refused", sender.drone_id, error)
            return None

    def _keys_for(self, wanted: str) -> dict[str, bytes]:
        # Keys may be rotated while we run; an unknown key id must not cause a database read each time.
        if wanted not in self._keys and time.monotonic() - self._read_at > KEYS_AGAIN_S:
            self._read_at = time.monotonic()
            with self._core.database.read() as db:
                self._keys = self._core.vault.box_keys(db).private_keys()
        return self._keys
