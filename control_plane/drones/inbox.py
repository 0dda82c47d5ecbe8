"""Messages from the control plane to a drone: each is a row until the drone's beat confirms that it was acted on.

The row is written in the same transaction as its cause; the sender puts it into Redis afterwards, sealed, as often as
necessary.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import Select, select, update
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.rows import each_alone
from control_plane.db.drones import Drone, InboxMessage
from shared import names
from shared.control import (
    Cancel,
    Compact,
    Confirm,
    ControlMessage,
    Decide,
    Drain,
    Rename,
    Resend,
    RotateKeys,
    Say,
    Suspend,
    TakeBack,
)
from shared.envelope import Binding, seal

Body = Cancel | Say | TakeBack | Decide | Suspend | Compact | Confirm | Resend | Drain | RotateKeys | Rename


def notify_drone(db: Session, core: Core, drone_id: str, body: Body, run_id: str | None = None) -> str:
    """Write a message for a drone in the caller's transaction and return its id. Call `core.broker.wake()` after it."""
    drone = db.get_one(Drone, drone_id)
    row = InboxMessage(
        id=names.new_id(),
        organization_id=drone.organization_id,
        drone_id=drone_id,
        run_id=run_id,
        body=body.model_dump(mode="json"),
        created_at=core.clock.now(),
    )
    db.add(row)
    return row.id


def pending(db: Session, drone_id: str, run_id: str | None, kind: str) -> bool:
    """Whether a message of this kind about this run, or about none, is still on its way to the drone."""
    undone = select(InboxMessage.body).where(
        InboxMessage.drone_id == drone_id, InboxMessage.run_id == run_id, InboxMessage.done_at.is_(None)
    )
    return any(body.get("kind") == kind for body in db.scalars(undone))


def unsent() -> Select[InboxMessage]:
    """The messages that are to be sent."""
    return select(InboxMessage).where(InboxMessage.sent_at.is_(None), InboxMessage.done_at.is_(None))


def send_new(core: Core) -> int:
    """Send unsent messages; returns their number."""
    with core.database.read() as db:
        rows = db.scalars(unsent().order_by(InboxMessage.created_at)).all()
    return _send(core, rows) if rows else 0


def send_missing(core: Core) -> int:
    """Resend messages that the drones have not acted on and Redis no longer has; returns their number."""
    with core.database.read() as db:
        undone = select(InboxMessage).where(InboxMessage.sent_at.is_not(None), InboxMessage.done_at.is_(None))
        rows = db.scalars(undone.order_by(InboxMessage.created_at)).all()
    with core.broker.reaching():
        missing = [row for row in rows if not core.broker.redis.hexists(names.inbox_key(row.drone_id), row.id)]
    return _send(core, missing) if missing else 0


def acted_on(db: Session, core: Core, drone_id: str, message_ids: Iterable[str]) -> list[str]:
    """Close the messages that the drone reports as acted on; returns the ids that may leave Redis (`forget`)."""
    ids = list(message_ids)
    if ids:
        closing = update(InboxMessage).where(
            InboxMessage.drone_id == drone_id, InboxMessage.id.in_(ids), InboxMessage.done_at.is_(None)
        )
        db.execute(closing.values(done_at=core.clock.now()), execution_options={"synchronize_session": False})
    return ids


def forget(core: Core, drone_id: str, message_ids: Sequence[str]) -> None:
    """Delete messages that were acted on from the drone's inbox in Redis; call it after the commit."""
    if message_ids:
        with core.broker.reaching():
            core.broker.redis.hdel(names.inbox_key(drone_id), *message_ids)


def _send(core: Core, rows: Sequence[InboxMessage]) -> int:
    by_drone: defaultdict[str, list[InboxMessage]] = defaultdict(list)
    for row in rows:
        by_drone[row.drone_id].append(row)
    with core.database.read() as db:
        drones = db.scalars(select(Drone).where(Drone.id.in_(by_drone))).all()
        sender = core.vault.box_keys(db).current_private_key()
    for drone in drones:
        if drone.removed_at is None:
            _put(core, drone, by_drone[drone.id], sender)
    # Also what cannot be sealed: it would be tried in each round.
    _mark_sent(core, rows, gone=[drone.id for drone in drones if drone.removed_at is not None])
    return len(rows)


def _put(core: Core, drone: Drone, rows: Sequence[InboxMessage], sender: bytes) -> None:
    sealed = each_alone("inbox", rows, lambda row: (row, _sealed(drone, row, sender)))
    with core.broker.reaching(), core.broker.redis.pipeline(transaction=False) as pipe:
        for row, envelope in sealed:
            # The hash first: a drone that receives the message and reads its inbox finds it there.
            pipe.hset(names.inbox_key(drone.id), row.id, envelope)
            pipe.publish(names.control_channel(drone.id), envelope)
        pipe.execute()


def _sealed(drone: Drone, row: InboxMessage, sender: bytes) -> str:
    """Issued when it was written, however often it is sent: a drone acts in the order of these times."""
    message = ControlMessage.model_validate({"id": row.id, "body": row.body})
    binding = Binding(direction="control", drone=drone.id, run=row.run_id or "")
    key = base64.b64decode(drone.public_key)
    return seal(message.model_dump_json(), binding, sender=sender, recipient=key, issued_at=row.created_at)


def _mark_sent(core: Core, rows: Sequence[InboxMessage], *, gone: Sequence[str]) -> None:
    now = core.clock.now()
    with core.database.write() as db:
        these = InboxMessage.id.in_([row.id for row in rows])
        db.execute(update(InboxMessage).where(these).values(sent_at=now))
        # A removed drone can no longer act on its messages.
        db.execute(update(InboxMessage).where(these, InboxMessage.drone_id.in_(gone)).values(done_at=now))
