"""List, drain and remove drones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import Literal

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.contract.declarations import drones as declared
from control_plane.contract.declarations.drones import DroneDocument, DroneEdit
from control_plane.contract.validation.checks import check_name, shown
from control_plane.core import Caller, Core, EndedRun
from control_plane.core.lookups.drones import find_drone, serving
from control_plane.core.lookups.users import find_member, require_user
from control_plane.db.drones import Drone
from control_plane.db.installation import Organization
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.drones.condition import Load, status_of, worker_of
from control_plane.drones.inbox import notify_drone, pending
from control_plane.operations.access.roles import require
from control_plane.operations.drones.visibility import visibility_of
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import drone_document
from control_plane.orders.ending import requeue
from control_plane.orders.lost import Loss, announce, lose
from shared.control import Drain
from shared.errors import Conflict, FleetFault, Forbidden
from shared.reason_text import loss_text
from shared.reasons import DroneState, RunLoss, TakenBack
from shared.states import DroneStatus, OrderStatus, RunStatus
from shared.terminal import logs

log = logs.get(__name__)


_NONE = Load()


@performs(declared.LIST)
def list_drones(core: Core, caller: Caller, *, mine: bool = False) -> list[DroneDocument]:
    """All living drones that serve the organization, by name, in a constant number of queries.

    With `mine`, only the organization's own that belong to the caller's user. Raises Invalid for a token without one.
    """
    with core.database.read() as db:
        rows = serving(db, caller.organization_id)
        if mine:
            own = caller.organization_id, require_user(caller)
            rows = [drone for drone in rows if (drone.organization_id, drone.user_id) == own]
        return _documents(db, core, caller, sorted(rows, key=lambda drone: drone.name))


def status_and_slots(db: Session, core: Core, organization_id: str) -> list[tuple[DroneStatus, int]]:
    """Of each living drone that serves the organization, as its document has them, without the rest of it."""
    loads, now = _loads(db), core.clock.now()
    return [(status_of(each, loads[each.id], now), each.concurrency) for each in serving(db, organization_id)]


@performs(declared.SHOW)
def show_drone(core: Core, caller: Caller, name: str) -> DroneDocument:
    """One drone. Raises NotFound with similar names."""
    with core.database.read() as db:
        return _documents(db, core, caller, [find_drone(db, caller.organization_id, name)])[0]


@performs(declared.EDIT)
def edit_drone(core: Core, caller: Caller, name: str, changes: DroneEdit) -> DroneDocument:
    """Rename the drone, or give it to another member of the organization or to no one.

    The collector tells a drone its new name when its next heartbeat has the old one. Raises NotFound, Conflict if the
    name is taken.
    """
    new_name = changes.new_name
    try:
        with core.database.write() as db:
            drone = own_drone(db, caller, name)
            if "owner" in changes.model_fields_set:
                new = changes.owner
                drone.user_id = find_member(db, caller.organization_id, new)[0].id if new is not None else None
            if new_name is not None:
                drone.name = check_name("drone", new_name)
            db.flush()
            return _documents(db, core, caller, [drone])[0]
    except IntegrityError as error:
        raise Conflict(
            f"another drone is already named {shown(new_name or name)}",
            code="E-DRONE-NAME",
            next=f"fleet drone edit {name} --name OTHER-NAME",
        ) from error


@performs(declared.DRAIN)
def drain(core: Core, caller: Caller, name: str) -> DroneDocument:
    """Stop the drone from taking orders. Its current runs continue."""
    return _set_draining(core, caller, name, on=True)


@performs(declared.RESUME)
def resume(core: Core, caller: Caller, name: str) -> DroneDocument:
    """Let the drone take orders again."""
    return _set_draining(core, caller, name, on=False)


def _set_draining(core: Core, caller: Caller, name: str, *, on: bool) -> DroneDocument:
    with core.database.write() as db:
        drone = own_drone(db, caller, name)
        if drone.draining is not on or _says_otherwise(db, drone, on):
            drone.draining = on
            notify_drone(db, core, drone.id, Drain(on=on), None)
        document = _documents(db, core, caller, [drone])[0]
    core.broker.wake()
    return document


def _says_otherwise(db: Session, drone: Drone, on: bool) -> bool:
    """Whether the drone reports a different state and no pending message would change it."""
    said = (drone.beat or {}).get("draining")
    return said is not None and said is not on and not pending(db, drone.id, None, "drain")


@performs(declared.REMOVE)
def remove_drone(core: Core, caller: Caller, name: str) -> DroneDocument:
    """Remove the drone: its credentials are revoked, its orders requeued, its history kept.

    Raises Forbidden unless the caller is its owner or an admin.
    """
    with core.database.read() as db:
        drone = own_drone(db, caller, name)
        if caller.user_id is None or drone.user_id != caller.user_id:
            require(caller, "admin")
    remove(core, caller.organization_id, drone.id)
    with core.database.read() as db:
        return drone_document(db.get_one(Drone, drone.id), _NONE, core.clock.now(), visibility_of(db, caller))


def own_drone(db: Session, caller: Caller, name: str) -> Drone:
    """The drone, if it belongs to the organization. Raises NotFound, and Forbidden for a drone that only serves it."""
    drone = find_drone(db, caller.organization_id, name)
    if drone.organization_id == caller.organization_id:
        return drone
    home = db.get_one(Organization, drone.organization_id).name if caller.everywhere else ""
    raise Forbidden(
        f"drone {name} serves {caller.organization} but belongs to another organization",
        code="E-DRONE-HOME",
        why="only the owning organization can drain or remove it",
        next=f"repeat with: --org {home}" if home else "ask the fleet administrator",
    )


def remove(core: Core, organization_id: str, drone_id: str) -> None:
    """Remove a drone of the organization, in one transaction, then cut it off from the broker.

    A run that may be pushing right now is left to the supervisor, which takes it back when its grant has expired.
    """

    def work(db: Session) -> tuple[list[str], list[EndedRun]] | None:
        lock_orders(db, drone_id)
        drone = db.get_one(Drone, drone_id, with_for_update=True)
        if drone.organization_id != organization_id or drone.removed_at is not None:
            return None
        drone.removed_at = core.clock.now()
        return take_back(db, core, drone, "drone_removed")

    taken = core.database.transact(work)
    if taken is None:
        return
    try:
        core.broker.remove_user(drone_id)
    except FleetFault as error:
        # Its bearer token is already invalid, and the supervisor removes its user and keys when the broker is available
        # again. Failing halfway and requiring a second attempt would serve no purpose.
        log.warning("drone removed while the broker is unavailable", drone=drone_id, why=error.what)
    announce(core, *taken)


def remove_without_home(db: Session, core: Core, drone_ids: Collection[str]) -> None:
    """Remove drones whose homes are gone for good, with their keys, before anything runs; in the caller's transaction.

    Their orders are requeued. The supervisor removes their users and keys from the broker.
    """
    for drone in db.scalars(select(Drone).where(Drone.id.in_(drone_ids), Drone.removed_at.is_(None))).all():
        drone.removed_at = core.clock.now()
        take_back(db, core, drone, "drone_removed")


def lock_orders(db: Session, drone_id: str) -> None:
    """Lock the orders that the drone holds, until the commit.

    Call it before the drone's row is locked: collectors write to the order first, too.
    """
    held = select(Order.id).join(Dispatch, Dispatch.order_id == Order.id)
    held = held.where(Dispatch.drone_id == drone_id, Dispatch.closed_at.is_(None))
    db.scalars(held.order_by(Order.id).with_for_update(of=Order)).all()


def take_back(
    db: Session, core: Core, drone: Drone, code: Literal["drone_removed", "keys_revoked"]
) -> tuple[list[str], list[EndedRun]]:
    """End the drone's open runs and requeue their orders. Returns the order IDs, and the ended runs for Flower."""
    why = RunLoss(code=code, drone=drone.name)
    state: Literal["removed", "keys_revoked"] = "removed" if code == "drone_removed" else code
    removed = TakenBack(state=DroneState(drone=drone.name, code=state))
    # A statement of its own: one that waits for a lock sees the other tables as they were before.
    lock_orders(db, drone.id)
    held = select(Dispatch, Order, Run.id).join(Order, Order.id == Dispatch.order_id)
    held = held.outerjoin(Run, Run.id == Dispatch.id).execution_options(populate_existing=True)
    order_ids, ended = [], []
    for dispatch, order, run_id in db.execute(
        held.where(Dispatch.drone_id == drone.id, Dispatch.closed_at.is_(None))
    ).all():
        if run_id is None and order.run_id == dispatch.id and order.status == OrderStatus.ASSIGNED:
            # The run had not started, so it does not count as a failed attempt.
            requeue(db, core, order, removed)
            ended_run: EndedRun | None = EndedRun(dispatch.id, worker_of(drone), "revoked", loss_text(why))
        else:
            since = drone.last_seen_at or drone.registered_at
            ended_run = lose(db, core, Loss(dispatch.id, drone.id, dispatch.generation, why, since))
        order_ids.append(order.id)
        ended += [ended_run] if ended_run else []
    return order_ids, ended


