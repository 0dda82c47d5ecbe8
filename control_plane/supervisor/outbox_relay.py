"""From the outbox to the drones' queues: first the key, then the message, then the published mark.

A crash in between leaves the row unpublished, and it is published again under the same run id. The key ensures that
only one copy is ever claimed.
"""

from __future__ import annotations

import base64
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import ValidationError
from sqlalchemy import Select, and_, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, aliased

from control_plane.core import Core
from control_plane.core.rows import each_alone
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.operations.orders.queueing import send_anew_if_waiting
from control_plane.operations.runs.blobs import lend_blobs
from control_plane.orders.status_changes import explain
from control_plane.supervisor.work_orders import work_order
from shared.envelope import Binding, seal
from shared.errors import FleetError, Unreachable
from shared.reasons import CannotBeSent
from shared.states import OrderStatus
from shared.terminal import logs
from shared.work_order import WorkOrder

log = logs.get(__name__)

_BATCH = 20
"""Messages published between two marks: the most that are published twice if this process dies."""
_HOLD_OFF = timedelta(seconds=30)


def unpublished() -> Select[str]:
    """The ids of the dispatches that are to be published."""
    return select(Dispatch.id).where(Dispatch.published_at.is_(None), Dispatch.closed_at.is_(None))


_WAITING, _SENT = aliased(Order), aliased(Dispatch)
_OVERTAKEN = (
    _WAITING.organization_id == Order.organization_id,
    _WAITING.drone_id == Dispatch.drone_id,
    _WAITING.ended_at.is_(None),
    _WAITING.status == OrderStatus.ASSIGNED,
    _WAITING.priority < Order.priority,
    select(_SENT.id)
    .where(_SENT.id == _WAITING.run_id, _SENT.published_at.is_not(None), _SENT.claimed_at.is_(None))
    .exists(),
)
"""Which orders in its drone's queue a dispatch overtakes."""


@dataclass(frozen=True)
class Unsendable:
    """Why an order cannot be sent now: for people, and for the log."""

    what: str
    why: str


