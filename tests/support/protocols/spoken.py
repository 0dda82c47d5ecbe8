"""What every protocol can say and ask, so that one test plays it on all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from drone.model.errors import ErrorClass
from shared.work_order import OrderProvider
from tests.support.endpoints import Doc, Said, halves

KEY = "dummy-key"


@dataclass(frozen=True)
class SpokenCall:
    """A call of a tool."""

    id: str
    name: str = "echo"
    arguments: Doc = field(default_factory=lambda: {"text": "x"})

    @property
    def json(self) -> str:
        return json.dumps(self.arguments)

    @property
    def halves(self) -> tuple[str, str]:
        return halves(self.json)


@dataclass(frozen=True)
class Counted:
    """Tokens of an answer. `asked` is the whole prompt, with what was read from and written to the cache."""

    asked: int = 1000
    answered: int = 50
    thought: int = 0
    read: int = 0
    written: int = 0


@dataclass(frozen=True)
class Answer:
    """One answer of a model. `usage`: None is never reported."""

    text: str = ""
    thinking: str = ""
    signature: str = ""
    calls: tuple[SpokenCall, ...] = ()
    usage: Counted | None = field(default_factory=Counted)


@dataclass(frozen=True)
class Part:
    """A part of a turn as the provider got it back: kind is thought, text, call or result."""

    kind: str
    text: str = ""
    id: str = ""
    name: str = ""
    native: Doc = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Refusal:
    """A failure as the provider words it, and what it means."""

    said: Said
    error_class: ErrorClass
    retry_after: float = 0.0


@dataclass(frozen=True)
class Spoken:
    """One protocol. `model` is a model of LiteLLM's price list that has it."""

    name: str
    model: str
    answer: Callable[[Answer], Said]
    parts: Callable[[Doc], list[Part]]
    """The parts of a request's conversation after the first user message, in their order."""
    prefix: Callable[[Doc], Any]
    """The system prompt and the tools of a request."""
    refusals: Sequence[Refusal]
    breaks: Sequence[Refusal]
    """Failures in the middle of a stream that began well."""
    path: str = "/v1"
    priced_as: str = ""
    """The model's name in LiteLLM's price list, where it is another one."""
    spare: int = 0
    """How many pieces at the end may be missing: the answer is complete without them."""
    thinks: bool = True
    """Whether thinking is shown."""
    native: bool = True
    """Whether thinking goes back in a form of its own; otherwise it goes back as text."""
    own_ids: bool = True
    """Whether calls have ids of the provider; otherwise LiteLLM makes them."""
    caches: bool = True
    """Whether usage tells what the cache gave."""
    writes: bool = False
    """Whether usage tells what the cache took."""
    counts_thought: bool = True
    estimated: bool = False
    """Whether LiteLLM presents its own count as the provider's if there is none."""
    params: Doc = field(default_factory=dict)

    def provider(self, url: str, **more: Any) -> OrderProvider:
        settings = {"api_key": KEY, "params": self.params, **more}
        return OrderProvider(name="p", model=self.model, api_base=url + self.path, **settings)

    def __str__(self) -> str:
        return self.name


def sse(*documents: Any, done: bool = False) -> list[bytes]:
    """Server-sent events without names, as chat completions and Gemini send them."""
    events = [f"data: {json.dumps(each)}\n\n".encode() for each in documents]
    return [*events, b"data: [DONE]\n\n"] if done else events


def named_sse(*documents: Doc) -> list[bytes]:
    """Server-sent events whose names are their types."""
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in documents]


def cut(said: Said, after: int) -> Said:
    """The same response, broken off after some pieces."""
    return replace(said, pieces=said.pieces[:after], ends="cut")


def ended(said: Said, after: int) -> Said:
    """The same response, ended properly after some pieces: nothing says that it is incomplete."""
    return replace(said, pieces=said.pieces[:after])


def left_open(said: Said, after: int, repeat: bytes = b"") -> Said:
    """The same response, which never ends after some pieces."""
    return replace(said, pieces=said.pieces[:after], ends="open", repeat=repeat)


def broken_by(said: Said, after: int, *pieces: bytes) -> Said:
    """The same response, with an error in the place of its rest."""
    return replace(said, pieces=(*said.pieces[:after], *pieces))


def of_kind(parts: Iterable[Part], kind: str) -> list[Part]:
    return [part for part in parts if part.kind == kind]
