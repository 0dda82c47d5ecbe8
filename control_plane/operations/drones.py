"""The drones as the board shows them; draining and removing them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from control_plane.core import Caller, Core
from control_plane.db.models import Dispatch, Drone, Order, Run
from control_plane.dispatching.loads import Load
from control_plane.documents import DroneDocument
from control_plane.operations.checking import unknown
from control_plane.operations.documents_of import drone_document
from control_plane.operations.roles import require
from shared import logs
from shared.control import Drain
from shared.errors import FleetFault
from shared.states import OrderStatus, RunStatus

if TYPE_CHECKING:
    from control_plane.flower.events import EndedRun

log = logs.get(__name__)

_NONE = Load()


def list_drones(core: Core, caller: Caller) -> list[DroneDocument]:
    """All living drones of the organization by name, in three queries whatever their number."""
    with core.database.read() as db:
        rows = db.scalars(_alive(caller.organization_id).order_by(Drone.name)).all()
        loads = _loads(db, caller.organization_id)
    now = core.clock.now()
    return [drone_document(drone, loads[drone.id], now) for drone in rows]


def show_drone(core: Core, caller: Caller, name: str) -> DroneDocument:
    """One drone. Raises NotFound with the names that are near."""
    with core.database.read() as db:
        drone = find_drone(db, caller.organization_id, name)
        return drone_document(drone, _loads(db, caller.organization_id)[drone.id], core.clock.now())


def set_draining(core: Core, caller: Caller, name: str, on: bool) -> DroneDocument:
    """Let the drone take no more orders, or take them again. What it runs goes on. For operators."""
    from control_plane.dispatching.inbox import tell

    require(caller, "operator")
    with core.database.write() as db:
        drone = find_drone(db, caller.organization_id, name)
        if drone.draining is not on or _says_otherwise(db, drone, on):
            drone.draining = on
            tell(db, core, drone.id, Drain(on=on), None)
        document = drone_document(drone, _loads(db, caller.organization_id)[drone.id], core.clock.now())
    core.broker.wake()
    return document


def _says_otherwise(db: Session, drone: Drone, on: bool) -> bool:
    """Whether the drone's own word differs, and nothing is under way that would change that."""
    from control_plane.dispatching.inbox import pending

    said = (drone.beat or {}).get("draining")
    return said is not None and said is not on and not pending(db, drone.id, None, "drain")


def remove_drone(core: Core, caller: Caller, name: str) -> DroneDocument:
    """Remove the drone: its credentials die, its orders go back to the queue, its history stays. For admins."""
    require(caller, "admin")
    with core.database.read() as db:
        drone = find_drone(db, caller.organization_id, name)
    remove(core, caller.organization_id, drone.id)
    with core.database.read() as db:
        return drone_document(db.get_one(Drone, drone.id), _NONE, core.clock.now())


def find_drone(db: Session, organization_id: str, name: str) -> Drone:
    """The living drone of this name. Raises NotFound with the names that are near."""
    drone = db.scalar(_alive(organization_id).where(Drone.name == name))
    if drone is None:
        raise unknown("drone", name, [each.name for each in db.scalars(_alive(organization_id))], "fleet drones")
    return drone


def remove(core: Core, organization_id: str, drone_id: str) -> None:
    """Remove a drone of the organization, in one transaction, then cut it off from the broker.

    A run that may be pushing just now is left to the supervisor, which takes it back when its grant is over.
    """
    from control_plane.dispatching.lost import announce

    with core.database.write() as db:
        drone = db.get_one(Drone, drone_id, with_for_update=True)
        if drone.organization_id != organization_id or drone.removed_at is not None:
            return
        drone.removed_at = core.clock.now()
        order_ids, ended = _take_back(db, core, drone)
    try:
        core.broker.remove_user(drone_id)
    except FleetFault as error:
        # Its bearer token is dead already, and the supervisor takes away the users of removed drones when the broker
        # is back. A removal that fails halfway and must be repeated would help nobody.
        log.warning("removed without the broker", drone=drone_id, why=error.what)
    announce(core, order_ids, ended)


def _take_back(db: Session, core: Core, drone: Drone) -> tuple[list[str], list[EndedRun]]:
    """End what the drone had in hand: its orders wait for another one. Returns those, and what Flower should hear."""
    from control_plane.dispatching.dispatch import requeue, taken_back_reason
    from control_plane.dispatching.lost import Loss, lose
    from control_plane.flower.events import EndedRun

    why = f"drone {drone.name} was removed"
    held = select(Dispatch, Order, Run.id).join(Order, Order.id == Dispatch.order_id)
    held = held.outerjoin(Run, Run.id == Dispatch.id)
    order_ids, ended = [], []
    for dispatch, order, run_id in db.execute(
        held.where(Dispatch.drone_id == drone.id, Dispatch.closed_at.is_(None))
    ).all():
        if run_id is None and order.run_id == dispatch.id and order.status == OrderStatus.ASSIGNED:
            # It had not begun, so it is no attempt that failed.
            requeue(db, core, order, taken_back_reason(drone, "was removed"))
            told: EndedRun | None = EndedRun(dispatch.id, drone.id, drone.host, "revoked", why)
        else:
            since = drone.last_seen_at or drone.registered_at
            told = lose(db, core, Loss(dispatch.id, drone.id, dispatch.generation, why, since))
        order_ids.append(order.id)
        ended += [told] if told else []
    return order_ids, ended


def _alive(organization_id: str) -> Select[Drone]:
    return select(Drone).where(Drone.organization_id == organization_id, Drone.removed_at.is_(None))


def _loads(db: Session, organization_id: str) -> defaultdict[str, Load]:
    """What each drone runs, by its own reports, and what waits in its queue."""
    running = select(Run.drone_id, func.count()).where(
        Run.organization_id == organization_id, Run.status == RunStatus.RUNNING
    )
    waiting = (
        select(Dispatch.drone_id, func.count())
        .outerjoin(Run, Run.id == Dispatch.id)
        .where(Dispatch.organization_id == organization_id, Dispatch.closed_at.is_(None), Run.id.is_(None))
    )
    runs = dict(db.execute(running.group_by(Run.drone_id)).all())
    waits = dict(db.execute(waiting.group_by(Dispatch.drone_id)).all())
    found: defaultdict[str, Load] = defaultdict(Load)
    found.update({drone: Load(runs.get(drone, 0), waits.get(drone, 0)) for drone in {*runs, *waits}})
    return found
