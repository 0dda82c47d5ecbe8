"""A session at one of its turns, with what its page shows beside the conversation: figures, checks, changed files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from control_plane.contract.declarations.providers import ProviderDocument
from control_plane.contract.declarations.session_documents import EntryDocument, SessionDocument, TurnDocument
from control_plane.contract.documents.orders import OrderSummary, StepDocument
from control_plane.core import Caller, Core
from control_plane.core.patches.patch import read_patch
from control_plane.operations.orders import changes, reading
from control_plane.operations.orders.step_reading import StepRange, read_steps
from control_plane.operations.sessions import reading as sessions
from control_plane.web.conversation.grouping import body_of
from control_plane.web.conversation.window import ShownTurn
from control_plane.web.diffs.labels import shown_path
from shared.errors import NotFound
from shared.events import VerifyStep
from shared.outcome import Verification
from shared.states import ENDED, OrderStatus

MOST_VERIFY_STEPS = 200
ACTIVE = frozenset({OrderStatus.RUNNING, OrderStatus.AWAITING_APPROVAL})
"""In which the last block of an order may still grow."""


@dataclass(frozen=True)
class FileChange:
    """A changed file with its lines."""

    path: str
    plus: int
    minus: int


@dataclass(frozen=True)
class ContextUse:
    """How full the model's context was at its last call."""

    tokens: int
    window: int | None
    """None: not known here."""

    @property
    def percent(self) -> int | None:
        return min(100, round(100 * self.tokens / self.window)) if self.window else None


@dataclass(frozen=True)
class ConversationView:
    """A session at one of its turns."""

    session: SessionDocument
    turns: list[ShownTurn]
    """The way to the shown turn, which is the last one; empty for a session without turns."""
    order: OrderSummary | None
    next_order: str | None
    """The turn after the shown one, if there is one."""
    is_newest: bool
    """Whether the session's next turn continues from the shown one."""

    @property
    def ended(self) -> bool:
        return self.order is not None and OrderStatus(self.order.status) in ENDED

    @property
    def active(self) -> bool:
        return self.order is not None and self.order.status in ACTIVE

    @property
    def waiting_turns(self) -> list[TurnDocument]:
        """Turns that begin when the shown one has ended."""
        shown = self.order.id if self.order else ""
        orders = [turn.order for turn in self.session.unfinished]
        return self.session.unfinished[orders.index(shown) + 1 :] if shown in orders else []


def view_of_session(core: Core, caller: Caller, session_id: str) -> ConversationView:
    """A session at its running turn, else at the one that it continues from. Raises NotFound."""
    session = sessions.show(core, caller, session_id)
    entry = next((each for each in session.entries if each.is_leaf and each.turn), None)
    shown = session.running or (entry.turn.order if entry and entry.turn else None)
    return _view(session, reading.order_summary(core, caller, shown) if shown else None)


def view_of_order(core: Core, caller: Caller, order_id: str, *, fork: str = "") -> ConversationView:
    """The order's session at the order's turn; or that fork of it, if the turn is part of the fork. Raises NotFound."""
    order = reading.order_summary(core, caller, order_id)
    if fork not in {"", order.session}:
        forked = sessions.show(core, caller, fork)
        if any(each.turn and each.turn.order == order.id for each in forked.entries):
            return _view(forked, order)
    return _view(sessions.show(core, caller, order.session), order)


def _view(session: SessionDocument, order: OrderSummary | None) -> ConversationView:
    turns = _way(session, order.id) if order else []
    unfinished = [turn.order for turn in session.unfinished]
    entry = turns[-1].entry if turns else None
    if entry is None:
        following = unfinished[unfinished.index(order.id) + 1 :] if order and order.id in unfinished else []
        return ConversationView(session, turns, order, next(iter(following), None), not following)
    later = [each for each in session.entries if each.turn and each.parent == entry.id and each.on_path]
    after = [each.turn.order for each in later if each.turn] or (unfinished if entry.is_leaf else [])
    return ConversationView(session, turns, order, next(iter(after), None), entry.is_leaf and not unfinished)


def _way(session: SessionDocument, order_id: str) -> list[ShownTurn]:
    """The turns from the first one to this one."""
    of_turns = {each.id: each for each in session.entries if each.turn}
    # An order that ran several times has several entries.
    newest = {each.turn.order: each for each in of_turns.values() if each.turn}
    waiting = [turn.order for turn in session.unfinished]
    if order_id in newest and order_id not in waiting:
        return _up_to(of_turns, newest[order_id])
    again = newest.get(waiting[0]) if waiting else None
    leaf = next((each for each in of_turns.values() if each.is_leaf), None)
    # An order that runs again begins where it began before.
    begins_at = of_turns.get(again.parent or "") if again else leaf
    before = _up_to(of_turns, begins_at) if begins_at else []
    upto = waiting.index(order_id) + 1 if order_id in waiting else 0
    return [*before, *(ShownTurn(turn, None) for turn in session.unfinished[:upto])]


def _up_to(of_turns: dict[str, EntryDocument], entry: EntryDocument) -> list[ShownTurn]:
    way: list[ShownTurn] = []
    at: EntryDocument | None = entry
    while at is not None and at.turn is not None:
        way.append(ShownTurn(at.turn, at))
        at = of_turns.get(at.parent or "")
    return way[::-1]


# --- beside the conversation ---------------------------------------------------------------


def checks_of(core: Core, caller: Caller, order: OrderSummary) -> list[StepDocument]:
    """The results of the project's own commands in their last round; of an ended order, if they judged its work."""
    if order.ended_at and order.verification not in {Verification.VERIFIED, Verification.FAILED}:
        return []
    wanted = StepRange(kinds=("verify",), limit=MOST_VERIFY_STEPS, newest=True)
    found: list[StepDocument] = []
    attempt, commands = None, set[str]()
    for step in read_steps(core, caller, order.id, wanted):
        body = body_of(step.model_dump())
        if step.undone or not isinstance(body, VerifyStep):
            continue
        # After a message of a user, the commands run again, and their attempts are counted from one again.
        if (step.run, body.attempt) != attempt or body.command in commands:
            found, attempt, commands = [], (step.run, body.attempt), set()
        found.append(step)
        commands.add(body.command)
    return found


def context_use(
    core: Core, caller: Caller, order: OrderSummary, providers: Sequence[ProviderDocument]
) -> ContextUse | None:
    """The tokens of the order's last call; None before its first one."""
    last = read_steps(core, caller, order.id, StepRange(kinds=("assistant",), limit=1, newest=True))
    tokens = (last[0].model_dump().get("usage") or {}).get("input_tokens", 0) if last else 0
    if not tokens:
        return None
    provider = next((each for each in providers if each.name == order.provider), None)
    known = (provider.context_window or provider.check.context_window) if provider else None
    return ContextUse(tokens, known or None)


def changed_files(core: Core, caller: Caller, order_id: str) -> int:
    """How many files the panel with the changes shows; 0 also if they are unknown."""
    report = changes.reports_of(core, caller, order_id).of(None)[1]
    if report is None:
        return 0
    try:
        return changes.files_in(core, report)
    except NotFound:
        return 0


def files_of(core: Core, caller: Caller, order: OrderSummary) -> Sequence[FileChange] | None:
    """The changed files of an order that has ended; None if its patch is not known."""
    if order.ended_at is None or order.head_commit is None:
        return () if order.ended_at else None
    try:
        patch = reading.patch_of(core, caller, order.id)
    except NotFound:
        return None
    return [FileChange(shown_path(each.path), each.plus, each.minus) for each in read_patch(patch)]
