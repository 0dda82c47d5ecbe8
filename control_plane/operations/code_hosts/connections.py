"""Connections to code hosts, and the accounts there that may start work. For admins; viewers may read."""

from __future__ import annotations

import re

from sqlalchemy import Select, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.automation.incoming_signatures import check_hook_secret, new_hook_secret
from control_plane.contract.declarations import code_hosts as declared
from control_plane.contract.declarations.code_hosts import (
    CodeHostDocument,
    CodeHostEdit,
    CodeHostRequest,
    HostEventDocument,
    HostUserDocument,
    HostUserRequest,
)
from control_plane.contract.validation.checks import check_name, shown, unknown
from control_plane.core import Caller, Core
from control_plane.core.lookups.drones import find_drone
from control_plane.core.lookups.projects import find_project
from control_plane.core.lookups.users import NOT_A_MEMBER, find_member, member_emails
from control_plane.db.code_hosts import HostEvent, HostLink, HostPost, HostUser
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.operations.gateway import performs
from control_plane.operations.orders.canceling import cancel_unfinished
from control_plane.operations.row_documents import document_of
from shared.errors import Conflict, Invalid, Precondition
from shared.names import new_id
from shared.states import ENDED, OrderStatus

_REPOSITORY = re.compile(r"[\w.-]+(?:/[\w.-]+){1,19}")
_MENTION = re.compile(r"@[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_WAITS = (OrderStatus.QUEUED, OrderStatus.ASSIGNED)
_LOGIN = re.compile(r"[A-Za-z0-9][\w.-]{0,127}")


@performs(declared.ADD)
def add(core: Core, caller: Caller, request: CodeHostRequest) -> CodeHostDocument:
    """Connect a project. Only this answer contains the secret.

    Raises Invalid, NotFound for the project or the drone, Conflict for a name that is taken, Precondition if the
    project's git URL names no repository.
    """
    secret = new_hook_secret(request.kind) if request.secret is None else request.secret
    now = core.clock.now()
    try:
        with core.database.write() as db:
            project = find_project(db, caller.organization_id, request.project)
            row = HostLink(
                id=new_id(),
                organization_id=caller.organization_id,
                name=check_name("code host", request.name),
                kind=request.kind,
                project_id=project.id,
                repository=_checked_repository(request.repository or _repository_of(project)),
                sealed_secret=core.vault.seal_at_rest(
                    check_hook_secret(request.kind, secret), "host_links.sealed_secret"
                ),
                mention=_checked_mention(request.mention),
                poll_seconds=request.poll_seconds,
                strangers=request.strangers,
                max_follow_ups=request.max_follow_ups,
                drone_id=_drone_id(db, caller, request.drone),
                enabled=True,
                failures=0,
                read_since=now,
                next_at=now,
                last_error="",
                user=caller.user,
                created_at=now,
            )
            db.add(row)
            db.flush()
            return _document(db, core, row, secret)
    except IntegrityError as error:
        raise Conflict(
            f"code host {shown(request.name)} already exists",
            code="E-HOST-NAME",
            next=f"fleet hosts edit {request.name}",
        ) from error


@performs(declared.LIST)
def list_(core: Core, caller: Caller) -> list[CodeHostDocument]:
    """All connections of the organization by name, without their secrets."""
    with core.database.read() as db:
        return [_document(db, core, row) for row in db.scalars(_alive(caller).order_by(HostLink.name))]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, name: str) -> CodeHostDocument:
    """One connection, without its secret. Raises NotFound with similar names."""
    with core.database.read() as db:
        return _document(db, core, find_link(db, caller, name))


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, name: str, changes: CodeHostEdit) -> CodeHostDocument:
    """Change the fields that are set; a new secret takes effect immediately.

    An order that reads the host is canceled if another drone is to read it now, or none.
    """

    def work(db: Session) -> tuple[CodeHostDocument, str | None]:
        row = find_link(db, caller, name, lock=True)
        before = row.drone_id
        if changes.secret is not None:
            row.sealed_secret = core.vault.seal_at_rest(
                check_hook_secret(row.kind, changes.secret), "host_links.sealed_secret"
            )
        row.mention = row.mention if changes.mention is None else _checked_mention(changes.mention)
        row.poll_seconds = row.poll_seconds if changes.poll_seconds is None else changes.poll_seconds
        row.strangers = changes.strangers or row.strangers
        row.max_follow_ups = row.max_follow_ups if changes.max_follow_ups is None else changes.max_follow_ups
        if "drone" in changes.model_fields_set:
            row.drone_id = _drone_id(db, caller, changes.drone)
        row.enabled = row.enabled if changes.enabled is None else changes.enabled
        row.next_at, row.failures = core.clock.now(), 0
        outdated = _without_reading(db, row) if row.drone_id != before or not row.enabled else None
        return _document(db, core, row), outdated

    return _canceled(core, caller, *core.database.transact(work))


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, name: str) -> CodeHostDocument:
    """Remove a connection: its address answers as if it had never existed, and nothing is written there any more."""

    def work(db: Session) -> tuple[CodeHostDocument, str | None]:
        row = find_link(db, caller, name, lock=True)
        row.removed_at, row.enabled = core.clock.now(), False
        outdated = _without_reading(db, row)
        return _document(db, core, row), outdated

    return _canceled(core, caller, *core.database.transact(work))


