"""Any model available through LiteLLM, behind the loop's protocol: streamed, retried by our rules, and cancelable."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from random import SystemRandom
from typing import Any

from drone.agent.protocols import Controls, Recorder
from drone.agent.values import ModelCallFailed, ModelResponse, OnDelta, ToolSpec
from drone.model.answer_assembly import Assembly
from drone.model.call import ModelCall
from drone.model.errors import (
    ContentFiltered,
    ErrorClass,
    Failure,
    cause_of,
    classify,
    may_be_charged,
    remedy,
    sentence,
    set_key,
)
from drone.model.litellm_import import Client
from drone.model.metering import Meter, MeteredCall, Unmetered
from drone.model.permits import ExpectedTokens, Permit, Permits, Unrestricted, tokens_of
from drone.model.retry_after import headers_of
from drone.model.route import Route, window_of
from drone.model.stream_reader import LOOK_UP_EVERY, Waits, pumped
from shared.backoff import delay
from shared.clock import Clock
from shared.events import CommentStep, RetryStep
from shared.loopback import bypass_proxies
from shared.messages import Message
from shared.work_order import Limits, OrderProvider


@dataclass
class LiteLLMModel:
    """One order's provider and its fallbacks.

    `api_key` is the resolved key of `provider`; fallbacks have theirs in `api_key`. One that failed is not asked again
    in this run. `controls.check` is called while waiting, also before the first byte: if it checks the run's limits
    too, they bound all waiting. Each attempt takes one of `permits` first.
    """

    provider: OrderProvider
    api_key: str | None
    limits: Limits
    recorder: Recorder
    clock: Clock
    controls: Controls
    waits: Waits = field(default_factory=Waits)
    meter: Meter = field(default_factory=Unmetered)
    permits: Permits = field(default_factory=Unrestricted)
    set_key: str = ""
    """The command that sets another key, if no control plane keeps it."""

    def __post_init__(self) -> None:
        self._client = Client()
        self._expected = ExpectedTokens()
        # By the provider's name. Both need litellm, which takes seconds to load, so they are computed only when needed.
        self._routes: dict[str, Route] = {}
        self._windows: dict[str, int] = {}
        self.provider = self.provider.model_copy(update={"api_key": self.api_key or self.provider.api_key})
        self._rotation = _ModelRotation(self.provider)
        bypass_proxies(os.environ, *(each.api_base or "" for each in (self.provider, *self.provider.fallbacks)))

    @property
    def window(self) -> int:
        """Maximum tokens of question and answer together, for each provider that may answer next."""
        return min(self._window_of(each) for each in self._rotation.candidates)

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_delta: OnDelta) -> ModelResponse:
        """Send the transcript to the provider whose turn it is, then to the others, and return the first whole answer.

        Raises ModelCallFailed when none of them gave one, and immediately when the transcript is too long: the caller
        can shorten it, and no other provider could.
        """
        self.provider = self._rotation.choose(messages)
        while True:
            try:
                return self._persist(messages, tools, on_delta)
            except ModelCallFailed as failed:
                if failed.error_class == ErrorClass.CONTEXT_OVERFLOW:
                    raise
                other = self._rotation.replace_failed()
                if other is None:
                    raise
                self.provider = other
                self._record(0, 0, failed.error_class, f"{failed.what} Continuing with {self.provider.model}.")

    def close(self) -> None:
        """Close the connection that is kept between calls."""
        self._client.drop()

    def _window_of(self, provider: OrderProvider) -> int:
        if provider.name not in self._windows:
            self._windows[provider.name] = window_of(provider)
        return self._windows[provider.name]

    def _persist(self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_delta: OnDelta) -> ModelResponse:
        """Retry the call while its failures may be temporary or a change of the request may fix them."""
        way = self._route()
        attempt = 1
        while True:
            permit, metered = self._admitted(messages, tools)
            try:
                answer, headers = self._ask(way, messages, tools, on_delta, metered)
            except Exception as error:  # the boundary of foreign code: translated here, once
                failure = classify(error, self.clock.now())
                awaited = self._reported(permit, error, failure)
                if failure is None:
                    raise  # a bug, or a signal of the loop
                changed = way.concede(failure, tools)
                if not changed and not _may_pass(failure, attempt, self.limits):
                    raise self._failed(failure) from error
            else:
                self._expected.learned(messages, answer.usage)
                permit.answered(headers, tokens_of(answer.usage))
                return answer
            if changed:
                self._record(attempt, 0, failure.error_class, f"{sentence(failure, self.provider)} {changed}")
                continue
            # The next permit comes when it is time to retry: a pause of our own would only add to it.
            seconds = 0.0 if awaited else _retry_delay(failure, attempt, self.limits)
            self._record(attempt, seconds, failure.error_class, sentence(failure, self.provider))
            if not awaited:
                self._wait(seconds)
            attempt += 1

    def _route(self) -> Route:
        """The way to the current provider; what a new one changes about the thinking level is recorded."""
        way = self._routes.get(self.provider.name)
        if way is None:
            way = self._routes[self.provider.name] = Route(self.provider)
            if way.effort.note:
                self.recorder.record(CommentStep(text=way.effort.note))
        return way

    def _admitted(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> tuple[Permit, MeteredCall]:
        """Wait for a permit, and then for the call's money: what waits for a permit would be missing elsewhere.

        A call that waits for its money has no permit meanwhile.
        """
        tokens = self._expected.of(messages, self.provider.params)
        held = [self.permits.take(self.provider.name, tokens)]

        @contextmanager
        def put_off() -> Iterator[None]:
            held.pop().unused()
            yield
            held.append(self.permits.take(self.provider.name, tokens))

        try:
            metered = self.meter.reserve(self.provider, messages, tools, put_off)
        except BaseException:
            for permit in held:
                permit.unused()
            raise
        return held[0], metered

    def _reported(self, permit: Permit, error: Exception, failure: Failure | None) -> bool:
        """End a failed call's permit. Returns whether the next permit comes when it is time to retry."""
        if failure is not None and failure.error_class is ErrorClass.RATE_LIMIT:
            return permit.refused(headers_of(cause_of(error)), failure.retry_after)
        permit.failed()
        return False

    def _wait(self, seconds: float) -> None:
        self.recorder.doing(f"retrying the model in {seconds:.0f} s", "provider")
        until = self.clock.monotonic() + seconds
        while (left := until - self.clock.monotonic()) > 0:
            self.controls.check()
            self.clock.sleep(min(left, LOOK_UP_EVERY))
        self.recorder.doing("waiting for the model")

    def _record(self, attempt: int, wait: float, error_class: str, said: str) -> None:
        self.recorder.record(RetryStep(attempt=attempt, delay_s=round(wait, 3), error_class=error_class, error=said))

    def _failed(self, failure: Failure) -> ModelCallFailed:
        what, following = sentence(failure, self.provider), f"fleet provider show {self.provider.name}"
        if advice := remedy(failure, self.provider, self.set_key or set_key(self.provider)):
            # The sentence is all that some readers of the order see, and only a user can help.
            what, following = f"{what.removesuffix('.')} (next: {advice}).", advice
        return ModelCallFailed(
            what,
            error_class=failure.error_class,
            detail=failure.detail,
            next=following,
            unconnected=failure.unconnected,
        )

    def _ask(
        self,
        way: Route,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        on_delta: OnDelta,
        metered: MeteredCall,
    ) -> tuple[ModelResponse, Mapping[str, Any]]:
        """Make one call, and return the answer with its headers.

        An incomplete answer is discarded: no tool ever runs on half a message.
        """
        started = self.clock.monotonic()
        call = ModelCall(way, way.request(messages, tools, metered.max_tokens), self.waits, self._client)
        assembly = Assembly(on_delta, self.clock, way.family.thinking)
        try:
            said = self._streamed(call, assembly)
            message, problem = way.read(said, messages, tools, cut=call.finish_reason == "length")
        except BaseException as error:
            if call.began or may_be_charged(error):
                metered.broke_off()
            else:
                metered.refused()
            raise
        if (filtered := _filtered(call)) and not message.tool_calls:
            metered.discarded(call.usage)
            raise ContentFiltered(filtered)
        response = ModelResponse(
            message=message,
            usage=metered.answered(call.usage),
            usage_reported=call.usage_reported,
            listed_usd=metered.listed_usd,
            finish_reason=call.finish_reason,
            model=self.provider.model,
            duration_ms=round((self.clock.monotonic() - started) * 1000),
            thinking_ms=assembly.thinking_ms,
            format_problem=problem,
            raw=call.raw,
        )
        return response, call.headers

    def _streamed(self, call: ModelCall, assembly: Assembly) -> Message:
        """Read an answer to its end, or until it is longer than any real answer; that counts as cut off by length."""
        try:
            with closing(pumped(call.chunks, self.controls.check, self.waits, self.clock, call.signs)) as chunks:
                for chunk in chunks:
                    for choice in chunk.choices[:1]:
                        assembly.add(choice.delta)
                    if assembly.too_long:
                        break
        except BaseException:
            self._client.drop()
            raise
        if assembly.too_long:
            self._client.drop()
            call.finish_reason = "length"
        assembly.sign(call.details)
        return assembly.message()


