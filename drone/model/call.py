"""One streamed request through litellm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drone.model.errors import StreamBroken
from drone.model.litellm_import import Client, litellm
from drone.model.retry_after import headers_of
from drone.model.route import Route
from drone.model.stream_reader import Waits

PLACEHOLDER_KEY = "no-key"
"""Sent to a custom endpoint without a key; otherwise litellm would take one from the environment."""


class ModelCall:
    """One streamed model call, and the figures known when it ended."""

    def __init__(self, way: Route, request: dict[str, Any], waits: Waits, client: Client) -> None:
        # Here and not in the pump's thread: a first import of litellm must not count as silence of the model.
        self._arguments = _arguments(way, request, waits, client)
        self._client = client
        self._details_wanted = way.family.thinking == "details"
        self.finish_reason = ""
        self.began = False
        """Whether any part of the answer arrived."""
        self.usage: Any = None
        """With tokens that litellm counted itself, if the endpoint reported none."""
        self.usage_reported = False
        self.headers: Mapping[str, Any] = {}
        """Of the answer."""
        self.details: list[Any] = []
        """OpenRouter's `reasoning_details`, piece by piece: litellm drops a chunk that contains nothing else."""

    def chunks(self) -> Iterator[Any]:
        """Yield litellm's chunks; runs in the pump's thread."""
        try:
            stream = litellm().completion(**self._arguments)
            self.headers = headers_of(stream)
            if self._details_wanted:
                stream.completion_stream = self._tapped(stream.completion_stream)
            for chunk in stream:
                self.began = True
                self.usage = getattr(chunk, "usage", None) or self.usage
                yield chunk
        except OSError as error:
            # Translated here, where an OSError can only be the connection's: elsewhere it may be the journal's disk.
            raise StreamBroken(f"{type(error).__name__}: {error}") from error
        finally:
            self._client.settle()
        # The usage that litellm counted itself is in none of the received chunks.
        self.usage_reported = any(getattr(chunk, "usage", None) for chunk in stream.chunks)
        # litellm invents a "stop" for a stream that ended without a reason; only a received reason counts.
        self.finish_reason = stream.received_finish_reason or stream.intermittent_finish_reason or ""

    def _tapped(self, stream: Iterator[Any]) -> Iterator[Any]:
        for chunk in stream:
            for choice in getattr(chunk, "choices", ())[:1]:
                self.details += getattr(choice.delta, "reasoning_details", None) or ()
            yield chunk


def _arguments(way: Route, request: dict[str, Any], waits: Waits, client: Client) -> dict[str, Any]:
    import httpx

    provider = way.provider
    return {
        **request,
        "model": way.model,
        "api_base": provider.api_base,
        "api_key": provider.api_key or (PLACEHOLDER_KEY if provider.api_base else None),
        "client": client.get() if way.own_client else None,
        "stream": True,
        "stream_options": {"include_usage": True},
        # The pump limits silence; the socket's timeout only ends abandoned reads.
        "timeout": httpx.Timeout(waits.first + 5, connect=waits.connect),
        # We retry ourselves: litellm's retries would be silent, and would not check whether the run must stop.
        "num_retries": 0,
        "max_retries": 0,
    }