def _documents(db: Session, core: Core, caller: Caller, drones: Iterable[Drone]) -> list[DroneDocument]:
    loads, visibility, now = _loads(db), visibility_of(db, caller), core.clock.now()
    return [drone_document(drone, loads[drone.id], now, visibility) for drone in drones]


def _loads(db: Session) -> defaultdict[str, Load]:
    """The number of runs per drone, by its own reports, and of orders in its queue; across all organizations.

    An order that the drone has taken out of its queue counts as running, although its run may still be starting.
    """
    # Without the first condition, which is in an index, all runs ever would be read.
    unended = Run.ended_at.is_(None), Run.status == RunStatus.RUNNING
    running = select(Run.drone_id, func.count()).where(*unended)
    dispatched = (
        select(Dispatch.drone_id, Dispatch.claimed_at.is_not(None), func.count())
        .outerjoin(Run, Run.id == Dispatch.id)
        .where(Dispatch.closed_at.is_(None), Run.id.is_(None))
    )
    taken: Counter[str] = Counter(dict(db.execute(running.group_by(Run.drone_id)).all()))
    waiting: Counter[str] = Counter()
    for drone, claimed, count in db.execute(dispatched.group_by(Dispatch.drone_id, Dispatch.claimed_at.is_not(None))):
        (taken if claimed else waiting)[drone] += count
    found: defaultdict[str, Load] = defaultdict(Load)
    found.update({drone: Load(taken[drone], waiting[drone]) for drone in {*taken, *waiting}})
    return found