def _filtered(call: ModelCall) -> str:
    """Why a whole answer is none: a policy of the endpoint, or a refusal of the model; empty if it is one."""
    if call.refusal:
        return f"the model refused: {call.refusal}"
    if call.finish_reason == "content_filter":
        return "the endpoint ended the answer with finish_reason content_filter"
    return ""


def _may_pass(failure: Failure, attempt: int, limits: Limits) -> bool:
    """Whether to retry after failed attempt number `attempt` (1-based)."""
    # A transcript that is too long stays too long: the loop compacts it and retries.
    passing = failure.retried and failure.error_class is not ErrorClass.CONTEXT_OVERFLOW
    return limits.retry_enabled and passing and attempt <= limits.max_retries


def _retry_delay(failure: Failure, attempt: int, limits: Limits) -> float:
    """Seconds to wait after failed attempt number `attempt` (1-based); the provider's requested delay is a minimum."""
    return delay(attempt, base=limits.base_delay, retry_after=failure.retry_after)


class _ModelRotation:
    """Which of an order's providers answers next: the provider or a fallback that has not failed in this run.

    With the provider's `rotation`, several models work on one order (mini-swe-agent's roulette and interleaving models,
    M-032); without it, a fallback is asked only once those before it have failed.
    """

    def __init__(self, provider: OrderProvider) -> None:
        """`provider` and its fallbacks have their keys in `api_key`."""
        self._left = [provider, *provider.fallbacks]
        self._way = provider.rotation
        self._random = SystemRandom()
        self.current = provider

    @property
    def candidates(self) -> Sequence[OrderProvider]:
        """Those whose answer may be the next one: a question must fit the window of each."""
        return [self.current] if self._way == "off" else tuple(self._left)

    def choose(self, messages: Sequence[Message]) -> OrderProvider:
        """The provider of the next answer.

        Whose turn it is follows from the number of answers in the conversation: a resumed run continues in order.
        """
        if self._way == "random":
            self.current = self._random.choice(self._left)
        elif self._way == "alternate":
            self.current = self._left[sum(each.role == "assistant" for each in messages) % len(self._left)]
        return self.current

    def replace_failed(self) -> OrderProvider | None:
        """Leave the current provider out for the rest of the run, and return the one in its place.

        None: there is no other one, and it stays.
        """
        if len(self._left) == 1:
            return None
        at = self._left.index(self.current)
        del self._left[at]
        self.current = self._left[at % len(self._left)]
        return self.current
