"""The event system: handlers by the name of their event, called in the order in which they were registered.

Errors of a handler never propagate. Each failure is reported once and ignored; the exception is a policy handler of
`tool_call`: if it gives no answer, the call is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast

from drone.agent.hooks import events as hook
from drone.agent.hooks.calling import CallFailed, Calling, WrongAnswer, at_once, inside, plain
from drone.agent.hooks.events import Block, CancelCompaction, Patch
from drone.agent.in_memory import NoHooks
from drone.agent.protocols import Hooks
from drone.agent.values import Patched, ToolResult
from shared.messages import Message, ToolCall

T = TypeVar("T")
Handler = Callable[[Any, Any], object]
"""Called with the event, which contains the payload, and the context."""
Report = Callable[[str, str], object]
"""Takes one sentence for people and the full detail."""

EVERYTHING = "*"
"""A handler registered for this observes every event; its return value is ignored."""
TOO_OFTEN = 10
"""Failures after which a handler is switched off for the run, so that one cannot fill the journal."""


@dataclass(eq=False)
class Registered:
    """One handler for one event."""

    event: str
    act: Handler
    source: str = "a handler"
    """Where it comes from, for people: the extension's file."""
    policy: bool = False
    active: bool = True
    failures: int = 0
    closed: str = field(default="", init=False)
    """Why it is switched off; empty while it is active."""

    def __post_init__(self) -> None:
        if self.event != EVERYTHING and self.event not in hook.EVENTS:
            raise ValueError(f"unknown event {self.event!r}: expected one of {', '.join(hook.EVENTS)}, *")
        if not callable(self.act):
            raise TypeError(f"the handler of {self.event} is not callable")
        if inspect.iscoroutinefunction(self.act):
            raise TypeError(f"the handler of {self.event} is async; handlers must be plain functions")


