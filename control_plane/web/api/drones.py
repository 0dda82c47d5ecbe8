"""What drones request: to join with a join token, and under their own token to leave, and what their runs need."""

from __future__ import annotations

import tempfile
from typing import Annotated, Any, BinaryIO

from anyio import to_thread
from fastapi import Depends, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import StreamingResponse

from control_plane.operations.drones import registration, rotation
from control_plane.operations.runs import allowance, blobs, model_permits, push_grants
from control_plane.web.access import CoreDep, DroneDep, api_router
from control_plane.web.openapi import errors
from control_plane.web.throttle import throttled
from shared.blobs import MAX_BYTES
from shared.budgets import Allowance, AllowanceRequest
from shared.errors import TooLarge
from shared.races import PushGrantRequest
from shared.rates import ModelPermit, PermitRequest
from shared.registration import NewKeyAnswer, NewKeyRequest, RegistrationAnswer, RegistrationRequest

open_router = api_router("registration", "/registrations", is_open=True)
registrations_router = api_router("registration", "/registrations")


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


@registrations_router.get("/self", summary="Check whether the drone is still registered", responses=errors(401, 403))
def registered(drone: DroneDep) -> dict[str, str]:
    """Its id and name. A removed drone gets a 401, which distinguishes removal from a broker that lost its user."""
    return {"id": drone.drone_id, "name": drone.name}


@registrations_router.post(
    "/self/keys", status_code=201, summary="Get credentials for the drone's next key", responses=errors(401, 403, 409)
)
def renew_keys(core: CoreDep, drone: DroneDep, request: NewKeyRequest) -> NewKeyAnswer:
    """The old credentials are valid until the drone uses these. Only for a drone that was asked to replace its keys."""
    return rotation.issue_next_keys(core, drone, request)


@registrations_router.delete(
    "/self", status_code=204, summary="Unregister the drone; its access ends", responses=errors(401, 403)
)
def unregister(core: CoreDep, drone: DroneDep) -> None:
    registration.unregister(core, drone)


# --- what a run requests: blobs in and out, permission to push, and money -------------------------

runs_router = api_router("runs", "/runs")

RunId = Annotated[str, PathParameter(max_length=64)]
Digest = Annotated[str, PathParameter(pattern="^[0-9a-f]{64}$", description="SHA-256 of the content, in hexadecimal.")]
BINARY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@runs_router.put(
    "/{run_id}/blobs/{sha256}",
    status_code=204,
    summary="Store a patch, bundle, log or checkpoint",
    responses=errors(401, 403, 404, 409, 413),
    openapi_extra={"requestBody": {"required": True, "content": BINARY}},
)
async def put_blob(  # noqa: PLR0913, PLR0917 - one per part of the request
    core: CoreDep,
    drone: DroneDep,
    run_id: RunId,
    sha256: Digest,
    request: Request,
    kind: Annotated[blobs.BlobKind, Query(description="`checkpoint`: stored sealed, at most 64 MB.")] = "",
) -> Response:
    """At most 512 MB. Storing the same content again changes nothing; content not matching its name is refused."""
    _refuse_large(int(request.headers.get("content-length") or 0))
    # Not spooled in /tmp, which may be in memory: a blob may have half a gigabyte.
    directory = await to_thread.run_sync(lambda: core.blobs.spool)
    with tempfile.TemporaryFile(dir=directory) as spool:
        await _spool(request, spool)
        await to_thread.run_sync(blobs.put_blob, core, drone, run_id, sha256, spool, kind)
    return Response(status_code=204)


@runs_router.get(
    "/{run_id}/blobs/{sha256}",
    summary="Fetch a blob for the run",
    response_class=StreamingResponse,
    responses={200: {"content": BINARY}, **errors(401, 403, 404)},
)
def get_blob(core: CoreDep, drone: DroneDep, run_id: RunId, sha256: Digest) -> Response:
    found = blobs.get_blob(core, drone, run_id, sha256)
    return StreamingResponse(
        found.chunks, media_type="application/octet-stream", headers={"Content-Length": str(found.size)}
    )


@runs_router.post(
    "/{run_id}/push-grant", summary="Request permission to push", responses=errors(401, 403, 404, 409, 412)
)
def grant_push(
    core: CoreDep, drone: DroneDep, run_id: RunId, request: PushGrantRequest | None = None
) -> dict[str, Any]:
    """Granted for 60 s, and only to the current run of the order; a late run gets a 409.

    An order of a race that has not won it gets a 412.
    """
    return push_grants.grant_push(core, drone, run_id, request)


@runs_router.post(
    "/{run_id}/allowance", summary="Request money for model calls", responses=errors(401, 403, 404, 409, 422)
)
def allow(core: CoreDep, drone: DroneDep, run_id: RunId, request: AllowanceRequest) -> Allowance:
    """Amounts are totals since the run's beginning; a repeated request changes nothing."""
    return allowance.allow(core, drone, run_id, request)


@runs_router.post(
    "/{run_id}/model-permit",
    summary="Request permission to call the model",
    responses=errors(401, 403, 404, 422, 503),
)
def permit_call(core: CoreDep, drone: DroneDep, run_id: RunId, request: PermitRequest) -> ModelPermit:
    """Granted at a time, or refused with the time after which to ask again; reports of earlier calls come with it."""
    return model_permits.permit_call(core, drone, run_id, request)


async def _spool(request: Request, spool: BinaryIO) -> None:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        _refuse_large(size)
        await to_thread.run_sync(spool.write, chunk)
    spool.seek(0)


def _refuse_large(size: int) -> None:
    if size > MAX_BYTES:
        raise TooLarge(f"the blob is larger than {MAX_BYTES:,} bytes", code="E-BLOB-SIZE")