class Relay:
    """Publishes unpublished dispatches, urgent orders first, then in order of submission."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._held_off: dict[str, datetime] = {}

    def publish_all(self) -> int:
        """Publish until nothing is left; returns the number. Raises Unreachable if the broker does not answer.

        An order overtakes those of a lower priority of its organization that wait in its drone's queue: they are sent
        again after it.
        """
        count = 0
        while batch := self._unpublished():
            if urgent := [run_id for run_id, overtakes in batch if overtakes]:
                self._send_again_later(urgent)
                batch = self._unpublished()
            count += len(batch)
            self.publish([run_id for run_id, _ in batch])
        return count

    def publish(self, run_ids: Sequence[str]) -> None:
        """Publish these dispatches, for the first time or again."""
        # Before they are sealed: what is asked of a session from now on may be missing in its order.
        began = self._core.clock.now()
        sealed = self._sealed(run_ids)
        done: list[str] = []
        try:
            for dispatch, envelope in sealed:
                self._publish_one(dispatch, envelope)
                done.append(dispatch.id)
        finally:
            # Mark what is queued even if the broker becomes unavailable in the middle of the batch.
            if done:
                self._mark(done, began)

    def _unpublished(self) -> Sequence[tuple[str, bool]]:
        """The next dispatches, each with whether it overtakes others."""
        now = self._core.clock.now()
        held = [run_id for run_id, until in self._held_off.items() if until > now]
        waiting = unpublished().join(Order, Order.id == Dispatch.order_id).where(Dispatch.id.not_in(held))
        overtakes = select(_WAITING.id).where(*_OVERTAKEN).exists()
        with self._core.database.read() as db:
            rows = db.execute(
                waiting.add_columns(overtakes).order_by(Order.priority.desc(), Order.number).limit(_BATCH)
            )
            return [(run_id, overtaking) for run_id, overtaking in rows]

    def _send_again_later(self, urgent: Sequence[str]) -> None:
        """Take the orders that these dispatches overtake out of their queues, and place them again."""
        sent = select(_WAITING.id, Order.user).select_from(Dispatch).join(Order, Order.id == Dispatch.order_id)
        overtaken = sent.join(_WAITING, and_(*_OVERTAKEN)).where(Dispatch.id.in_(urgent))
        with self._core.database.read() as db:
            found = db.execute(overtaken.order_by(_WAITING.priority.desc(), _WAITING.number))
            users = {order_id: user for order_id, user in found}
        each_alone("relay", users.items(), lambda each: send_anew_if_waiting(self._core, *each))

    def _sealed(self, run_ids: Sequence[str]) -> list[tuple[Dispatch, str]]:
        """Each dispatch with its envelope, without those that are closed or cannot be built.

        One read transaction for the whole batch: most orders share project, provider and drone.
        """
        found: list[tuple[Dispatch, str]] = []
        contexts: list[tuple[Dispatch, str]] = []
        failed: dict[str, Unsendable] = {}
        with self._core.database.read() as db:
            sender = self._core.vault.box_keys(db).current_private_key()
            for run_id in run_ids:
                dispatch = db.get_one(Dispatch, run_id)
                if dispatch.closed_at is not None:
                    continue
                built = self._built(db, dispatch, sender)
                if isinstance(built, Unsendable):
                    failed[run_id] = built
                    continue
                envelope, context = built
                found.append((dispatch, envelope))
                contexts += [(dispatch, context)] if context is not None else []
        for run_id, why in failed.items():
            self._hold_off(run_id, why)
        if contexts:
            lend_blobs(self._core, contexts)
        return found

    def _built(self, db: Session, dispatch: Dispatch, sender: bytes) -> tuple[str, str | None] | Unsendable:
        """The envelope, and the blob with what was said before; or why there is none.

        What the rows of one order hold must not hold up all others. An unavailable service concerns all of them.
        """
        try:
            order = work_order(db, self._core, dispatch)
            return self._envelope(db, order, sender), order.context_blob
        except (Unreachable, SQLAlchemyError):
            raise
        except FleetError as error:
            return Unsendable(error.what, error.why)
        except Exception as error:  # noqa: BLE001 - see above
            return Unsendable(f"its work order cannot be built ({type(error).__name__})", _where(error))

    def _envelope(self, db: Session, order: WorkOrder, sender: bytes) -> str:
        drone = db.get_one(Drone, order.drone_id)
        binding = Binding(
            direction="order",
            drone=drone.id,
            order=order.order_id,
            run=order.run_id,
            generation=order.generation,
        )
        key, now = base64.b64decode(drone.public_key), self._core.clock.now()
        return seal(order.model_dump_json(), binding, sender=sender, recipient=key, issued_at=now)

    def _publish_one(self, dispatch: Dispatch, envelope: str) -> None:
        broker, drone_id, generation = self._core.broker, dispatch.drone_id, dispatch.generation
        # Refused means claimed or revoked: a copy is already out, or must never go out. Either way, send no message.
        if broker.offer_run(drone_id, dispatch.id, generation):
            broker.publish_order(
                drone_id=drone_id,
                order_id=dispatch.order_id,
                run_id=dispatch.id,
                generation=generation,
                envelope=envelope,
            )

    def _hold_off(self, run_id: str, unsendable: Unsendable) -> None:
        """Postpone an order that cannot be built (for example, its key cannot be opened) and record why on the order.

        It must not block the others.
        """
        now = self._core.clock.now()
        self._held_off[run_id] = now + _HOLD_OFF
        with self._core.database.write() as db:
            dispatch = db.get_one(Dispatch, run_id)
            with logs.bound(order=dispatch.order_id, run=run_id, drone=dispatch.drone_id):
                log.error("an order cannot be sent", what=unsendable.what, why=unsendable.why)
            order = db.get_one(Order, dispatch.order_id, with_for_update=True)
            # One that is being canceled keeps its own reason.
            if (order.run_id, order.status) == (run_id, OrderStatus.ASSIGNED):
                explain(db, order, order.facts.model_copy(update={"waits": CannotBeSent(detail=unsendable.what)}))
        self._core.broker.changed_by_supervisor([dispatch.order_id])

    def _mark(self, run_ids: Iterable[str], published_at: datetime) -> None:
        with self._core.database.write() as db:
            done = update(Dispatch).where(Dispatch.id.in_(list(run_ids)))
            db.execute(done.values(published_at=published_at))


def _where(error: Exception) -> str:
    """The fields, or the line, that it is about: no value, which may be a secret."""
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['type']}" for each in error.errors())
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno} in {last.name}"