class HookBus:
    """Implements `drone.agent.protocols.Hooks`.

    `calling` calls a handler and limits its time; `between` is called after each notification, which needs no answer.
    """

    def __init__(
        self,
        report: Report,
        context: object = None,
        calling: Calling = at_once,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        self._report = report
        self._context = context
        self._calling = calling
        self._between = between
        self._all: tuple[Registered, ...] = ()
        self._by_name: dict[str, tuple[Registered, ...]] = {}

    def on(self, event: str, act: Handler, *, source: str = "a handler", policy: bool = False) -> Callable[[], None]:
        """Register a handler, and return a function that removes it. Raises ValueError or TypeError if invalid."""
        one = Registered(event, act, source, policy)
        self.add(one)
        return lambda: self.remove(one)

    def add(self, one: Registered) -> None:
        self.replace([*self._all, one])

    def remove(self, one: Registered) -> None:
        one.active = False
        self.replace(self._all)

    def replace(self, handlers: Iterable[Registered]) -> None:
        """Use exactly these handlers from now on."""
        self._all = tuple(one for one in handlers if one.active)
        self._by_name = {
            name: tuple(one for one in self._all if one.event in (name, EVERYTHING)) for name in hook.EVENTS
        }

    def listens(self, *events: str) -> bool:
        """Whether any handler would receive one of these events; without names, any event at all."""
        return any(map(self._by_name.get, events)) if events else bool(self._all)

    # --- what the loop calls ------------------------------------------------------

    def notify(self, event: hook.HookEvent) -> None:
        for one in self._handlers_of(event.name):
            self._ask(one, event, _nothing)
        if not inside():
            self._between()

    def system_prompt(self, text: str) -> str:
        for one in self._handlers_of(hook.BeforeAgentStart.name):
            text = self._ask(one, hook.BeforeAgentStart(text), _prompt) or text
        return text

    def input(self, text: str) -> str:
        for one in self._handlers_of(hook.Input.name):
            text = self._ask(one, hook.Input(text), _text) or text
        return text

    def receive(self, text: str, source: Literal["steer", "follow_up"]) -> str | hook.Block:
        for one in self._handlers_of(hook.MessageReceive.name):
            answer = self._ask(one, hook.MessageReceive(text, source), _text_or_block)
            if isinstance(answer, hook.Block):
                return answer
            text = answer or text
        return text

    def context(self, messages: Sequence[Message]) -> Sequence[Message]:
        for one in self._handlers_of(hook.ContextEvent.name):
            answer = self._ask(one, hook.ContextEvent(tuple(messages)), _history)
            messages = messages if answer is None else answer
        return messages

    def ephemeral(self) -> Sequence[Message]:
        found: list[Message] = []
        for one in self._handlers_of(hook.Ephemeral.name):
            found += self._ask(one, hook.Ephemeral(), _for_one_question) or ()
        return found

    def for_children(self) -> Hooks:
        """The hooks of a child agent: no extensions (O-080), but policies apply to its calls as well."""
        return _PoliciesAlone(self)

    def block(self, call: ToolCall, *, policies_alone: bool = False) -> str | None:
        """Return why this call must not run, from the first handler that refuses it; None if none does."""
        event = hook.ToolCalled(call)
        for one in self._handlers_of(event.name):
            if policies_alone and not one.policy:
                continue
            if one.policy and one.closed:
                return one.closed
            try:
                answer = self._answer(one, event, _refusal)
            except CallFailed as failed:
                if failed.why == "run_ends":
                    return "the run was asked to stop."
                answer = f"{one.source} is a policy and failed: {failed.what}." if one.policy else None
            if answer is not None:
                return answer
        return None

    def patched(self, call: ToolCall, result: ToolResult) -> Patched:
        terminate = False
        for one in self._handlers_of(hook.ToolReturned.name):
            patch = self._ask(one, hook.ToolReturned(call, result), _patch)
            if patch is None:
                continue
            terminate = terminate or patch.terminate is True
            if patch.output is not None:
                result = replace(result, output=patch.output)
            if patch.is_error is not None:
                result = replace(result, is_error=patch.is_error)
        return Patched(result, terminate)

    def before_compaction(self, event: hook.BeforeCompaction) -> hook.CancelCompaction | str | None:
        """Return the answer of the first handler that has one."""
        found = None
        for one in self._handlers_of(event.name):
            found = found or self._ask(one, event, _summary)
        return found

    # --- one handler --------------------------------------------------------------

    def _handlers_of(self, event: str) -> tuple[Registered, ...]:
        # Events caused by a handler are sent to no handler, to prevent endless recursion.
        return () if inside() else self._by_name.get(event, ())

    def _ask(self, one: Registered, event: hook.HookEvent, read: Callable[[object], T]) -> T | None:
        try:
            return self._answer(one, event, read)
        except CallFailed:
            return None

    def _answer(self, one: Registered, event: hook.HookEvent, read: Callable[[object], T]) -> T | None:
        """Return a handler's answer, None if it has none. Raises CallFailed after reporting it."""
        if one.closed or not one.active:
            return None

        def asked() -> T | None:
            answer = one.act(event, self._context)
            # Read inside the call as well: the returned value may run foreign code itself, such as a generator.
            return None if answer is None or one.event == EVERYTHING else read(answer)

        try:
            return cast("T | None", self._calling(asked))
        except CallFailed as failed:
            if failed.why != "run_ends":
                self._failed(one, event, failed)
            raise

    def _failed(self, one: Registered, event: hook.HookEvent, failed: CallFailed) -> None:
        one.failures += 1
        end = "."
        if failed.why == "overdue" or (one.failures >= TOO_OFTEN and not one.policy):
            one.closed = f"{one.source} is disabled for this run: {failed.what}."
            end = "; it is disabled for this run."
        if one.failures <= TOO_OFTEN:
            self._report(f"{_capital(one.source)} failed on {event.name}: {failed.what}{end}", failed.detail)


class _PoliciesAlone(NoHooks):
    def __init__(self, bus: HookBus) -> None:
        self._bus = bus

    def block(self, call: ToolCall) -> str | None:
        return self._bus.block(call, policies_alone=True)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# --- what handlers may return, by event -----------------------------------------------------------
#
# Other values are refused with a message for the handler's author.


def _nothing(_answer: object) -> None:
    """Ignore the return value of an observer."""


def _prompt(answer: object) -> str:
    """The complete new system prompt."""
    if isinstance(answer, str) and answer.strip():
        return plain(answer)
    raise _wrong(answer, "a non-empty string")


def _text(answer: object) -> str:
    """What the model is given in place of a user's text."""
    if isinstance(answer, str) and answer.strip():
        return plain(answer)
    raise _wrong(answer, "a non-empty string")


def _text_or_block(answer: object) -> str | Block:
    """The same, or why the model is not given it."""
    return Block(_refusal(answer)) if isinstance(answer, Block) else _text(answer)


def _history(answer: object) -> list[Message]:
    """The messages to continue with, without the system prompt."""
    messages = _messages(answer)
    if any(message.role == "system" for message in messages):
        raise WrongAnswer("it returned a system message; use before_agent_start for the system prompt")
    return messages


def _for_one_question(answer: object) -> list[Message]:
    """Messages after the transcript: only user messages are allowed, or the sequence would be invalid."""
    if isinstance(answer, str):
        return [Message(role="user", content=plain(answer))] if answer.strip() else []
    messages = [answer] if isinstance(answer, Message) else _messages(answer)
    if any(message.role != "user" for message in messages):
        raise WrongAnswer("it returned a message whose role is not user")
    return messages


def _refusal(answer: object) -> str:
    """Why a call must not run."""
    reason = answer.reason if isinstance(answer, Block) else answer
    if isinstance(reason, str):
        return plain(reason.strip()) or "an extension does not allow it."
    raise _wrong(answer, "a string or a Block")


def _patch(answer: object) -> Patch:
    """The changes to a result."""
    if not isinstance(answer, Patch):
        raise _wrong(answer, "a Patch")
    if not isinstance(answer.output, str | None) or not isinstance(answer.is_error, bool | None):
        raise WrongAnswer("it returned a Patch whose fields have the wrong types")
    return answer if answer.output is None else replace(answer, output=plain(answer.output))


def _summary(answer: object) -> CancelCompaction | str:
    """CANCEL, or the summary for a compaction."""
    if isinstance(answer, CancelCompaction):
        return answer
    if isinstance(answer, str) and answer.strip():
        return plain(answer)
    raise _wrong(answer, "CANCEL or a summary")


def _messages(answer: object) -> list[Message]:
    if isinstance(answer, Iterable) and not isinstance(answer, str | bytes | dict | Message):
        found = list(answer)
        if all(isinstance(message, Message) for message in found):
            return found
    raise _wrong(answer, "a list of Message")


def _wrong(answer: object, wanted: str) -> WrongAnswer:
    return WrongAnswer(f"it returned {type(answer).__name__}, not {wanted}")
