"""Projects: a git repository with setup and verify commands. A password in the URL is sealed and never shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, aliased

from control_plane.contract.declarations import projects as declared
from control_plane.contract.declarations.checks import ProjectCheckDocument
from control_plane.contract.declarations.projects import ProjectDocument, ProjectEdit, ProjectRequest
from control_plane.contract.validation.checks import check_commands, check_name, check_text, shown
from control_plane.contract.validation.git_urls import check_branch, parse_git_url
from control_plane.core import Caller, Core
from control_plane.core.lookups.projects import find_project
from control_plane.core.lookups.providers import find_provider
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.money.spending.budget_amounts import check_limit
from control_plane.money.spending.setting import BudgetTarget, Terms, daily_limits, remove_budgets, set_budget
from control_plane.operations import checks
from control_plane.operations.budgets import transacted
from control_plane.operations.checks import CheckOrders, CheckReader
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of
from control_plane.operations.run_settings import edit_run_settings
from control_plane.orders.reviewers import reviewer_id_of
from shared.errors import Conflict, Forbidden
from shared.names import new_id
from shared.states import ENDED
from shared.trailers import TRAILERS
from shared.work_order import GIVES_WAY

MAX_DESCRIPTION = 2_000


@performs(declared.ADD)
def add(core: Core, caller: Caller, request: ProjectRequest) -> ProjectDocument:
    """Create a project. Raises Conflict for a slug that is taken, Invalid for an invalid value."""
    row = Project(
        id=new_id(),
        organization_id=caller.organization_id,
        **columns_of(request),
        provider_id=None,
        reviewer_id=None,
        created_at=core.clock.now(),
        removed_at=None,
    )
    _set_url(core, caller, row, request.git_url)
    limit = check_limit(request.budget_usd_day) if request.budget_usd_day is not None else None
    try:
        with core.database.write() as db:
            if request.provider is not None:
                row.provider_id = find_provider(db, caller.organization_id, request.provider).id
            row.reviewer_id = reviewer_id_of(db, caller.organization_id, request.reviewer)
            db.add(row)
            db.flush()
            _set_budget(db, core, caller, row, limit)
            orders = checks.added(db, core, caller, row, check=request.check)
            document = _document(db, row)
    except IntegrityError as error:
        raise Conflict(
            f"project {shown(row.slug)} already exists",
            code="E-PROJECT-SLUG",
            next=f"fleet project edit {row.slug}",
        ) from error
    return checks.send(core, caller, (document, orders))


@performs(declared.LIST)
def list_(core: Core, caller: Caller) -> list[ProjectDocument]:
    """All projects of the organization by slug."""
    with core.database.read() as db:
        rows = db.execute(_with_providers(caller.organization_id).order_by(Project.slug)).all()
        budgets = daily_limits(db, [project.id for project, _, _ in rows])
        reader = CheckReader.of(db, [project for project, _, _ in rows])
        return [
            document_of(
                ProjectDocument,
                project,
                provider=provider,
                reviewer=reviewer,
                budget_usd_day=budgets.get(project.id),
                check=reader.document(ProjectCheckDocument, project),
            )
            for project, provider, reviewer in rows
        ]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, slug: str) -> ProjectDocument:
    """One project. Raises NotFound with similar slugs."""
    with core.database.read() as db:
        return _document(db, find_project(db, caller.organization_id, slug))


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, slug: str, changes: ProjectEdit) -> ProjectDocument:
    """Change the fields that are set. Null removes the branch, provider, reviewer or budget.

    What decides whether it works is checked again.
    """
    given = changes.model_fields_set
    limit = check_limit(changes.budget_usd_day) if changes.budget_usd_day is not None else None

    def work(db: Session) -> tuple[ProjectDocument, CheckOrders]:
        row = find_project(db, caller.organization_id, slug)
        before = _tested(row)
        if changes.git_url is not None:
            _set_url(core, caller, row, changes.git_url)
        _edit_texts(row, changes)
        if "branch" in given:
            row.branch = check_branch(changes.branch) if changes.branch is not None else None
        _edit_models(db, row, changes)
        _edit_commands(row, changes)
        if "budget_usd_day" in given:
            _set_budget(db, core, caller, row, limit)
        if changes.pull_requests is not None:
            row.pull_requests = changes.pull_requests
        if changes.trailers is not None:
            row.trailers = _trailers(changes.trailers)
        edit_run_settings(row, changes)
        same = _tested(row) == before
        orders = CheckOrders() if same else checks.changed(db, core, caller, row, check=changes.check)
        return _document(db, row), orders

    return checks.send(core, caller, transacted(core, work))


@performs(declared.TEST)
def try_out(core: Core, caller: Caller, slug: str) -> ProjectDocument:
    """Let a drone try the project now; `check` shows the progress. No effect while it is being tried."""

    def work(db: Session) -> tuple[ProjectDocument, CheckOrders]:
        row = find_project(db, caller.organization_id, slug)
        orders = checks.asked(db, core, caller, row)
        return _document(db, row), orders

    return checks.send(core, caller, core.database.transact(work))


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, slug: str) -> ProjectDocument:
    """Remove a project; its orders are kept as history. Raises Conflict while one of its orders is unfinished."""
    with core.database.write() as db:
        row = find_project(db, caller.organization_id, slug)
        unfinished = select(Order.id).where(Order.project_id == row.id, Order.status.not_in(ENDED))
        order_id = db.scalar(unfinished.where(Order.purpose.not_in(GIVES_WAY)).order_by(Order.number).limit(1))
        if order_id is not None:
            raise Conflict(
                f"project {row.slug} has unfinished orders, for example {order_id}",
                code="E-PROJECT-NEEDED",
                next=f"fleet orders --project {row.slug}    then: fleet cancel ORDER",
            )
        removed = _document(db, row)
        row.removed_at = core.clock.now()
        remove_budgets(db, core, _target(row))
        orders = checks.removed(row)
    return checks.send(core, caller, (removed, orders))


def columns_of(request: ProjectRequest) -> dict[str, Any]:
    """What the request sets, besides the URL, the budget and what it names. Raises Invalid."""
    return {
        "slug": check_name("project", request.slug),
        "name": check_text("the name", request.name or request.slug, limit=128),
        "description": check_text("the description", request.description, limit=MAX_DESCRIPTION, empty=True),
        "branch": check_branch(request.branch) if request.branch is not None else None,
        "setup": check_commands("setup", request.setup),
        "verify": check_commands("verify", request.verify),
        "pull_requests": request.pull_requests,
        "trailers": _trailers(request.trailers),
        "limits": request.limits,
        "thinking": request.thinking,
    }


def _with_providers(organization_id: str) -> Select[Project, str | None, str | None]:
    """Projects with the names of their provider and their reviewer."""
    reviewer = aliased(Provider)
    joined = select(Project, Provider.name, reviewer.name)
    joined = joined.outerjoin(Provider, Provider.id == Project.provider_id)
    joined = joined.outerjoin(reviewer, reviewer.id == Project.reviewer_id)
    return joined.where(Project.organization_id == organization_id, Project.removed_at.is_(None))


def _tested(row: Project) -> tuple[Any, ...]:
    """What decides whether it works. A sealed URL that is set again differs."""
    return row.git_url, row.sealed_git_url, row.branch, list(row.setup), list(row.verify)


def _document(db: Session, row: Project) -> ProjectDocument:
    provider = db.get_one(Provider, row.provider_id) if row.provider_id else None
    reviewer = db.get_one(Provider, row.reviewer_id) if row.reviewer_id else None
    return document_of(
        ProjectDocument,
        row,
        provider=provider.name if provider else None,
        reviewer=reviewer.name if reviewer else None,
        budget_usd_day=daily_limits(db, [row.id]).get(row.id),
        check=CheckReader.of(db, [row]).document(ProjectCheckDocument, row),
    )


def _set_budget(db: Session, core: Core, caller: Caller, row: Project, limit: int | None) -> None:
    """Set the project's daily budget to this limit in nanodollars; None removes it."""
    if limit is None:
        remove_budgets(db, core, _target(row), "day")
    else:
        set_budget(db, core, _target(row), Terms("day", limit, None, caller.user))


