"""The inbox as one list, and its size: a few queries each, however much has ended before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import inbox as declared
from control_plane.contract.declarations.inbox import InboxCounts, InboxItem, InboxKind
from control_plane.core import Caller, Core
from control_plane.operations.gateway import performs
from control_plane.operations.inbox.drones import count_drones, drone_items
from control_plane.operations.inbox.items import (
    count_failed_checks,
    count_notes,
    count_races,
    count_tasks,
    failed_check_items,
    note_items,
    race_items,
    task_items,
)
from control_plane.operations.inbox.orders import count_follow_ups, count_waits, ended_items, waiting_items
from control_plane.operations.inbox.scope import InboxView


@performs(declared.LIST)
def list_inbox(  # noqa: PLR0913 - the filters are the interface
    core: Core,
    caller: Caller,
    *,
    kind: InboxKind | None = None,
    limit: int = 100,
    mine: bool = False,
    everywhere: bool = False,
) -> list[InboxItem]:
    """Everything that waits for the caller, nearest deadline first, then newest first.

    `everywhere` counts only for a token for all organizations. Raises Invalid for `mine` with a token of no user.
    """
    with core.database.read() as db:
        inbox = InboxView.of(db, core, caller, mine=mine, everywhere=everywhere)
        items = sorted(_items(db, inbox, kind, limit), key=lambda item: item.since, reverse=True)
    # Stable: those with the same deadline, and those without one, stay newest first.
    return sorted(items, key=lambda item: (item.deadline is None, item.deadline or inbox.now))[:limit]


@performs(declared.COUNT)
def count_inbox(core: Core, caller: Caller, *, mine: bool = False, everywhere: bool = False) -> InboxCounts:
    """The number of items in the inbox, by kind; cheap enough for every page."""
    with core.database.read() as db:
        inbox = InboxView.of(db, core, caller, mine=mine, everywhere=everywhere)
        counted = [count(db, inbox) for count in _COUNTS]
    found = {kind: count for each in counted for kind, count in each.items()}
    kinds = {kind: found.get(kind, 0) for kind in get_args(InboxKind)}
    return InboxCounts(total=sum(kinds.values()), kinds=kinds)


_COUNTS = (
    count_waits,
    count_follow_ups,
    count_tasks,
    count_races,
    count_drones,
    count_notes,
    count_failed_checks,
)


def _items(db: Db, inbox: InboxView, kind: InboxKind | None, limit: int) -> Iterator[InboxItem]:
    """The first items of each source that has this kind."""
    yield from waiting_items(db, inbox, kind, limit)
    yield from ended_items(db, inbox, kind, limit)
    if kind in {None, "task"}:
        yield from task_items(db, inbox, limit)
    if kind in {None, "race"}:
        yield from race_items(db, inbox, limit)
    if kind in {None, "drone"}:
        yield from drone_items(db, inbox)
    if kind in {None, "memory"}:
        yield from note_items(db, inbox, limit)
    yield from failed_check_items(db, inbox, kind, limit)
