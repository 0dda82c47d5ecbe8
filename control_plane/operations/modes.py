"""Define, list and remove modes (G-030)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import modes as declared
from control_plane.contract.declarations.modes import MAX_TEXT, ModeDocument, ModeRequest
from control_plane.contract.validation.checks import check_text, shown, unknown
from control_plane.core import Caller, Core
from control_plane.core.lookups.modes import BUILT_IN
from control_plane.core.lookups.organizations import locked_organization
from control_plane.core.lookups.projects import find_project
from control_plane.db.modes import CustomMode
from control_plane.db.projects import Project
from control_plane.operations.gateway import performs
from shared.errors import Invalid
from shared.names import MODE_NAME, new_id
from shared.tool_names import ALWAYS, EXTENSION_PREFIX, MCP_PREFIX, SELECTABLE

_TOOL = re.compile(rf"(?:{MCP_PREFIX}|{EXTENSION_PREFIX})[A-Za-z0-9_-]{{1,64}}")
_TELLS = {
    "plan": "Read, and propose changes.",
    "build": "Change files.",
    "test": "Write and run tests.",
    "ship": "Prepare a release.",
    "develop": "Work on a feature from plan to test.",
}


@performs(declared.LIST)
def list_(core: Core, caller: Caller, project: str | None = None) -> list[ModeDocument]:
    """All modes by name, built-in ones first; with a project those that its orders can have. Raises NotFound."""
    with core.database.read() as db:
        only = find_project(db, caller.organization_id, project) if project is not None else None
        rows = db.execute(
            select(CustomMode, Project.slug)
            .outerjoin(Project, Project.id == CustomMode.project_id)
            .where(CustomMode.organization_id == caller.organization_id)
            .order_by(CustomMode.name, CustomMode.project_id.is_not(None), Project.slug)
        ).all()
        wanted = [(row, slug) for row, slug in rows if only is None or row.project_id in {None, only.id}]
    settings = {row.name: row.thinking for row, slug in wanted if row.name in BUILT_IN and slug is None}
    own = [_document(row, slug) for row, slug in wanted if row.name not in BUILT_IN or slug is not None]
    return [*(_built_in(name, settings.get(name)) for name in BUILT_IN), *own]


@performs(declared.SET)
def set_(core: Core, caller: Caller, name: str, request: ModeRequest) -> ModeDocument:
    """Define a mode or replace its definition. Raises Invalid, also for an unknown tool, and NotFound."""
    check_mode(name, request)

    def work(db: Session) -> ModeDocument:
        # One after the other: each replaces the definition before it.
        locked_organization(db, caller.organization_id)
        project = find_project(db, caller.organization_id, request.project) if request.project is not None else None
        row = _row(db, caller, name, project)
        if row is None:
            row = CustomMode(
                id=new_id(),
                organization_id=caller.organization_id,
                project_id=project.id if project is not None else None,
                name=name,
                created_at=core.clock.now(),
            )
            db.add(row)
        row.text, row.tools = request.text, list(dict.fromkeys(request.tools))
        row.read_only, row.thinking, row.set_by = request.read_only, request.thinking, caller.user
        db.flush()
        return _document(row, request.project)

    return core.database.transact(work)


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, name: str, project: str | None = None) -> ModeDocument:
    """Remove a definition. Raises NotFound with similar names."""
    with core.database.write() as db:
        of = find_project(db, caller.organization_id, project) if project is not None else None
        row = _row(db, caller, name, of)
        if row is None:
            raise unknown("mode", name, _names(db, caller), "fleet mode ls")
        document = _document(row, project)
        db.delete(row)
        return document


def _row(db: Session, caller: Caller, name: str, project: Project | None) -> CustomMode | None:
    where = CustomMode.project_id == project.id if project is not None else CustomMode.project_id.is_(None)
    return db.scalar(
        select(CustomMode).where(CustomMode.organization_id == caller.organization_id, CustomMode.name == name, where)
    )


def _names(db: Session, caller: Caller) -> Sequence[str]:
    return db.scalars(select(CustomMode.name).where(CustomMode.organization_id == caller.organization_id)).all()


def check_mode(name: str, request: ModeRequest) -> None:
    """Raise Invalid if a mode cannot have this name and definition, apart from its project."""
    if not re.fullmatch(MODE_NAME, name):
        raise Invalid(
            f"invalid mode name {shown(name)}",
            code="E-NAME",
            next="1 to 16 of a-z, 0-9, '_' and '-', starting with a letter",
        )
    if name in BUILT_IN:
        _check_built_in(name, request)
        return
    check_text("the text", request.text, limit=MAX_TEXT)
    for tool in request.tools:
        if tool in ALWAYS or not (tool in SELECTABLE or _TOOL.fullmatch(tool)):
            raise Invalid(
                f"unknown tool {shown(tool)}",
                code="E-MODE-TOOL",
                why="every mode has it" if tool in ALWAYS else "",
                next=f"one of {', '.join(SELECTABLE)}, {MCP_PREFIX}SERVER__TOOL or {EXTENSION_PREFIX}NAME",
            ).of(tool)


def _check_built_in(name: str, request: ModeRequest) -> None:
    if request.text or request.tools or request.read_only or request.thinking is None:
        raise Invalid(
            f"mode {name} is built in: only its thinking level can be set",
            code="E-MODE-BUILT-IN",
            next=f"fleet mode add {name} --thinking high    or: fleet mode add my-{name} --text TEXT",
        )


def _document(row: CustomMode, project: str | None) -> ModeDocument:
    return ModeDocument(
        name=row.name,
        project=project,
        text=row.text or _TELLS.get(row.name, ""),
        tools=row.tools,
        read_only=row.read_only or row.name == "plan",
        thinking=row.thinking,
        built_in=row.name in BUILT_IN,
    )


def _built_in(name: str, thinking: str | None) -> ModeDocument:
    return ModeDocument(
        name=name,
        project=None,
        text=_TELLS[name],
        tools=[],
        read_only=name == "plan",
        thinking=thinking,
        built_in=True,
    )
