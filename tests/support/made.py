"""Prerequisites of tests: a provider, a project, a drone, an order, a run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.documents.orders import OrderDocument
from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.operations import projects, providers
from control_plane.operations.orders import reading
from shared.names import new_id


def make_project(core: Core, caller: Caller, slug: str = "web", **fields: Any) -> None:
    """Add a project, and a provider `local` if there is no provider."""
    if not providers.list_(core, caller):
        providers.add(core, caller, ProviderRequest(name="local", model="openai/scripted"))
    projects.add(core, caller, ProjectRequest(slug=slug, git_url="https://git.example/web.git", **fields))


def make_drone(core: Core, caller: Caller, name: str = "anna", **fields: Any) -> AuthenticatedDrone:
    """A drone with a current beat, written directly instead of registered."""
    now = core.clock.now()
    values = {
        "id": new_id(),
        "organization_id": caller.organization_id,
        "name": name,
        "machine_id": f"machine of {name}",
        "public_key": "A" * 43 + "=",
        "labels": {},
        "fixed_labels": {},
        "concurrency": 1,
        "token_hash": new_id(),
        "broker_password_hash": new_id(),
        "registered_at": now,
        "last_seen_at": now,
    }
    drone = Drone(**{**values, **fields})
    with core.database.write() as db:
        db.add(drone)
    return AuthenticatedDrone(drone.id, drone.organization_id, drone.name)


def submit(core: Core, caller: Caller, prompt: str = "mend it", key: str | None = None, **fields: Any) -> OrderDocument:
    """An order on project `web`."""
    return reading.submit(core, caller, SubmitRequest(**{"prompt": prompt, "project": "web", **fields}), key)


def run_of(core: Core, order_id: str) -> str:
    """The id of the order's current dispatch, which is the run's."""
    with core.database.read() as db:
        run_id = db.get_one(Order, order_id).run_id
    assert run_id is not None
    return run_id


def start_run(core: Core, order_id: str, **fields: Any) -> str:
    """Start the order's current dispatch as a run; return its id."""
    with core.database.write() as db:
        return start_run_within(db, core, order_id, **fields)


def start_run_within(db: Session, core: Core, order_id: str, **fields: Any) -> str:
    """As `start_run`, in the caller's transaction."""
    order = db.get_one(Order, order_id, with_for_update=True)
    dispatch = db.get_one(Dispatch, order.run_id)
    dispatch.claimed_at = core.clock.now()
    order.status = "running"
    values = {"status": "running", "attempt": 1, "started_at": core.clock.now()}
    run = Run(
        id=dispatch.id,
        organization_id=order.organization_id,
        order_id=order_id,
        drone_id=dispatch.drone_id,
        generation=dispatch.generation,
        **{**values, **fields},
    )
    db.add(run)
    db.flush()
    return run.id


def later(core: Core, **duration: float) -> None:
    """Advance the test's clock."""
    core.clock.sleep(timedelta(**duration).total_seconds())
