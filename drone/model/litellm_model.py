"""Any model that LiteLLM reaches, behind the loop's protocol: streamed, retried by our rules, and cancelable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from drone.agent.protocols import Answer, Controls, ModelCallFailed, OnDelta, Recorder, ToolSpec
from drone.model.errors import ContentFiltered, Failure, StreamBroken, classify, sentence
from drone.model.foreign import Client, litellm
from drone.model.pump import LOOK_UP_EVERY, Waits, pumped
from drone.model.wire import Assembly, to_wire, tools_to_wire
from shared.backoff import delay
from shared.clock import Clock
from shared.events import RetryStep, Usage
from shared.messages import Message
from shared.work_order import Limits, OrderProvider

PLACEHOLDER_KEY = "no-key"
"""Sent to an endpoint of one's own that was given no key; else litellm would take one from the environment."""


@dataclass
class LiteLLMModel:
    """One order's provider and its fallbacks.

    `api_key` is the resolved key of `provider`; fallbacks carry theirs in `api_key`. Once a fallback had to step in,
    it stays for the rest of the run. `controls.check` is called while waiting, also before the first byte.
    """

    provider: OrderProvider
    api_key: str | None
    limits: Limits
    recorder: Recorder
    clock: Clock
    controls: Controls
    waits: Waits = field(default_factory=Waits)

    def __post_init__(self) -> None:
        self._client = Client()
        self.provider = self.provider.model_copy(update={"api_key": self.api_key or self.provider.api_key})
        self._fallbacks = list(self.provider.fallbacks)

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_delta: OnDelta) -> Answer:
        """Put the transcript to the provider, then to its fallbacks, and return the first whole answer.

        Raises ModelCallFailed when none of them gave one.
        """
        request = {"messages": to_wire(messages), "tools": tools_to_wire(tools) or None}
        while True:
            try:
                return self._persist(request, on_delta)
            except ModelCallFailed as failed:
                if not self._fallbacks:
                    raise
                self.provider = self._fallbacks.pop(0)
                what = f"{failed.what} Going on with {self.provider.model}."
                self.recorder.record(RetryStep(attempt=0, delay_s=0, error_class=failed.error_class, error=what))

    def close(self) -> None:
        """Let go of the connection that is kept between calls."""
        self._client.drop()

    def _persist(self, request: dict[str, Any], on_delta: OnDelta) -> Answer:
        """Repeat the call as long as its failures are of a kind that may pass."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._ask(request, on_delta)
            except Exception as error:  # the boundary of foreign code: translated here, once
                failure = classify(error, self.clock.now())
                if failure is None:
                    raise  # a bug, or a signal of the loop's own
                if not (self.limits.retry_enabled and failure.retried and attempt <= self.limits.max_retries):
                    raise self._failed(failure) from error
            self._wait(attempt, failure)

    def _wait(self, attempt: int, failure: Failure) -> None:
        wait = delay(attempt, base=self.limits.base_delay, retry_after=failure.retry_after)
        said = sentence(failure, self.provider)
        self.recorder.record(
            RetryStep(attempt=attempt, delay_s=round(wait, 3), error_class=failure.error_class, error=said)
        )
        self.recorder.doing(f"waiting {wait:.0f} s before asking the model again")
        until = self.clock.monotonic() + wait
        while (left := until - self.clock.monotonic()) > 0:
            self.controls.check()
            self.clock.sleep(min(left, LOOK_UP_EVERY))

    def _failed(self, failure: Failure) -> ModelCallFailed:
        return ModelCallFailed(
            sentence(failure, self.provider),
            error_class=failure.error_class,
            detail=failure.detail,
            next=f"fleet provider show {self.provider.name}",
        )

    def _ask(self, request: dict[str, Any], on_delta: OnDelta) -> Answer:
        """Make one call. Nothing of an answer that broke off is kept: no tool ever runs on half a message."""
        started = self.clock.monotonic()
        call = _Call(self.provider, request, self.waits, self._client)
        assembly = Assembly(on_delta)
        try:
            with closing(pumped(call.chunks, self.controls.check, self.waits, self.clock)) as chunks:
                for chunk in chunks:
                    for choice in chunk.choices[:1]:
                        assembly.add(choice.delta)
        except BaseException:
            self._client.drop()
            raise
        if not call.finish_reason:
            raise StreamBroken("the stream ended before the answer did, or was no stream of answers at all")
        message = assembly.message()
        if call.finish_reason == "content_filter" and not message.tool_calls:
            raise ContentFiltered("the endpoint ended the answer with finish_reason content_filter")
        return Answer(
            message=message,
            usage=_usage(call.usage, self.provider.model),
            finish_reason=call.finish_reason,
            model=self.provider.model,
            duration_ms=round((self.clock.monotonic() - started) * 1000),
        )


class _Call:
    """One streamed request through litellm, and what it said about itself when it ended."""

    def __init__(self, provider: OrderProvider, request: dict[str, Any], waits: Waits, client: Client) -> None:
        # Here and not in the pump's thread: a first import of litellm is no silence of the model's.
        self._arguments = _arguments(provider, request, waits, client)
        self.finish_reason = ""
        self.usage: Any = None

    def chunks(self) -> Iterator[Any]:
        """Yield litellm's chunks; runs in the pump's thread."""
        try:
            stream = litellm().completion(**self._arguments)
            for chunk in stream:
                self.usage = getattr(chunk, "usage", None) or self.usage
                yield chunk
        except OSError as error:
            # Translated here, where an OSError can only be the connection's: outside it may be the journal's disk.
            raise StreamBroken(f"{type(error).__name__}: {error}") from error
        # litellm makes up a "stop" for a stream that ended without a reason; only what came from the wire counts.
        self.finish_reason = stream.received_finish_reason or stream.intermittent_finish_reason or ""


def _arguments(provider: OrderProvider, request: dict[str, Any], waits: Waits, client: Client) -> dict[str, Any]:
    import httpx

    model, own_path = _route(provider)
    return {
        **provider.params,
        **request,
        "model": model,
        "api_base": provider.api_base,
        "api_key": provider.api_key or (PLACEHOLDER_KEY if provider.api_base else None),
        "client": client.get() if own_path else None,
        "stream": True,
        "stream_options": {"include_usage": True},
        # The pump bounds silence; the socket's own limit only ends what was given up.
        "timeout": httpx.Timeout(waits.first + 5, connect=waits.connect),
        # Retries are ours: litellm's would be silent, and would not look up when the run is called away.
        "num_retries": 0,
        "max_retries": 0,
    }


def _route(provider: OrderProvider) -> tuple[str, bool]:
    """Name the model for litellm, and say whether the call takes litellm's own HTTP path.

    Through `openai/` litellm's SDK transforms every past message at each call, so that a step costs more the longer
    the run is; an endpoint with an address of its own speaks the same protocol and takes the path that does not.
    """
    prefix, _, rest = provider.model.partition("/")
    if not provider.api_base:
        return provider.model, False
    if prefix in {"openai", "custom_openai", "hosted_vllm"} and rest:
        return f"hosted_vllm/{rest}", True
    if prefix not in litellm().provider_list:
        return f"hosted_vllm/{provider.model}", True
    return provider.model, False


def _usage(usage: Any, model: str) -> Usage:
    """Read tokens and price off litellm's usage; thinking tokens are part of the output tokens."""
    if usage is None:
        return Usage()
    answered = getattr(usage.completion_tokens_details, "reasoning_tokens", None)
    asked = getattr(usage.prompt_tokens_details, "cached_tokens", None)
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        thinking_tokens=answered or 0,
        cached_tokens=asked or 0,
        cost_usd=_price(usage, model),
    )


def _price(usage: Any, model: str) -> float | None:
    """USD by litellm's price list; None where the list does not have the model, which is never the same as 0."""
    module = litellm()
    try:
        asked, answered = module.cost_per_token(model=model, usage_object=usage)
    except (module.ModelNotMappedError, module.BadRequestError, module.NotFoundError):
        return None
    return float(asked + answered)
