"""Providers: a model's endpoint and API key. The key is either sealed here, or never leaves the drone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.contract.declarations import providers as declared
from control_plane.contract.declarations.checks import ProviderCheckDocument
from control_plane.contract.declarations.providers import ProviderDocument, ProviderEdit, ProviderRequest
from control_plane.contract.validation.checks import check_json, check_name, check_text, check_variable, shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.providers import find_provider, living_providers
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.teams import Agent
from control_plane.operations import checks
from control_plane.operations.checks import CheckOrders, CheckReader
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of
from shared.errors import Conflict, Invalid
from shared.names import new_id
from shared.states import ENDED
from shared.work_order import GIVES_WAY, OWN_PARAMS

MAX_PARAMS = 64_000


@performs(declared.ADD)
def add(core: Core, caller: Caller, request: ProviderRequest) -> ProviderDocument:
    """Create a provider. Raises Conflict for a name that is taken, Invalid for an invalid value."""
    row = Provider(
        id=new_id(),
        organization_id=caller.organization_id,
        **columns_of(request),
        sealed_key=None,
        key_variable=None,
        created_at=core.clock.now(),
        removed_at=None,
    )
    _set_key(core, row, request.api_key, request.key_variable, no_key=request.no_key)
    try:
        with core.database.write() as db:
            _check_others(db, row)
            db.add(row)
            db.flush()
            orders = checks.added(db, core, caller, row, check=request.check)
            document = _document(db, row)
    except IntegrityError as error:
        raise Conflict(
            f"provider {shown(row.name)} already exists",
            code="E-PROVIDER-NAME",
            next=f"fleet provider edit {row.name}",
        ) from error
    return checks.send(core, caller, (document, orders))


@performs(declared.LIST)
def list_(core: Core, caller: Caller) -> list[ProviderDocument]:
    """All providers of the organization by name."""
    with core.database.read() as db:
        rows = db.scalars(living_providers(caller.organization_id).order_by(Provider.name)).all()
        reader = CheckReader.of(db, rows)
        return [_shown(row, reader) for row in rows]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, name: str) -> ProviderDocument:
    """One provider. Raises NotFound with similar names."""
    with core.database.read() as db:
        return _document(db, find_provider(db, caller.organization_id, name))


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, name: str, changes: ProviderEdit) -> ProviderDocument:
    """Change the fields that are set. Orders that are sent from then on, such as queued ones, have all that is new.

    What decides whether it works is checked again.
    """

    def work(db: Session) -> tuple[ProviderDocument, CheckOrders]:
        row = find_provider(db, caller.organization_id, name)
        before = _tested(row)
        _edit_fields(row, changes)
        if changes.fallbacks is not None or changes.rotation is not None:
            row.fallbacks = row.fallbacks if changes.fallbacks is None else changes.fallbacks
            row.rotation = changes.rotation or row.rotation
            _check_others(db, row)
        if changes.no_key or changes.api_key is not None or changes.key_variable is not None:
            _set_key(core, row, changes.api_key, changes.key_variable, no_key=changes.no_key)
        same = _tested(row) == before
        orders = CheckOrders() if same else checks.changed(db, core, caller, row, check=changes.check)
        return _document(db, row), orders

    return checks.send(core, caller, core.database.transact(work))


@performs(declared.TEST)
def try_out(core: Core, caller: Caller, name: str) -> ProviderDocument:
    """Let a drone try the provider now; `check` shows the progress. No effect while it is being tried."""

    def work(db: Session) -> tuple[ProviderDocument, CheckOrders]:
        row = find_provider(db, caller.organization_id, name)
        orders = checks.asked(db, core, caller, row)
        return _document(db, row), orders

    return checks.send(core, caller, core.database.transact(work))


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, name: str) -> ProviderDocument:
    """Remove a provider. Raises Conflict while a project, a provider or an unfinished order needs it."""
    with core.database.write() as db:
        row = find_provider(db, caller.organization_id, name)
        _refuse_needed(db, row)
        row.removed_at = core.clock.now()
        row.sealed_key = None
        document, orders = _document(db, row), checks.removed(row)
    return checks.send(core, caller, (document, orders))


def columns_of(request: ProviderRequest) -> dict[str, Any]:
    """What the request sets, besides the key. Raises Invalid."""
    return {
        "name": check_name("provider", request.name),
        "model": check_model(request.model),
        "api_base": _check_api_base(request.api_base),
        "context_window": request.context_window,
        "protocol": request.protocol,
        "thinking": request.thinking,
        "params": _check_params(request.params),
        "fallbacks": request.fallbacks,
        "rotation": request.rotation,
        "rpm": request.rpm,
        "tpm": request.tpm,
    }


def _edit_fields(row: Provider, changes: ProviderEdit) -> None:
    if changes.model is not None:
        row.model = check_model(changes.model)
    if "api_base" in changes.model_fields_set:
        row.api_base = _check_api_base(changes.api_base)
    for field in ("context_window", "protocol", "thinking", "rpm", "tpm"):
        if (value := getattr(changes, field)) is not None:
            setattr(row, field, value)
    if changes.params is not None:
        row.params = _check_params(changes.params)


def check_model(model: str) -> str:
    """Validate a model name and return it unchanged. Raises Invalid."""
    check_text("the model", model, limit=255)
    if any(c.isspace() for c in model):
        raise Invalid(f"invalid model name {shown(model)}", code="E-MODEL", next="for example openai/gpt-5")
    return model


def _check_api_base(url: str | None) -> str | None:
    if url is None:
        return None
    check_text("the API base", url, limit=2000)
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in {"http", "https"} or not host or any(c.isspace() for c in url):
        raise Invalid("the API base must be an http or https URL", code="E-API-BASE", next="https://host/v1")
    if parts.username or parts.password or parts.query:
        raise Invalid(
            "the API base must not contain a user, a password or a query: it is shown",
            code="E-API-BASE",
            next="remove them and set the key with --api-key-env VAR",
        )
    return url


_NEXT = "use the option for it; credentials of AWS stay in the environment of the drone: --no-key"


def _check_params(params: dict[str, Any]) -> dict[str, Any]:
    if own := sorted(OWN_PARAMS & params.keys()):
        raise Invalid(f"{', '.join(own)} cannot be given as a parameter", code="E-PARAM", next=_NEXT)
    check_json("the parameters", params, limit=MAX_PARAMS)
    return params


def _check_others(db: Session, row: Provider) -> None:
    if row.name in row.fallbacks:
        raise Invalid(f"provider {row.name} cannot fall back on itself", code="E-FALLBACK")
    if len(set(row.fallbacks)) != len(row.fallbacks) or len(row.fallbacks) > 10:
        raise Invalid("a provider can have up to 10 fallbacks, each listed once", code="E-FALLBACK")
    for name in row.fallbacks:
        find_provider(db, row.organization_id, name)
    if row.rotation != "off" and not row.fallbacks:
        raise Invalid(
            f"provider {row.name} has no fallback to take turns with",
            code="E-ROTATION",
            next=f"fleet provider edit {row.name} --fallback NAME    or: --rotation off",
        )


def _set_key(core: Core, row: Provider, key: str | None, variable: str | None, *, no_key: bool = False) -> None:
    """Set the provider's key, or none. The previous key is discarded."""
    if sum((key is not None, variable is not None, no_key)) > 1:
        raise Invalid("give only one of: a sealed key, a variable on the drone, or no key", code="E-PROVIDER-KEY")
    if key is not None:
        key = check_text("the API key", key, limit=10_000).strip()
    row.sealed_key = core.vault.seal_at_rest(key, "providers.sealed_key") if key is not None else None
    row.key_variable = check_variable(variable) if variable is not None else None


