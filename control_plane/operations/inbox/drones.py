"""Drones in the inbox: full disks, lost contact, a used up quota, and what orders lacked there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations.inbox import InboxItem
from control_plane.core.lookups.drones import serving
from control_plane.db.drones import Drone
from control_plane.db.runs import Run
from control_plane.drones.condition import Load, why_not_starting
from control_plane.operations.access.roles import may
from control_plane.operations.inbox.scope import InboxView
from control_plane.operations.row_documents import open_network_text
from shared.reason_text import state_text

UNSUITABLE_FOR = timedelta(days=1)
"""How long a drone is shown on which an order failed for lack of something that other drones may have."""
_NEED_CARE = frozenset({"disk_full", "over_quota"})
_AWAY = frozenset({"removed", "keys_revoked", "never_started", "offline"})


@dataclass(frozen=True)
class DroneCare:
    """What a drone needs."""

    text: str
    """One sentence."""
    since: datetime


def count_drones(db: Db, inbox: InboxView) -> dict[str, int]:
    """The number of drones that need care."""
    return {"drone": len(_needing_care(db, inbox))}


def drone_items(db: Db, inbox: InboxView) -> Iterator[InboxItem]:
    """The drones that need care, newest problem first."""
    found = _needing_care(db, inbox)
    for drone, care, organization_id in sorted(found, key=lambda each: each[1].since, reverse=True):
        yield InboxItem(
            id=f"drone:{drone.id}",
            kind="drone",
            title=drone.name,
            text=care.text,
            choices=[],
            default=None,
            deadline=None,
            since=care.since,
            organization=inbox.organizations[organization_id],
            project=None,
            order=None,
            session=None,
            task=None,
            drone=drone.name,
            user="",
            waiting_for=None,
            may_answer=may(inbox.caller, "operator"),
            next=inbox.command(f"fleet drone show {drone.name}", organization_id),
        )


def _needing_care(db: Db, inbox: InboxView) -> list[tuple[Drone, DroneCare, str]]:
    """Each drone once, with its problem and the organization of the inbox that it works for."""
    served: dict[str, tuple[Drone, str]] = {}
    for organization_id in inbox.organizations:
        for drone in serving(db, organization_id):
            served.setdefault(drone.id, (drone, organization_id))
    if inbox.user_id is not None:
        served = {found: each for found, each in served.items() if each[0].user_id == inbox.user_id}
    lacking = _lacking(db, inbox) if served else {}
    cares = ((drone, _care_for(inbox, drone, lacking), owner) for drone, owner in served.values())
    return [(drone, care, owner) for drone, care, owner in cares if care is not None]


def _care_for(inbox: InboxView, drone: Drone, lacking: Mapping[str, DroneCare]) -> DroneCare | None:
    # Whether its slots are in use does not matter here.
    state = why_not_starting(drone, Load(), inbox.now)
    broken = state is not None and state.code == "withheld" and (drone.beat or {}).get("policy_broken")
    if state is not None and (broken or state.code in _NEED_CARE or _is_lost(inbox, drone, state.code)):
        since = state.since or drone.over_quota_at or drone.last_seen_at or drone.registered_at
        return DroneCare(f"the drone {state_text(state)}", since)
    open_network = open_network_text(drone) if state is None or state.code not in _AWAY else ""
    return DroneCare(open_network, drone.registered_at) if open_network else lacking.get(drone.id)


def _is_lost(inbox: InboxView, drone: Drone, code: str) -> bool:
    """Its reports ended although it was not stopped."""
    silent = code == "offline" and drone.stopped_at is None
    return silent and drone.last_seen_at is not None and drone.last_seen_at > inbox.oldest


def _lacking(db: Db, inbox: InboxView) -> dict[str, DroneCare]:
    """What orders of these organizations lacked lately, by drone: the newest of it."""
    runs = select(Run.drone_id, Run.reason, Run.ended_at).where(
        Run.unsuitable.is_(True),
        Run.organization_id.in_(inbox.organizations),
        Run.ended_at > inbox.now - UNSUITABLE_FOR,
    )
    found = db.execute(runs.order_by(Run.ended_at))
    return {
        drone_id: DroneCare(f"the drone could not run an order: {why}", ended)
        for drone_id, why, ended in found
        if ended
    }