def _without_reading(db: Session, row: HostLink) -> str | None:
    """Take the order that reads the host now from the connection; returns its id. One that has ended still counts."""
    order = db.get(Order, row.order_id) if row.order_id is not None else None
    if order is None or order.status in ENDED:
        return None
    row.order_id = None
    return order.id


def _canceled(core: Core, caller: Caller, document: CodeHostDocument, outdated: str | None) -> CodeHostDocument:
    """After the commit: cancel an outdated order, and return the document."""
    if outdated is not None:
        cancel_unfinished(core, caller, outdated, "the connection to the code host was changed or removed")
    return document


@performs(declared.MAP)
def map_user(core: Core, caller: Caller, name: str, login: str, request: HostUserRequest) -> CodeHostDocument:
    """Let an account start work as this user; replaces an earlier mapping of the login.

    Raises Invalid for a login that no host allows, NotFound for the user, Precondition for one without the operator
    role.
    """

    def work(db: Session) -> CodeHostDocument:
        row = find_link(db, caller, name, lock=True)
        if not _LOGIN.fullmatch(login):
            raise Invalid(
                f"invalid login {login[:80]!r}", code="E-HOST-LOGIN", next="the login as in the user's profile"
            )
        user, member = find_member(db, caller.organization_id, request.user)
        if member.role == "viewer":
            raise Precondition(
                f"user {user.email} may only read in this organization",
                code="E-HOST-ROLE",
                why="starting work requires the operator role",
                next=f"fleet user edit {user.email} --role operator",
            )
        found = db.get(HostUser, (row.id, login.lower()))
        if found is None:
            found = HostUser(organization_id=row.organization_id, link_id=row.id, login=login.lower())
            db.add(found)
        found.user_id, found.account, found.created_at = user.id, None, core.clock.now()
        db.flush()
        return _document(db, core, row)

    return core.database.transact(work)


@performs(declared.UNMAP)
def unmap_user(core: Core, caller: Caller, name: str, login: str) -> CodeHostDocument:
    """Remove the mapping of an account; its orders are kept. Raises NotFound with similar logins."""

    def work(db: Session) -> CodeHostDocument:
        row = find_link(db, caller, name, lock=True)
        found = db.get(HostUser, (row.id, login.lower()))
        if found is None:
            known = db.scalars(select(HostUser.login).where(HostUser.link_id == row.id)).all()
            raise unknown("login", login, known, f"fleet hosts show {row.name}")
        db.delete(found)
        db.flush()
        return _document(db, core, row)

    return core.database.transact(work)


@performs(declared.EVENTS)
def events(core: Core, caller: Caller, name: str, limit: int = 100) -> list[HostEventDocument]:
    """What happened at the host, newest first, with what became of it. Raises NotFound."""
    with core.database.read() as db:
        row = find_link(db, caller, name)
        newest = select(HostEvent).where(HostEvent.link_id == row.id).order_by(HostEvent.at.desc(), HostEvent.key)
        return [document_of(HostEventDocument, each, order=each.order_id) for each in db.scalars(newest.limit(limit))]


