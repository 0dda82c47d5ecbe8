"""Topics: what a page can show live, each with a version that changes whenever its page would look different.

A page contains the versions that it was rendered with, so it asks for a part again only if that part has changed since,
however the news reached it: by the stream, by polling, or after a gap.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, unquote

from pydantic import TypeAdapter

from control_plane.contract.declarations import orders as declared_orders
from control_plane.contract.declarations import sessions as declared_sessions
from control_plane.contract.declarations import tasks as declared_tasks
from control_plane.contract.declarations.operation import Operation
from control_plane.core import Caller, Core
from control_plane.operations import budgets, costs, graphs, memory, modes, prices, profiles, projects, providers
from control_plane.operations.access import login_sessions, tokens, users
from control_plane.operations.agents import reading as agents
from control_plane.operations.attention import choices as attention
from control_plane.operations.automation import schedules, triggers, webhooks
from control_plane.operations.batches import reading as batches
from control_plane.operations.code_hosts import connections as code_hosts
from control_plane.operations.gateway import if_permitted
from control_plane.operations.inbox import listing as inbox
from control_plane.operations.orders import changes
from control_plane.operations.orders import reading as orders
from control_plane.operations.organizations import reading as organizations
from control_plane.operations.reviews import commenting as review
from control_plane.operations.sessions import reading as sessions
from control_plane.operations.tasks import reading as tasks
from control_plane.operations.weaknesses import weaknesses
from control_plane.web.counts import counts_of
from control_plane.web.fleet_view import fleet_view, steady
from control_plane.web.forms.filters import Filters
from control_plane.web.task_board import board_tasks
from control_plane.web.text_in_flight import last_step_of
from shared.errors import Refused

Source = Callable[[Core, Caller, str], Any]
"""The documents that a topic's page shows; raises NotFound for a thing that the caller may not see."""

SHELL = "shell"
"""The topic of the sidebar, on every page."""
GONE = "gone"
"""The version of something that was removed, or that the caller may no longer see."""
MESSAGES = 50
MOST_BATCHES = MOST_GRAPHS = 100
"""Those that a page lists, newest first."""
MOST_TERMS = 2000
"""Characters of the terms of a list."""
REMEMBERED = 2000
FRESH_S = 0.4
FIGURES_S = 2.0
"""How often the costs and tokens of running orders follow their steps."""


@dataclass(frozen=True)
class Topic:
    """One kind of topic."""

    source: Source
    every_s: float
    """How often its version is computed without news."""
    pause_s: float = 0.25
    """It is looked at no more often than this, however often it changes."""
    steps_s: float | None = None
    """How often at most it is looked at for steps alone; 0: at once; None: not at all, since what they change of it, if
    anything, may be as old as `every_s`."""
    follows_orders: bool = False
    """Whether a change of any order may change it."""
    takes_id: bool = False
    """`order:ID`; else the name alone."""
    is_of_order: bool = False
    """Whether the id is that of an order, whose steps may change it."""
    takes_terms: bool = False
    """Of a list that is narrowed and lengthened: the name alone, or with the quoted terms of its address."""


def _order(core: Core, caller: Caller, order_id: str) -> Any:
    summary = orders.order_summary(core, caller, order_id)
    # Counts up while the order runs, which the page counts itself.
    counting = {"duration_ms": 0, "duration_label": "", "working_since": None, "waiting_ms": 0, "waiting_label": ""}
    stats = summary.stats.model_copy(update=counting)
    beside = orders.beside_summary(core, caller, order_id)
    comments = review.list_comments(core, caller, order_id)
    return summary.model_copy(update={"stats": stats}), beside, comments


def _changes(core: Core, caller: Caller, order_id: str) -> Any:
    summary = orders.order_summary(core, caller, order_id)
    reports = changes.reports_of(core, caller, order_id)
    # Not the moment: a step that changed nothing does not change the page.
    named = [(each.sha256, each.withheld, each.left_out) if each else None for each in (reports.turn, reports.branch)]
    around = summary.ended_at, summary.pushed, summary.pull_request, summary.title
    return named, around, review.conversation_comments(core, caller, order_id)


def _batch(core: Core, caller: Caller, batch_id: str) -> Any:
    # The estimate changes with every moment; it is shown anew whenever anything else changes.
    return batches.show(core, caller, batch_id).model_copy(update={"remaining_s": None})


def _automation(core: Core, caller: Caller, _id: str) -> Any:
    hooks = webhooks.list_(core, caller)
    messages = [webhooks.deliveries(core, caller, each.name, limit=MESSAGES) for each in hooks]
    hosts = code_hosts.list_(core, caller)
    events = [code_hosts.events(core, caller, each.name, limit=MESSAGES) for each in hosts]
    return schedules.list_(core, caller), triggers.list_(core, caller), hooks, messages, hosts, events


def _settings(core: Core, caller: Caller, _id: str) -> Any:
    parts = (
        organizations.list_,
        users.list_,
        tokens.list_join_tokens,
        tokens.list_api_tokens,
        login_sessions.list_login_sessions,
        memory.list_,
        profiles.list_,
    )
    return [if_permitted(core, caller, part) for part in parts]


def _attention(core: Core, caller: Caller, _id: str) -> Any:
    # A token that belongs to no user has no choices, but the page, which says so.
    try:
        return attention.show(core, caller)
    except Refused:
        return None


def _list(operation: Operation, read: Callable[..., Any]) -> Topic:
    """The rows that a page with these terms shows, however far they are from the newest."""

    def source(core: Core, caller: Caller, terms: str) -> Any:
        return read(core, caller, **_filters(operation, terms).arguments())

    return Topic(source, 5.0, steps_s=FIGURES_S, follows_orders=True, takes_terms=True)


