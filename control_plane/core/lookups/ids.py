"""Ids as users write them: in full, as a unique prefix, or `@last` for their newest order."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import InstrumentedAttribute
from sqlalchemy.orm import Session as Db

from control_plane.contract.validation.checks import shown
from control_plane.core import Caller
from control_plane.db.orders import Order
from control_plane.db.sessions import ChatSession
from shared.errors import Invalid, NotFound
from shared.titles import title

LAST = "@last"
_LENGTH = 12
_CANDIDATES = 5
"""The candidates that an ambiguous prefix lists; if there are more, their number is unknown."""
_TITLE = 50
"""Characters of each candidate's title."""


def needs_lookup(written: str) -> bool:
    """Whether this can be a prefix or `@last`. A full id is looked up by the operation itself."""
    return written == LAST or 0 < len(written) < _LENGTH


def full_order_id(db: Db, caller: Caller, written: str) -> str:
    """The id of the order that `written` stands for; unchanged if no order has an id that begins with it.

    Raises Invalid for an ambiguous prefix, NotFound for `@last` if the caller has not submitted an order.
    """
    orders = select(Order.id, Order.prompt).where(Order.organization_id == caller.organization_id)
    newest_first = orders.order_by(Order.number.desc())
    if written != LAST:
        return _unique("order", written, _found(db, newest_first.where(_begins(Order.id, written))))
    own = (_submitted_by(caller), Order.purpose == "work", Order.agent_id.is_(None))
    newest = db.execute(newest_first.where(*own).limit(1)).first()
    if newest is None:
        raise NotFound(
            f"{LAST} names no order: you have not submitted one in organization {caller.organization}",
            code="E-ORDER-LAST",
            next="fleet submit 'PROMPT'    or choose an order: fleet orders",
        )
    return str(newest[0])


def full_session_id(db: Db, caller: Caller, written: str) -> str:
    """The same for a session. Raises Invalid for an ambiguous prefix."""
    sessions = select(ChatSession.id, ChatSession.name).where(ChatSession.organization_id == caller.organization_id)
    wanted = sessions.where(_begins(ChatSession.id, written)).order_by(ChatSession.created_at.desc())
    return _unique("session", written, _found(db, wanted))


FULL = {"order_id": full_order_id, "session_id": full_session_id}
"""Names in the path of an operation, and the function that completes them."""


def _submitted_by(caller: Caller) -> ColumnElement[bool]:
    """A person's orders, whichever token submitted them; without a person, those of tokens with the same name."""
    if caller.user_id is not None:
        return Order.user_id == caller.user_id
    return Order.user_id.is_(None) & (Order.user == caller.user)


def _begins(column: InstrumentedAttribute[str], written: str) -> ColumnElement[bool]:
    return column.startswith(written.lower(), autoescape=True)


def _found(db: Db, wanted: Select[str, str]) -> Sequence[tuple[str, str]]:
    return [(row[0], row[1]) for row in db.execute(wanted.limit(_CANDIDATES + 1))]


def _unique(kind: str, written: str, found: Sequence[tuple[str, str]]) -> str:
    match found:
        case []:
            return written
        case [(only, _)]:
            return only
    named = [(each, title(text, _TITLE)) for each, text in found[:_CANDIDATES]]
    listed = [f"{each} ({about})" if about else each for each, about in named]
    more = " and more" if len(found) > _CANDIDATES else ""
    raise Invalid(
        f"{shown(written)} is ambiguous: several {kind}s have an id that begins with it",
        code="E-ID-AMBIGUOUS",
        why=f"{', '.join(listed)}{more}",
        next="use more characters of the id",
    )
