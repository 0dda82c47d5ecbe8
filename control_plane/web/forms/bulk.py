"""One action for several things that were selected in a list: `POST /actions/<operation>/each`."""

from __future__ import annotations

from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from control_plane.contract.declarations.operation import Operation
from control_plane.core import Caller, Core
from control_plane.operations.gateway import OperationCall, perform
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.destinations import local_page
from control_plane.web.forms.requests import form_of, operation_named
from shared.errors import Conflict, Invalid, Refused

router = APIRouter(prefix="/actions", include_in_schema=False)
MOST = 200


@router.post("/{name}/each")
async def act_on_each(
    request: Request, core: CoreDep, caller: CallerDep, name: str, next: Annotated[str, Query(max_length=1000)] = "/"
) -> Response:
    """Do it with each selected thing. Raises Conflict with the reason of each that was refused; the others are done."""
    operation = operation_named(name)
    form = await form_of(request, caller, MOST + 10)
    field = _field(operation)
    selected = list(dict.fromkeys(str(value) for key, value in form.multi_items() if key == field))
    await to_thread.run_sync(_act, core, caller, operation, selected)
    return RedirectResponse(local_page(next), 303)


def _field(operation: Operation) -> str:
    if len(operation.names) != 1:
        raise Invalid(f"{operation.name} does not take a selection", code="E-ACTION-EACH", next="use its own form")
    return next(iter(operation.names)).removesuffix("_id")


def _act(core: Core, caller: Caller, operation: Operation, selected: list[str]) -> None:
    refused = []
    for each in selected:
        try:
            perform(core, caller, OperationCall(operation, {next(iter(operation.names)): each}))
        except Refused as error:
            refused.append(error.what)
    if refused:
        raise Conflict(
            f"done for {len(selected) - len(refused)} of {len(selected)}",
            code="E-ACTION-PARTLY",
            why="; ".join(refused),
            next="reload the list",
        )
