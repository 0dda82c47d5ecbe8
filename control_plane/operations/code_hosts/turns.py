"""Orders that a code host starts or continues: in the name of the user who asked, with that user's rights."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.contract.declarations.steering import SayRequest
from control_plane.core import Caller, Core
from control_plane.core.audit_entries import entry_of
from control_plane.db.audit_chain import note
from control_plane.db.code_hosts import HostLink, HostUser
from control_plane.db.installation import Organization
from control_plane.db.orders import Order, SteeringMessage
from control_plane.db.projects import Project
from control_plane.db.users import Member, User
from control_plane.operations.access.roles import may, parse_role
from control_plane.operations.orders.next_turn import fits, next_turn
from control_plane.operations.orders.steering import MAX_SAID, MessageDraft, pass_on, write_message
from control_plane.operations.orders.submitting import MAX_PROMPT, submit_within
from control_plane.orders.draft import create_order
from shared.errors import Forbidden
from shared.states import ENDED


@dataclass(frozen=True)
class TurnReceipt:
    """Which order received what was asked."""

    order_id: str
    message_number: int | None = None
    """Of the message, if the order was running."""


@dataclass(frozen=True)
class NextTurn:
    """What the session of an order is asked to do next, and by whom."""

    caller: Caller
    text: str
    merge: dict[str, str] | None = None
    """The branch and its commit to merge first."""


def mapped_caller(db: Session, link: HostLink, login: str, account: str) -> Caller | None:
    """The user that an account of the host stands for, with their rights now; None: it may start nothing.

    The first use of a mapping binds it to the account: whoever takes over a login later is a stranger.
    """
    mapped = db.get(HostUser, (link.id, login.lower()), populate_existing=True)
    if mapped is None or mapped.account not in {None, account}:
        return None
    caller = caller_of(db, link, mapped.user_id)
    if caller is not None:
        mapped.account = account
    return caller


def caller_of(db: Session, link: HostLink, user_id: str) -> Caller | None:
    """The user, if they may start work in the link's organization now."""
    found = db.execute(
        select(User, Member)
        .join(Member, Member.user_id == User.id)
        .where(User.id == user_id, Member.organization_id == link.organization_id, User.disabled_at.is_(None))
    ).first()
    if found is None:
        return None
    user, member = found
    organization = db.get_one(Organization, link.organization_id)
    caller = Caller(organization.id, organization.name, parse_role(member.role), user.name, user_id=user.id)
    return caller if may(caller, "operator") else None


def caller_of_order(db: Session, link: HostLink, order: Order) -> Caller:
    """Who submitted an order, for what follows from it. Raises Forbidden if they may start no work any more."""
    if order.user_id is None:
        organization = db.get_one(Organization, link.organization_id)
        return Caller(organization.id, organization.name, "operator", order.user)
    caller = caller_of(db, link, order.user_id)
    if caller is None:
        raise Forbidden(f"{order.user}, who submitted order {order.id}, may start no work any more", code="E-ROLE")
    return caller


def start(db: Session, core: Core, caller: Caller, link: HostLink, prompt: str) -> TurnReceipt:
    """Submit a new order in a new session. Raises like `submit`."""
    project = db.get_one(Project, link.project_id)
    request = SubmitRequest(prompt=fits(prompt, MAX_PROMPT), project=project.slug)
    order_id, _ = submit_within(db, core, caller, request, None)
    note(db, entry_of(core, caller, "submit", order_id))
    return TurnReceipt(order_id)


def go_on(db: Session, core: Core, order: Order, turn: NextTurn) -> TurnReceipt:
    """Give the session of `order`, its newest, its next turn: as a message while it runs, else as a new order.

    For a turn with a merge, which a message cannot carry, the order must have ended. Raises TooLarge, Conflict while it
    is being canceled, Precondition if the project or the provider was removed.
    """
    caller = turn.caller
    # It may have begun or ended since it was read.
    db.flush()
    order = db.get_one(Order, order.id, with_for_update=True, populate_existing=True)
    if order.status in ENDED:
        asked = {"merge": turn.merge} if turn.merge is not None else None
        order_id = create_order(db, core, replace(next_turn(db, caller, order, turn.text), asked=asked)).id
        note(db, entry_of(core, caller, "submit", order_id))
        return TurnReceipt(order_id)
    said = MessageDraft(order.id, None, SayRequest(text=fits(turn.text, MAX_SAID)))
    locked, message = write_message(db, core, caller, said)
    note(db, entry_of(core, caller, "say", order.id))
    return TurnReceipt(locked.id, message.number)


def deliver_message(db: Session, core: Core, received: TurnReceipt) -> None:
    """Send the message to the run; after the rows that it refers to were written."""
    if received.message_number is not None:
        db.flush()
        message = db.get_one(SteeringMessage, received.message_number)
        pass_on(db, core, db.get_one(Order, received.order_id), message)


def newest_of(db: Session, session_id: str) -> Order | None:
    """The newest order of work in a session."""
    own = select(Order).where(Order.session_id == session_id, Order.purpose == "work")
    return db.scalar(own.order_by(Order.number.desc()).limit(1))
