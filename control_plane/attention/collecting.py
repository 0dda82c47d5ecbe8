"""Turns notices into messages: the first at once, further ones within some minutes collected into one.

Notices wait while a page is in front of their user; what has been answered by then is never sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from control_plane.attention.notices import Told, tell
from control_plane.attention.presence import is_present
from control_plane.attention.recipients import channels_of, recipient, who_wants
from control_plane.attention.still_waiting import is_over, needs_care, only_reports
from control_plane.core import Core
from control_plane.core.rows import each_alone
from control_plane.db.attention import AttentionChoices, AttentionMessage, AttentionNotice
from control_plane.db.drones import Drone
from shared.names import new_id

COLLECT_FOR = timedelta(minutes=5)
"""How long after a message further notices are collected, so that a flood becomes one digest."""


def collect(core: Core) -> None:
    """Write the messages that are due. The supervisor calls it every second or so."""

    def collect_for(whose: tuple[str, str]) -> None:
        core.database.transact(partial(_collect, core=core, whose=whose, present=is_present(core, *whose)))

    each_alone("collecting", _waiting_users(core), collect_for)


def waiting_users() -> Select[str, str]:
    """The organization and id of each user with notices that are in no message yet."""
    return (
        select(AttentionNotice.organization_id, AttentionNotice.user_id)
        .where(AttentionNotice.settled_at.is_(None))
        .distinct()
    )


def _waiting_users(core: Core) -> list[tuple[str, str]]:
    with core.database.read() as db:
        found = db.execute(waiting_users().order_by(AttentionNotice.organization_id, AttentionNotice.user_id))
        return [(organization_id, user_id) for organization_id, user_id in found]


def _collect(db: Session, core: Core, whose: tuple[str, str], *, present: bool) -> None:
    now = core.clock.now()
    # The lock makes a second supervisor wait, and then find the notices settled.
    choices = db.get(AttentionChoices, whose, with_for_update=True, populate_existing=True)
    waiting = [each for each in _pending(db, whose) if not _settled_early(db, core, each, choices, present=present)]
    if choices is None or present or not waiting:
        return
    # A message from the future was sent before the clock was set back.
    if choices.last_message_at is not None and timedelta() <= now - choices.last_message_at < COLLECT_FOR:
        return
    _write_messages(db, core, choices, waiting)
    choices.last_message_at = now


def _pending(db: Session, whose: tuple[str, str]) -> Sequence[AttentionNotice]:
    own = AttentionNotice.organization_id == whose[0], AttentionNotice.user_id == whose[1]
    pending = select(AttentionNotice).where(*own, AttentionNotice.settled_at.is_(None))
    return db.scalars(pending.order_by(AttentionNotice.number)).all()


def _settled_early(
    db: Session, core: Core, notice: AttentionNotice, choices: AttentionChoices | None, *, present: bool
) -> bool:
    """Settle a notice that need not be sent: it is over, its user saw it or has left, or no channel is left."""
    unwanted = choices is None or recipient(db, notice.organization_id, notice.user_id) is None
    unneeded = unwanted or (present and only_reports(notice)) or is_over(db, core, notice)
    if unneeded or (choices is not None and not channels_of(db, choices)):
        notice.settled_at = core.clock.now()
        return True
    return False


def _write_messages(db: Session, core: Core, choices: AttentionChoices, notices: Sequence[AttentionNotice]) -> None:
    batch = new_id()
    for notice in notices:
        notice.batch, notice.settled_at = batch, core.clock.now()
    add_messages(db, core, choices, batch)


def add_messages(db: Session, core: Core, choices: AttentionChoices, batch: str) -> int:
    """One message with these notices for each channel; returns their number."""
    now, channels = core.clock.now(), channels_of(db, choices)
    for channel, subscription_id in channels:
        db.add(
            AttentionMessage(
                id=f"msg_{new_id()}{new_id()}",
                organization_id=choices.organization_id,
                user_id=choices.user_id,
                batch=batch,
                channel=channel,
                subscription_id=subscription_id,
                attempts=0,
                error="",
                created_at=now,
                next_at=now,
            )
        )
    return len(channels)


def notice_drones(core: Core) -> None:
    """Write notices about drones that need their owner. The supervisor calls it every half a minute."""
    with core.database.read() as db:
        if db.scalar(select(AttentionChoices.user_id).limit(1)) is None:
            return
        alive = db.scalars(select(Drone).where(Drone.removed_at.is_(None))).all()
        found = each_alone("silent drones", alive, lambda drone: (drone, needs_care(core, drone)))

    def notice(needing: tuple[Drone, str]) -> None:
        core.database.transact(partial(_notice_drone, core=core, drone=needing[0], why=needing[1]))

    each_alone("silent drones", [(drone, why) for drone, why in found if why], notice)


def _notice_drone(db: Session, core: Core, drone: Drone, why: str) -> None:
    since = drone.keys_revoked_at or drone.over_quota_at or drone.last_seen_at
    told = Told(
        drone.organization_id,
        "drones",
        subject=f"drone:{drone.id}:{since.timestamp() if since else 0:.0f}",
        title=f"Drone {drone.name} needs care",
        text=why,
        page="/fleet",
        drone_id=drone.id,
    )
    tell(db, core, told, who_wants(db, drone.organization_id, "drones", drone.user_id))
