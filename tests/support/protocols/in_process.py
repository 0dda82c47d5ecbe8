"""An endpoint without a server: its bytes reach LiteLLM through a transport of this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from drone.agent.values import ToolSpec
from drone.model.answer_assembly import Assembly
from drone.model.call import ModelCall
from drone.model.errors import Failure, classify
from drone.model.litellm_import import Client
from drone.model.route import Route
from drone.model.stream_reader import Waits
from shared.messages import Message
from shared.work_order import OrderProvider
from tests.support.clocks import HandClock
from tests.support.endpoints import Said
from tests.support.scripted import HELLO

CUSTOM = OrderProvider(name="p", model="openai/x", api_base="http://127.0.0.1:9/v1")
_NOW = datetime(2026, 11, 21, tzinfo=UTC)
_ECHO = ToolSpec("echo", "Return the text.", {"type": "object", "properties": {"text": {"type": "string"}}})


@dataclass(frozen=True)
class Read:
    """What became of an answer: a message, or a failure."""

    call: ModelCall
    message: Message | None = None
    failure: Failure | None = None

    @property
    def outcome(self) -> Any:
        """The text and the calls, or the class of the failure."""
        if self.failure is not None:
            return str(self.failure.error_class)
        assert self.message is not None
        calls = [(call.name, call.arguments) for call in self.message.tool_calls]
        return (self.message.content, *calls) if calls else self.message.content


def read(body: Said | Iterable[bytes], provider: OrderProvider = CUSTOM) -> Read:
    """Read one answer of an endpoint. Exceptions among its pieces are raised by the connection."""
    way = Route(provider)
    said = body if isinstance(body, Said) else None
    call = ModelCall(way, way.request(HELLO, [_ECHO]), Waits(), _Client(said, () if said else body))
    assembly = Assembly(lambda *_: None, HandClock(), way.family.thinking)
    try:
        for chunk in call.chunks():
            for choice in chunk.choices[:1]:
                assembly.add(choice.delta)
    except Exception as error:
        failure = classify(error, _NOW)
        if failure is None:
            raise
        return Read(call, failure=failure)
    return Read(call, assembly.message())


class _Client(Client):
    def __init__(self, said: Said | None, pieces: Iterable[Any]) -> None:
        super().__init__()
        self._said = said or Said(headers={"Content-Type": "text/event-stream"})
        self._pieces = pieces if said is None else said.pieces or (said.content,)

    def get(self, timeout: Any = None, *, accepted: bool = True) -> Any:
        from litellm.llms.custom_httpx.http_handler import HTTPHandler

        hooks = {"response": [self.hear]}
        return HTTPHandler(client=httpx.Client(transport=httpx.MockTransport(self._respond), event_hooks=hooks))

    def _respond(self, _: httpx.Request) -> httpx.Response:
        return httpx.Response(self._said.status, headers=dict(self._said.headers), stream=_Pieces(self._pieces))


class _Pieces(httpx.SyncByteStream):
    def __init__(self, pieces: Iterable[Any]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece
