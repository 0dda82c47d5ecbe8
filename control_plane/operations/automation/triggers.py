"""Triggers: signed requests from a code host become tasks. For admins; the requests themselves come from outside."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.automation.code_host_events import CodeHostEvent, check_events, read_event, why_ignored
from control_plane.automation.incoming_signatures import check_hook_secret, is_signed, new_hook_secret
from control_plane.automation.task_creation import check_names, make_task
from control_plane.automation.task_templates import check_template
from control_plane.automation.task_texts import DEFAULT_EVENTS, task_of
from control_plane.contract.declarations import triggers as declared
from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.contract.declarations.triggers import HookAnswer, TriggerDocument, TriggerEdit, TriggerRequest
from control_plane.contract.validation.checks import check_name, shown, unknown
from control_plane.core import Caller, Core
from control_plane.db.automation import Trigger, TriggerDelivery
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of
from shared.errors import Conflict, FleetError, Unauthenticated
from shared.names import new_id


@performs(declared.ADD)
def create(core: Core, caller: Caller, request: TriggerRequest) -> TriggerDocument:
    """Create a trigger. Only this answer contains its secret.

    Raises Invalid for an invalid template or secret, Conflict for a name that is taken.
    """
    secret = new_hook_secret(request.kind) if request.secret is None else request.secret
    events = request.events if "events" in request.model_fields_set else DEFAULT_EVENTS[request.kind]
    row = Trigger(
        id=new_id(),
        organization_id=caller.organization_id,
        **columns_of(request, events),
        sealed_secret=core.vault.seal_at_rest(check_hook_secret(request.kind, secret), "triggers.sealed_secret"),
        enabled=True,
        last_error="",
        user=caller.user,
        created_at=core.clock.now(),
    )
    try:
        with core.database.write() as db:
            check_names(db, caller.organization_id, request.task)
            db.add(row)
    except IntegrityError as error:
        raise Conflict(
            f"trigger {shown(row.name)} already exists",
            code="E-TRIGGER-NAME",
            next=f"fleet trigger edit {row.name}",
        ) from error
    return _document(core, row, secret)


@performs(declared.LIST)
def list_(core: Core, caller: Caller) -> list[TriggerDocument]:
    """All triggers of the organization by name, without their secrets."""
    with core.database.read() as db:
        return [_document(core, row) for row in db.scalars(_alive(caller.organization_id).order_by(Trigger.name))]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, name: str) -> TriggerDocument:
    """One trigger, without its secret. Raises NotFound with similar names."""
    with core.database.read() as db:
        return _document(core, find_trigger(db, caller.organization_id, name))


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, name: str, changes: TriggerEdit) -> TriggerDocument:
    """Change the fields that are set; a new secret takes effect immediately."""

    def work(db: Session) -> TriggerDocument:
        row = find_trigger(db, caller.organization_id, name, lock=True)
        if changes.secret is not None:
            row.sealed_secret = core.vault.seal_at_rest(
                check_hook_secret(row.kind, changes.secret), "triggers.sealed_secret"
            )
        if changes.task is not None:
            check_names(db, caller.organization_id, changes.task)
            row.task = _checked(changes.task)
        row.events = check_events(changes.events) if changes.events is not None else row.events
        row.enabled = changes.enabled if changes.enabled is not None else row.enabled
        return _document(core, row)

    return core.database.transact(work)


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, name: str) -> TriggerDocument:
    """Remove a trigger: its URL answers as if it had never existed; the tasks that it created are kept."""

    def work(db: Session) -> TriggerDocument:
        row = find_trigger(db, caller.organization_id, name, lock=True)
        row.removed_at, row.enabled = core.clock.now(), False
        return _document(core, row)

    return core.database.transact(work)


def accept_delivery(core: Core, trigger_id: str, headers: Mapping[str, str], body: bytes) -> HookAnswer:
    """Handle a request to `/hooks/<id>` and return its outcome; names in `headers` are in lower case.

    A repeated delivery creates no second task, even if it arrives concurrently. Raises Unauthenticated, with the same
    message for a wrong signature and an unknown trigger; Invalid for a body that is not JSON; and the error of task
    creation if the task cannot be created. A delivery that failed this way may be sent again.
    """
    row = _signed(core, trigger_id, headers, body)
    event = read_event(row.kind, headers, body)
    if why := "this trigger is disabled" if not row.enabled else why_ignored(event, row.events):
        return HookAnswer(outcome="ignored", task=None, why=why)
    request, unfit = task_of(row.kind, event, row.task)
    taken = core.database.transact(lambda db: _accept(db, core, row.id, (event, request, unfit)))
    if isinstance(taken, FleetError):
        raise taken
    answer, order_id = taken
    if order_id is not None:
        core.broker.changed(order_id)
    return answer


def find_trigger(db: Session, organization_id: str, name: str, *, lock: bool = False) -> Trigger:
    """The trigger with this name; `lock` locks its row until the commit.

    Raises NotFound with similar names.
    """
    wanted = _alive(organization_id).where(Trigger.name == name)
    row = db.scalar(wanted.with_for_update() if lock else wanted)
    if row is None:
        known = [each.name for each in db.scalars(_alive(organization_id))]
        raise unknown("trigger", name, known, "fleet trigger ls")
    return row


def _alive(organization_id: str) -> Select[Trigger]:
    return select(Trigger).where(Trigger.organization_id == organization_id, Trigger.removed_at.is_(None))


def _signed(core: Core, trigger_id: str, headers: Mapping[str, str], body: bytes) -> Trigger:
    with core.database.read() as db:
        row = db.scalar(select(Trigger).where(Trigger.id == trigger_id, Trigger.removed_at.is_(None)))
    # For an unknown trigger, the same work is done with a random secret.
    secret = core.vault.open_at_rest(row.sealed_secret, "triggers.sealed_secret") if row else secrets.token_hex(32)
    if not is_signed(row.kind if row else "github", secret, headers, body) or row is None:
        raise Unauthenticated(
            "unknown trigger, or the request is not signed with its secret",
            code="E-HOOK-SIGNATURE",
            next="give the code host the secret that fleet trigger add printed, or set a new one: fleet trigger edit",
        )
    return row


def _accept(
    db: Session, core: Core, trigger_id: str, what: tuple[CodeHostEvent, TaskRequest, str]
) -> tuple[HookAnswer, str | None] | FleetError:
    """The answer and the started order; or the error that prevented the task, also recorded in the trigger's row."""
    event, request, unfit = what
    # The lock serializes the deliveries of a trigger: the second of two identical ones sees the first.
    row = db.get_one(Trigger, trigger_id, with_for_update=True, populate_existing=True)
    known = select(TriggerDelivery).where(
        TriggerDelivery.trigger_id == trigger_id, TriggerDelivery.delivery.in_(event.ids)
    )
    before = db.scalar(known.limit(1))
    if before is not None:
        why = f"this delivery was already accepted at {before.at:%Y-%m-%d %H:%M:%S} UTC"
        return HookAnswer(outcome="repeated", task=before.task_id, why=why), None
    try:
        task = make_task(db, core, row, request)
    except FleetError as error:
        row.last_error = f"no task created for {event.name}: {error.what}"
        return error
    row.last_at, row.last_task_id, row.last_error = core.clock.now(), task.id, unfit
    for each in event.ids:
        db.add(_delivery(row, event, each, task.id))
    return HookAnswer(
        outcome="task", task=task.id, why=f"created task {task.id} for {event.name or 'the event'}"
    ), task.order_id


def _delivery(row: Trigger, event: CodeHostEvent, delivery: str, task_id: str) -> TriggerDelivery:
    return TriggerDelivery(
        trigger_id=row.id,
        organization_id=row.organization_id,
        delivery=delivery,
        event=event.name,
        task_id=task_id,
        outcome="task",
        at=row.last_at,
    )


def columns_of(request: TriggerRequest, events: list[str]) -> dict[str, Any]:
    """What the request sets, besides the secret. Raises Invalid."""
    return {
        "name": check_name("trigger", request.name),
        "kind": request.kind,
        "events": check_events(events),
        "task": _checked(request.task),
    }


def _checked(request: TaskRequest) -> dict[str, Any]:
    if request.title:
        check_template("the title", request.title)
    if request.description:
        check_template("the description", request.description)
    return request.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def _document(core: Core, row: Trigger, secret: str | None = None) -> TriggerDocument:
    url = f"{core.settings.url}/hooks/{row.id}"
    return document_of(TriggerDocument, row, url=url, secret=secret, last_task=row.last_task_id)