@performs(declared.SYNC)
def sync(core: Core, caller: Caller, name: str) -> CodeHostDocument:
    """Make the reading due now, and with it the comments that were given up. Raises NotFound, Conflict if it is off."""

    def work(db: Session) -> CodeHostDocument:
        row = find_link(db, caller, name, lock=True)
        if not row.enabled:
            raise Conflict(f"code host {row.name} is off", code="E-HOST-OFF", next=f"fleet hosts edit {row.name} --on")
        row.next_at, row.failures = core.clock.now(), 0
        for post in db.scalars(select(HostPost).where(HostPost.link_id == row.id, HostPost.attempts > 0)):
            post.attempts, post.next_at = 0, core.clock.now()
        db.flush()
        return _document(db, core, row)

    answer = core.database.transact(work)
    core.broker.wake()
    return answer


def find_link(db: Session, caller: Caller, name: str, *, lock: bool = False) -> HostLink:
    """The connection with this name; `lock` locks its row until the commit. Raises NotFound with similar names."""
    wanted = _alive(caller).where(HostLink.name == name)
    row = db.scalar(wanted.with_for_update().execution_options(populate_existing=True) if lock else wanted)
    if row is None:
        raise unknown("host", name, [each.name for each in db.scalars(_alive(caller))], "fleet hosts ls")
    return row


def _alive(caller: Caller) -> Select[HostLink]:
    return select(HostLink).where(HostLink.organization_id == caller.organization_id, HostLink.removed_at.is_(None))


def _drone_id(db: Session, caller: Caller, name: str | None) -> str | None:
    return None if name is None else find_drone(db, caller.organization_id, name).id


def _checked_repository(path: str) -> str:
    if not _REPOSITORY.fullmatch(path) or len(path) > 255:
        raise Invalid(
            f"invalid repository {path[:80]!r}", code="E-HOST-REPOSITORY", next="--repository OWNER/NAME, as in its URL"
        )
    return path


def _checked_mention(word: str) -> str:
    if not _MENTION.fullmatch(word):
        raise Invalid(
            f"invalid mention {word[:80]!r}",
            code="E-HOST-MENTION",
            next="@ followed by letters, digits, - or _, for example @fleet",
        ).of(word)
    return word


def _repository_of(project: Project) -> str:
    """The path in the project's git URL. Raises Precondition if it names no repository at a host."""
    url = project.git_url
    # Not by urlsplit: in a URL with a password, the login is replaced by a word in brackets.
    path = url.partition("://")[2].partition("/")[2] if "://" in url else url.partition(":")[2]
    found = path.strip("/").removesuffix(".git")
    if url.startswith("file:") or not _REPOSITORY.fullmatch(found):
        raise Precondition(
            f"the git URL of project {project.slug} names no repository at a code host",
            code="E-HOST-REPOSITORY",
            next=f"fleet project edit {project.slug} --git-url URL    or: --repository OWNER/NAME",
        )
    return found


def _document(db: Session, core: Core, row: HostLink, secret: str | None = None) -> CodeHostDocument:
    emails = member_emails(db, row.organization_id)
    users = db.scalars(select(HostUser).where(HostUser.link_id == row.id).order_by(HostUser.login))
    given_up = HostPost.link_id == row.id, HostPost.attempts > 0, HostPost.next_at.is_(None)
    count, why = db.execute(select(func.count(), func.max(HostPost.error)).where(*given_up)).one()
    drone = db.get(Drone, row.drone_id) if row.drone_id is not None else None
    return document_of(
        CodeHostDocument,
        row,
        project=db.get_one(Project, row.project_id).slug,
        url=f"{core.settings.url}/hooks/hosts/{row.id}",
        secret=secret,
        drone=drone.name if drone is not None else None,
        users=[HostUserDocument(login=each.login, user=emails.get(each.user_id, NOT_A_MEMBER)) for each in users],
        last_error=row.last_error or _waits(db, row),
        unwritten=count,
        write_error=why or "",
    )


def _waits(db: Session, row: HostLink) -> str:
    """Why the order that reads the host now does not begin; empty if it does."""
    order = db.get(Order, row.order_id) if row.order_id is not None else None
    if order is None or order.status not in _WAITS:
        return ""
    return order.reason if order.status == OrderStatus.QUEUED or order.facts.waits is not None else ""
