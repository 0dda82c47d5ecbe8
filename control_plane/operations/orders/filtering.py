"""The filters of the list of orders, as conditions on its query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, TypedDict, TypeVar

from sqlalchemy import ColumnElement, Select, or_, select
from sqlalchemy.orm import Session as Db

from control_plane.contract.validation.checks import shown, unknown
from control_plane.core import Caller
from control_plane.core.lookups.drones import serving
from control_plane.core.lookups.ids import FULL, needs_lookup
from control_plane.core.lookups.projects import find_project
from control_plane.core.lookups.texts import begins, contains_words
from control_plane.core.lookups.users import require_user
from control_plane.db.orders import Order
from control_plane.db.teams import Agent
from control_plane.db.users import Member, User
from control_plane.orders.outcomes import shows
from shared.errors import Invalid, NotFound
from shared.states import OrderStatus


class OrderTerms(TypedDict, total=False):
    """As `declarations.orders.OrderFilter` describes them; None and False do not narrow the list."""

    status: str | None
    outcome: str | None
    project: str | None
    drone: str | None
    model: str | None
    agent: str | None
    user: str | None
    text: str | None
    since: date | None
    until: date | None
    before: str | None
    every: bool
    mine: bool


Query = TypeVar("Query", bound=Select[*tuple[Any, ...]])


def narrowed(db: Db, caller: Caller, wanted: Query, terms: OrderTerms) -> Query:
    """The query with the condition of each term. Raises Invalid or NotFound for a wrong one."""
    filters = _Filters(db, caller)
    if not terms.get("every"):
        wanted = wanted.where(Order.purpose == "work")
    if terms.get("mine"):
        wanted = wanted.where(Order.user_id == require_user(caller))
    for condition in filters.conditions(terms):
        wanted = wanted.where(condition)
    return wanted


@dataclass(frozen=True)
class _Filters:
    db: Db
    caller: Caller

    def conditions(self, terms: OrderTerms) -> Iterator[ColumnElement[bool]]:
        of: Mapping[str, Callable[[Any], ColumnElement[bool]]] = {
            "status": lambda text: Order.status == _status(text),
            "outcome": shows,
            "project": lambda slug: Order.project_id == find_project(self.db, self.caller.organization_id, slug).id,
            "drone": self._drone,
            "model": lambda name: Order.model == name,
            "agent": self._agent,
            "user": self._user,
            "text": _text,
            "since": lambda day: Order.created_at >= datetime.combine(day, time.min, UTC),
            # Not before the next day: the last one has none.
            "until": lambda day: Order.created_at <= datetime.combine(day, time.max, UTC),
            "before": self._before,
        }
        given: Mapping[str, Any] = {**terms}
        return (condition(given[name]) for name, condition in of.items() if given.get(name) is not None)

    def _drone(self, name: str) -> ColumnElement[bool]:
        # Removed drones count too: their history remains readable.
        known = serving(self.db, self.caller.organization_id, removed=True)
        ids = [each.id for each in known if each.name == name]
        if not ids:
            raise unknown("drone", name, [each.name for each in known], "fleet drones")
        return Order.drone_id.in_(ids)

    def _agent(self, name: str) -> ColumnElement[bool]:
        # Removed agents, too.
        named = select(Agent.name, Agent.id).where(Agent.organization_id == self.caller.organization_id)
        ids = {each: agent_id for each, agent_id in self.db.execute(named)}
        if name not in ids:
            raise unknown("agent", name, list(ids), "fleet agent ls")
        return Order.agent_id == ids[name]

    def _user(self, name: str) -> ColumnElement[bool]:
        # Orders show the name of their user or token; lists of users have addresses and ids.
        named = or_(User.email == name.lower(), User.id == name)
        members = select(Member.user_id).join(User, User.id == Member.user_id).where(named)
        own = Member.organization_id == self.caller.organization_id
        return or_(Order.user == name, Order.user_id.in_(members.where(own)))

    def _before(self, order_id: str) -> ColumnElement[bool]:
        if needs_lookup(order_id):
            order_id = FULL["order_id"](self.db, self.caller, order_id)
        own = Order.id == order_id, Order.organization_id == self.caller.organization_id
        number = self.db.scalar(select(Order.number).where(*own))
        if number is None:
            raise NotFound(f"order {shown(order_id)} not found", code="E-ORDER-404", next="fleet orders")
        return Order.number < number


def _status(text: str) -> str:
    if text not in {each.value for each in OrderStatus}:
        raise Invalid(
            f"unknown order status {shown(text)}",
            code="E-ORDER-STATUS",
            next=f"expected one of {', '.join(OrderStatus)}",
        )
    return text


def _text(text: str) -> ColumnElement[bool]:
    """Every word of the text is in the prompt, in any case; or the id begins with the text."""
    return or_(contains_words(text, Order.prompt), begins(Order.id, text.lower()))
