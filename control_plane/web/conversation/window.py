"""Which part of a conversation a page shows: the newest part first, in pages of a limited number of elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from control_plane.contract.declarations.session_documents import EntryDocument, TurnDocument
from control_plane.core import Caller, Core
from control_plane.operations.orders.step_reading import StepRange, read_steps
from control_plane.web.conversation.blocks import Chat, ChatBlock, Closing, Opening
from control_plane.web.conversation.grouping import chat_of
from control_plane.web.markup.markdown import plain

MOST_WEIGHT = 650
"""About how many elements of the conversation are on a page at first; a page may have 1,500 with everything."""
MOST_STEPS = 300
MOST_TURNS = 12
"""Turns whose steps are read for one page."""
LONGEST_PROMPT = 20_000


@dataclass(frozen=True)
class ShownTurn:
    """A turn on the way to the shown one."""

    turn: TurnDocument
    entry: EntryDocument | None
    """None while it has no place in the session's tree."""

    @property
    def order(self) -> str:
        return self.turn.order


@dataclass(frozen=True)
class Cursor:
    """A place between two steps: everything before this step of this order comes next."""

    order: str
    before: int

    def __str__(self) -> str:
        return f"{self.order}.{self.before}"

    @classmethod
    def of(cls, text: str) -> Cursor | None:
        """None for text that is no cursor."""
        order, _, before = text.partition(".")
        return cls(order, int(before)) if order.isalnum() and before.isdecimal() and len(before) < 15 else None


@dataclass(frozen=True)
class Window:
    """A page of a conversation."""

    blocks: list[ChatBlock]
    earlier: Cursor | None
    """Where the page before this one ends; None if this one has the beginning."""
    resume: int = 0
    """As `Chat.resume`, of the shown turn."""
    last: int = 0


def window(
    core: Core, caller: Caller, turns: Sequence[ShownTurn], before: Cursor | None = None, *, active: bool = False
) -> Window:
    """The last part of the conversation of these turns, or the part before a cursor."""
    index = len(turns) - 1
    upto: int | None = None
    if before is not None:
        index = next((n for n, each in enumerate(turns) if each.order == before.order), index)
        upto = before.before
    blocks: list[ChatBlock] = []
    first_chat: Chat | None = None
    room = MOST_WEIGHT
    for read in range(MOST_TURNS):
        if index < 0:
            break
        each, is_last = turns[index], index == len(turns) - 1
        chat = _chat(core, caller, each, upto, active=active and is_last)
        first_chat = first_chat or chat
        shown = chat.blocks if upto is not None or is_last else [*chat.blocks, *_closing(each)]
        taken = _newest(chat, shown, room, at_least=not read)
        room -= sum(block.weight for block in taken)
        blocks = [*taken, *blocks]
        reached = taken[0].first if taken else (shown[-1].last + 1 if shown else 1)
        if len(taken) < len(shown) or not chat.begins:
            return _made(blocks, Cursor(each.order, reached), first_chat)
        blocks = [opening_of(each), *blocks]
        index, upto = index - 1, None
        if room <= 0:
            break
    earlier = Cursor(turns[index].order, _END) if index >= 0 else None
    return _made(blocks, earlier, first_chat)


_END = 10**12
"""After the last step of any order."""


def _made(blocks: list[ChatBlock], earlier: Cursor | None, chat: Chat | None) -> Window:
    return Window(blocks, earlier, chat.resume if chat else 0, chat.last if chat else 0)


def _chat(core: Core, caller: Caller, turn: ShownTurn, before: int | None, *, active: bool) -> Chat:
    """The newest steps of the turn. If they begin within a call, they are read from further back, with the call."""
    limit = MOST_STEPS
    while True:
        steps = read_steps(core, caller, turn.order, StepRange(before=before, limit=limit, newest=True))
        chat = chat_of(turn.order, steps, active=active)
        if len(steps) < limit or (chat.blocks and not chat.splits_call):
            return chat
        limit *= 2


def _newest(chat: Chat, blocks: Sequence[ChatBlock], room: int, *, at_least: bool) -> list[ChatBlock]:
    """As many of the last blocks as there is room for; of the first page at least one, and all that can change.

    A call is not separated from what happened before its result.
    """
    taken = 0
    for block in reversed(blocks):
        room -= block.weight
        needed = at_least and (not taken or block.first > chat.resume)
        within = taken and any(each.last > blocks[-taken].first for each in blocks[:-taken])
        if room < 0 and not needed and not within:
            break
        taken += 1
    return list(blocks[len(blocks) - taken :])


def opening_of(turn: ShownTurn) -> Opening:
    """The beginning of a turn."""
    document, entry = turn.turn, turn.entry
    prompt = document.prompt if len(document.prompt) <= LONGEST_PROMPT else f"{document.prompt[:LONGEST_PROMPT]}…"
    return Opening(
        order=turn.order,
        first=0,
        last=0,
        at=document.created_at,
        user=document.user,
        html=plain(prompt.strip("\n")),
        label=(entry.label or "") if entry else "",
        entry=entry.id if entry else "",
    )


_ENDS = {"finished": "succeeded", "error": "failed", "aborted": "canceled"}
"""A turn in the words of its order."""


def _closing(turn: ShownTurn) -> list[ChatBlock]:
    document = turn.turn
    if document.ended_at is None:
        return []
    return [
        Closing(
            order=turn.order,
            first=_END - 1,
            last=_END - 1,
            at=document.ended_at,
            status=_ENDS.get(document.status, document.status),
            text=document.stats.duration_label,
            branch=document.branch,
        )
    ]
