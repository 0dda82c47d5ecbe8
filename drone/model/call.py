"""One streamed request through litellm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from drone.agent.values import RawAnswer
from drone.model.errors import AnswerInterrupted, StreamBroken
from drone.model.litellm_import import Client, litellm
from drone.model.raw_chunks import CUT, RawChunks
from drone.model.retry_after import headers_of
from drone.model.route import Route
from drone.model.stream_reader import Waits
from shared.work_order import OrderProvider

PLACEHOLDER_KEY = "no-key"
"""Sent to an endpoint without a key; otherwise litellm would take one from the environment."""


class ModelCall:
    """One streamed model call, and the figures known when it ended."""

    def __init__(self, way: Route, request: dict[str, Any], waits: Waits, client: Client) -> None:
        # Here and not in the pump's thread: a first import of litellm must not count as silence of the model.
        self._arguments = _arguments(way, request, waits, client)
        self._client = client
        self._raw = RawChunks(known=way.own_client)
        self.finish_reason = ""
        self.began = False
        """Whether any part of the answer arrived."""
        self.usage: Any = None
        """With tokens that litellm counted itself, if the endpoint reported none."""
        self.usage_reported = False
        self.headers: Mapping[str, Any] = {}
        """Of the answer."""
        self.details: list[Any] = []
        """OpenRouter's `reasoning_details`, piece by piece."""
        self.refusal = ""
        """Why the model refused to answer, in its own words."""

    def signs(self) -> int:
        """The endpoint's signs of life so far."""
        return self._raw.heard

    @property
    def raw(self) -> RawAnswer:
        """The answer so far as the endpoint sent it."""
        return RawAnswer("".join(f"{line}\n" for line in self._raw.lines), CUT if self._raw.is_cut else "")

    def chunks(self) -> Iterator[Any]:
        """Yield litellm's chunks; runs in the pump's thread.

        Raises AnswerInterrupted at the end if the answer is not complete.
        """
        raw = self._raw
        try:
            self._client.listen(raw)
            stream = litellm().completion(**self._arguments)
            self.headers = headers_of(stream)
            raw.listen(stream)
            for chunk in stream:
                self.began = True
                self.usage = getattr(chunk, "usage", None) or self.usage
                yield chunk
        except Exception as error:  # the boundary of foreign code, which wraps what is raised while it reads
            if raw.problem:
                raise AnswerInterrupted(raw.problem) from error
            if isinstance(error, OSError):
                # Translated here, where it can only be the connection's: elsewhere it may be the journal's disk.
                raise StreamBroken(f"{type(error).__name__}: {error}") from error
            raise
        finally:
            self._client.settle()
        # The usage that litellm counted itself is in none of the received chunks.
        self.usage_reported = any(getattr(chunk, "usage", None) for chunk in stream.chunks)
        self.finish_reason = raw.finish_reason(stream.received_finish_reason or stream.intermittent_finish_reason)
        self.details, self.refusal = raw.details, raw.refusal


def _arguments(way: Route, request: dict[str, Any], waits: Waits, client: Client) -> dict[str, Any]:
    provider = way.provider
    return {
        **request,
        "model": way.model,
        "api_base": provider.api_base,
        "api_key": provider.api_key or _no_key(provider),
        "client": client.get(_timeout(waits), accepted=way.own_client),
        "stream": True,
        "stream_options": {"include_usage": True},
        "timeout": _timeout(waits),
        # We retry ourselves: litellm's retries would be silent, and would not check whether the run must stop.
        "num_retries": 0,
        "max_retries": 0,
        # It would look among the tools for servers that its proxy calls, and import the package mcp for that.
        "_skip_mcp_handler": True,
    }


def _timeout(waits: Waits) -> httpx.Timeout:
    # The pump limits silence; the socket's timeout only ends abandoned reads.
    return httpx.Timeout(waits.first + 5, connect=waits.connect)


def _no_key(provider: OrderProvider) -> str | None:
    """What is sent instead of a key; None lets litellm sign the request with the AWS credentials of the drone.

    They, and a Bedrock key in the environment, are for Amazon alone, also at a private address of Amazon's.
    """
    host = urlsplit(provider.api_base or "").hostname or ""
    of_amazon = not provider.api_base or host.endswith(".amazonaws.com")
    return None if of_amazon and provider.model.startswith("bedrock/") else PLACEHOLDER_KEY
