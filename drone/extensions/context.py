"""The context passed to a handler with its event: a view of the run, and requests to it (O-057)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

from drone.agent.agent import Agent
from drone.agent.hooks.calling import inside, plain
from drone.agent.hooks.observer import ObservedRecorder
from drone.extensions.controls import HeldControls
from shared.errors import Conflict
from shared.messages import Message

LOOK_UP_EVERY = 0.05


@dataclass(frozen=True)
class ContextUsage:
    """How full the model's window is."""

    tokens: int | None
    """As of the last answer; None while no count is known."""
    window: int


@dataclass(frozen=True)
class SessionManager:
    """The run's session. It cannot be changed from within: it changes only while it is idle."""

    id: str
    name: str
    mode: str
    entries: Callable[[], tuple[Message, ...]]
    """Returns the conversation as the model has it, without the system prompt."""


@dataclass(frozen=True)
class RegisteredModel:
    """A model that the run may use; its key is not here."""

    provider: str
    model: str
    thinking: str | None
    """None: the model's default."""


class RunSignal:
    """Tells threads of an extension that the run is to end."""

    def __init__(self, is_ending: Callable[[], bool], sleep: Callable[[float], None]) -> None:
        self._is_ending = is_ending
        self._sleep = sleep

    @property
    def aborted(self) -> bool:
        """Whether the run is to end."""
        return self._is_ending()

    def wait(self, seconds: float) -> bool:
        """Wait until the run is to end; False if `seconds` elapse first."""
        until = time.monotonic() + seconds
        while not self.aborted:
            if time.monotonic() >= until:
                return False
            self._sleep(LOOK_UP_EVERY)
        return True


