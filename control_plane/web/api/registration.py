"""Drones that join and leave on their own."""

from __future__ import annotations

from fastapi import Depends

from control_plane.operations.drones import registration, rotation
from control_plane.web.access import CoreDep, DroneDep, api_router
from control_plane.web.openapi import errors
from control_plane.web.throttle import throttled
from shared.registration import NewKeyAnswer, NewKeyRequest, RegistrationAnswer, RegistrationRequest

open_router = api_router("registration", "/registrations", is_open=True)
router = api_router("registration", "/registrations")


@open_router.post(
    "",
    status_code=201,
    summary="Register a drone with a join token",
    dependencies=[Depends(throttled("registration"))],
    responses=errors(401, 409, 412, 429),
)
def register(core: CoreDep, request: RegistrationRequest) -> RegistrationAnswer:
    """Returns the credentials, sealed to the drone's key. The same key and name again return the same drone."""
    return registration.register(core, request)


@router.get("/self", summary="Check whether the drone is still registered", responses=errors(401, 403))
def registered(drone: DroneDep) -> dict[str, str]:
    """Its id and name. A removed drone gets a 401, which distinguishes removal from a broker that lost its user."""
    return {"id": drone.drone_id, "name": drone.name}


@router.post(
    "/self/keys", status_code=201, summary="Get credentials for the drone's next key", responses=errors(401, 403, 409)
)
def renew_keys(core: CoreDep, drone: DroneDep, request: NewKeyRequest) -> NewKeyAnswer:
    """The old credentials are valid until the drone uses these. Only for a drone that was asked to replace its keys."""
    return rotation.issue_next_keys(core, drone, request)


@router.delete("/self", status_code=204, summary="Unregister the drone; its access ends", responses=errors(401, 403))
def unregister(core: CoreDep, drone: DroneDep) -> None:
    registration.unregister(core, drone)