def _target(row: Project) -> BudgetTarget:
    return BudgetTarget(row.organization_id, "project", row.id)


def _set_url(core: Core, caller: Caller, row: Project, text: str) -> None:
    url = parse_git_url(text, files_allowed=core.settings.file_urls_allowed)
    if url.is_file and not caller.everywhere:
        raise Forbidden(
            "a file:// URL requires a token for all organizations",
            code="E-GIT-FILE-SCOPE",
            why=f"it may lead to files of others, and your token is limited to organization {caller.organization!r}",
            next="use https or ssh, or ask the fleet administrator to set the URL",
        )
    row.git_url = url.shown
    sealed = core.vault.seal_at_rest(url.secret, "projects.sealed_git_url") if url.secret is not None else None
    row.sealed_git_url = sealed


def _edit_models(db: Session, row: Project, changes: ProjectEdit) -> None:
    if "provider" in changes.model_fields_set:
        named = changes.provider
        row.provider_id = find_provider(db, row.organization_id, named).id if named is not None else None
    if "reviewer" in changes.model_fields_set:
        row.reviewer_id = reviewer_id_of(db, row.organization_id, changes.reviewer)


def _edit_commands(row: Project, changes: ProjectEdit) -> None:
    if changes.setup is not None:
        row.setup = check_commands("setup", changes.setup)
    if changes.verify is not None:
        row.verify = check_commands("verify", changes.verify)


def _edit_texts(row: Project, changes: ProjectEdit) -> None:
    if changes.name is not None:
        row.name = check_text("the name", changes.name, limit=128)
    if changes.description is not None:
        row.description = check_text("the description", changes.description, limit=MAX_DESCRIPTION, empty=True)


def _trailers(chosen: Sequence[str]) -> list[str]:
    """The chosen trailers without duplicates, in commit order."""
    return [name for name in TRAILERS if name in chosen]