class Running(Protocol):
    """The part of the run that extensions can access."""

    @property
    def cwd(self) -> Path: ...

    @property
    def session_id(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def prompt(self) -> str: ...

    @property
    def session(self) -> SessionManager: ...

    @property
    def models(self) -> Sequence[RegisteredModel]: ...

    def is_ending(self) -> bool: ...

    def is_idle(self) -> bool: ...

    def has_pending_messages(self) -> bool: ...

    def abort(self, reason: str) -> None: ...

    def shutdown(self, reason: str) -> None: ...

    def context_usage(self) -> ContextUsage: ...

    def system_prompt(self) -> str: ...

    def ask_compaction(self, instructions: str) -> None: ...

    def compact_now(self, instructions: str) -> bool:
        """Compact; only called while the agent is idle. False: nothing could be compacted."""
        ...


@dataclass(frozen=True)
class RunningAgent:
    """Implements `Running` for an agent with these controls and this recorder."""

    agent: Agent
    controls: HeldControls
    recorder: ObservedRecorder
    cwd: Path
    session_id: str
    model: str
    compact_now: Callable[[str], bool]
    """Compacts the agent's conversation between two runs of the loop."""
    prompt: str = ""
    session_name: str = ""
    mode: str = "build"
    models: Sequence[RegisteredModel] = ()

    @property
    def session(self) -> SessionManager:
        return SessionManager(self.session_id, self.session_name, self.mode, lambda: tuple(self.agent.transcript[1:]))

    def is_ending(self) -> bool:
        return self.controls.is_ending()

    def is_idle(self) -> bool:
        return self.agent.phase == "idle"

    def has_pending_messages(self) -> bool:
        return self.controls.pending()

    def abort(self, reason: str) -> None:
        self.controls.end(reason)

    def shutdown(self, reason: str) -> None:
        self.controls.end_after_step(reason)

    def context_usage(self) -> ContextUsage:
        return ContextUsage(self.recorder.context_tokens, self.agent.model.window)

    def system_prompt(self) -> str:
        return next((message.content for message in self.agent.transcript[:1]), "")

    def ask_compaction(self, instructions: str) -> None:
        self.controls.ask_compaction(instructions)


class ExtensionContext:
    """The context object, one for all extensions of a run. Before the run begins, everything except `reload` fails."""

    def __init__(self, reload: Callable[[], None], sleep: Callable[[float], None] = time.sleep) -> None:
        self._reload = reload
        self._sleep = sleep
        self._bound: Running | None = None

    def bind(self, running: Running) -> None:
        """Called by the run, before it begins."""
        self._bound = running

    @property
    def cwd(self) -> Path:
        """The workspace, absolute."""
        return self._running.cwd

    @property
    def session_id(self) -> str:
        return self._running.session_id

    @property
    def model(self) -> str:
        """The provider's name for the model."""
        return self._running.model

    @property
    def prompt(self) -> str:
        """The user's prompt as written, also in a resumed run."""
        return self._running.prompt

    @property
    def session_manager(self) -> SessionManager:
        """The session, to read."""
        return self._running.session

    @property
    def model_registry(self) -> Sequence[RegisteredModel]:
        """The order's model and its fallbacks, in the order in which they are asked."""
        return self._running.models

    @property
    def signal(self) -> RunSignal:
        """Whether the run is to end, for threads that work beside it."""
        return RunSignal(self._running.is_ending, self._sleep)

    def is_idle(self) -> bool:
        """Whether the agent is neither running a turn nor compacting."""
        return self._running.is_idle()

    def has_pending_messages(self) -> bool:
        """Whether there are user messages that the model has not received yet."""
        return self._running.has_pending_messages()

    def abort(self, reason: str = "no reason given.") -> None:
        """End the run as soon as possible, also within a command; the work is kept, the exit status is `halted`."""
        self._running.abort(plain(str(reason)))

    def shutdown(self, reason: str = "no reason given.") -> None:
        """End the run when the calls of the model's last message are done; otherwise as `abort`."""
        self._running.shutdown(plain(str(reason)))

    def get_context_usage(self) -> ContextUsage:
        """Tokens of the conversation, and the model's window."""
        return self._running.context_usage()

    def get_system_prompt(self) -> str:
        """The model's current system prompt; empty until the first turn begins."""
        return self._running.system_prompt()

    def compact(self, instructions: str = "") -> None:
        """Request a compaction before the next question to the model."""
        self._running.ask_compaction(plain(str(instructions)))

    def run_compaction(self, instructions: str = "") -> bool:
        """Compact now; True if anything was compacted. Raises Conflict unless the agent is idle."""
        if not self._running.is_idle():
            raise Conflict(
                "the agent is busy", code="E-AGENT-BUSY", next="use compact(), which waits for the next request"
            )
        return self._running.compact_now(plain(str(instructions)))

    def reload(self) -> None:
        """Reload all extensions and guardrails; inside a handler, after the event. Tools stay unchanged."""
        self._reload()

    def wait_for_idle(self, seconds: float | None = None) -> bool:
        """Wait until the agent is idle; False if `seconds` elapse first. Raises Conflict inside a handler."""
        if inside():
            raise Conflict(
                "a handler cannot wait for the agent, which waits for the handler",
                code="E-EXTENSION",
                next="wait in a separate thread",
            )
        until = None if seconds is None else time.monotonic() + seconds
        while not self._running.is_idle():
            if until is not None and time.monotonic() >= until:
                return False
            self._sleep(LOOK_UP_EVERY)
        return True

    def new_session(self) -> NoReturn:
        """Raises Conflict: the session is busy with this run."""
        raise _elsewhere("new")

    def fork(self) -> NoReturn:
        """Raises Conflict: the session is busy with this run."""
        raise _elsewhere("fork")

    def switch_session(self) -> NoReturn:
        """Raises Conflict: the session is busy with this run."""
        raise _elsewhere("switch")

    @property
    def _running(self) -> Running:
        if self._bound is None:
            raise Conflict("the run has not started yet", code="E-EXTENSION", next="use the context in a handler")
        return self._bound


def _elsewhere(command: str) -> Conflict:
    return Conflict(
        "a run cannot change its session",
        code="E-EXTENSION",
        why="a session changes only while it is idle, and this run is one of its turns",
        next=f"fleet session {command}",
    )