def _tested(row: Provider) -> tuple[Any, ...]:
    """What decides whether it works. A sealed key that is set again differs."""
    key = row.sealed_key, row.key_variable
    return row.model, row.api_base, row.context_window, row.protocol, dict(row.params), key


def _document(db: Session, row: Provider) -> ProviderDocument:
    return _shown(row, CheckReader.of(db, [row]))


def _shown(row: Provider, reader: CheckReader) -> ProviderDocument:
    where = f"on drone: {row.key_variable}" if row.key_variable else "none"
    check = reader.document(ProviderCheckDocument, row)
    return document_of(ProviderDocument, row, key=where if row.sealed_key is None else "sealed", check=check)


def _refuse_needed(db: Session, row: Provider) -> None:
    needed: Sequence[str] = [
        *(
            f"project {slug}"
            for slug in db.scalars(
                select(Project.slug).where(Project.provider_id == row.id, Project.removed_at.is_(None))
            )
        ),
        *_reviewed(db, row),
        *(
            f"provider {each.name}"
            for each in db.scalars(living_providers(row.organization_id))
            if row.name in each.fallbacks
        ),
        *(
            f"order {order_id}"
            for order_id in db.scalars(
                select(Order.id)
                .where(
                    or_(Order.provider_id == row.id, Order.reviewer_id == row.id),
                    Order.status.not_in(ENDED),
                    Order.purpose.not_in(GIVES_WAY),
                )
                .limit(3)
            )
        ),
    ]
    if needed:
        raise Conflict(f"provider {row.name} is needed by {', '.join(needed[:5])}", code="E-PROVIDER-NEEDED")


def _reviewed(db: Session, row: Provider) -> Iterator[str]:
    """The settings that name it as the reviewer."""
    alive = Project.reviewer_id == row.id, Project.removed_at.is_(None)
    yield from (f"project {slug}" for slug in db.scalars(select(Project.slug).where(*alive)))
    hired = Agent.reviewer_id == row.id, Agent.removed_at.is_(None)
    yield from (f"agent {name}" for name in db.scalars(select(Agent.name).where(*hired)))
    whole = select(Organization.name).where(Organization.reviewer_id == row.id)
    yield from (f"organization {name}" for name in db.scalars(whole))