def _filters(operation: Operation, terms: str) -> Filters:
    return Filters.of("", operation, dict(parse_qsl(unquote(terms))))


def _board(core: Core, caller: Caller, terms: str) -> Any:
    return board_tasks(core, caller, _filters(declared_tasks.LIST, terms))


TOPICS: Mapping[str, Topic] = {
    SHELL: Topic(lambda core, caller, _: counts_of(core, caller), 5.0, follows_orders=True),
    "inbox": Topic(
        lambda core, caller, _: (
            inbox.list_inbox(core, caller),
            budgets.pressing(core, caller.organization_id),
            weaknesses(core),
        ),
        3.0,
        follows_orders=True,
    ),
    "orders": _list(declared_orders.LIST, orders.list_orders),
    "order": Topic(_order, 5.0, pause_s=0.02, steps_s=0.0, takes_id=True, is_of_order=True),
    "changes": Topic(_changes, 5.0, steps_s=FIGURES_S, takes_id=True, is_of_order=True),
    "batches": Topic(
        lambda core, caller, _: batches.list_(core, caller, limit=MOST_BATCHES), 5.0, follows_orders=True, pause_s=1.0
    ),
    "batch": Topic(_batch, 5.0, follows_orders=True, pause_s=1.0, takes_id=True),
    "graphs": Topic(
        lambda core, caller, _: graphs.list_(core, caller, limit=MOST_GRAPHS), 5.0, follows_orders=True, pause_s=2.0
    ),
    "sessions": _list(declared_sessions.LIST, sessions.list_),
    "session": Topic(sessions.show, 5.0, steps_s=FIGURES_S, follows_orders=True, takes_id=True),
    "tasks": replace(_list(declared_tasks.LIST, tasks.list_), every_s=3.0, steps_s=None),
    "board": Topic(_board, 3.0, follows_orders=True, takes_terms=True),
    "task": Topic(tasks.show, 3.0, follows_orders=True, takes_id=True),
    "agents": Topic(lambda core, caller, _: agents.list_(core, caller), 5.0),
    "fleet": Topic(lambda core, caller, _: steady(fleet_view(core, caller)), 2.0, follows_orders=True),
    "projects": Topic(
        lambda core, caller, _: (projects.list_(core, caller), memory.list_(core, caller), modes.list_(core, caller)),
        3.0,
        follows_orders=True,
    ),
    "models": Topic(
        lambda core, caller, _: (providers.list_(core, caller), prices.list_(core, caller)), 3.0, follows_orders=True
    ),
    "automation": Topic(_automation, 5.0),
    "cost": Topic(
        lambda core, caller, _: (budgets.list_(core, caller), costs.list_(core, caller, by="model")),
        5.0,
        follows_orders=True,
        pause_s=2.0,
    ),
    "attention": Topic(_attention, 5.0),
    "settings": Topic(_settings, 5.0),
}


@dataclass(frozen=True)
class Wanted:
    """One topic that a client follows: `orders`, `orders:status%3Dfailed`, `order:4f1c2a9be07d`."""

    kind: str
    id: str = ""

    @classmethod
    def of(cls, text: str) -> Wanted | None:
        """None for a name that is no topic: a page of another version of the application may ask for one."""
        kind, _, id = text.partition(":")
        topic = TOPICS.get(kind)
        if topic is None or len(id) > MOST_TERMS:
            return None
        return cls(kind, id) if topic.takes_id == bool(id) or topic.takes_terms else None

    @property
    def topic(self) -> Topic:
        return TOPICS[self.kind]

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}" if self.id else self.kind


@dataclass
class _Known:
    """A version, and when the reading that it is of began."""

    version: str = ""
    read_at: float = -math.inf
    lock: threading.Lock = field(default_factory=threading.Lock)


class Versions:
    """Computes versions; those of the last moments are shared by all streams and pages of the process."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: OrderedDict[tuple[Caller, Wanted], _Known] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, caller: Caller, wanted: Iterable[Wanted]) -> dict[str, str]:
        """The present version of each. Raises FleetFault if the database is unavailable."""
        return {str(each): self.since(time.monotonic() - FRESH_S, caller, each) for each in wanted}

    def since(self, moment: float, caller: Caller, wanted: Wanted) -> str:
        """The version as read after this moment of the monotonic clock, which is when something changed.

        It is read once for all that ask at the same time. Raises FleetFault if the database is unavailable.
        """
        known = self._of_key(caller, wanted)
        with known.lock:
            if known.read_at <= moment:
                began = time.monotonic()
                known.version = _digest(self._core, caller, wanted)
                known.read_at = began
            return known.version

    def _of_key(self, caller: Caller, wanted: Wanted) -> _Known:
        # The same user in two browsers sees the same.
        key = replace(caller, login_session_id=None, token_id=None), wanted
        with self._lock:
            known = self._known.setdefault(key, _Known())
            self._known.move_to_end(key)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            return known


def _digest(core: Core, caller: Caller, wanted: Wanted) -> str:
    try:
        version = version_of(wanted.topic.source(core, caller, wanted.id))
    except Refused:
        return GONE
    return with_step(version, last_step_of(core, wanted.id)) if wanted.topic.steps_s == 0.0 else version


def with_step(version: str, last_step: int) -> str:
    """The version of a topic that shows steps, when this is the last one and nothing else has changed."""
    return f"{version.partition('.')[0]}.{last_step}"


def version_of(shown: object) -> str:
    """The version of what a page shows."""
    return hashlib.sha256(_ANYTHING.dump_json(shown)).hexdigest()[:12]


_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)
