"""Service: try a provider with one token, then with one tool call, and report what it can do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from drone.agent.budget import BudgetedControls, RunBudget
from drone.agent.protocols import Model
from drone.agent.values import DeltaKind, ModelCallFailed, ModelResponse, ToolSpec
from drone.services.checks.endpoint_failures import explained, limit_reached, where
from drone.services.context import ServiceContext
from shared.clock import Clock
from shared.durations import duration_label
from shared.errors import FleetError, LimitsExceeded, OrderError
from shared.events import ProviderCheckStep
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome
from shared.redaction import shortened
from shared.work_order import OrderProvider, WorkOrder

MILLION = 1_000_000
CALL_TOKENS = 256
"""Tokens for the tool call: it needs about thirty, and a model that thinks needs more."""
_HELLO = (Message(role="user", content="Reply with the word ok."),)
_CALL = (Message(role="user", content='Call the tool ping once, with the text "ok". Do not answer in any other way.'),)
_PING = ToolSpec(
    "ping",
    "Check that tool calls work.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


def check_provider(order: WorkOrder, context: ServiceContext, budget: RunBudget) -> Outcome:
    """Try the order's provider, without its fallbacks, and record the result as a step.

    Model usage is charged to `budget`. Raises UnsuitableDrone or Forbidden if this drone may not, or cannot, use the
    provider's key: another one may.
    """
    budget.start()
    report = _Trial(order.model_copy(update={"provider": _alone(order.provider)}), context, budget).report()
    context.recorder.record(report)
    return Outcome(ExitStatus.STOPPED, report.summary, report.summary)


def _alone(provider: OrderProvider) -> OrderProvider:
    return provider.model_copy(update={"fallbacks": ()})


@dataclass
class _Answer:
    """A complete answer, and when it began."""

    response: ModelResponse
    first_token_ms: int | None


class _Trial:
    """The two calls, and what they show."""

    def __init__(self, order: WorkOrder, context: ServiceContext, budget: RunBudget) -> None:
        self._order = order
        self._context = context
        self._budget = budget

    def report(self) -> ProviderCheckStep:
        known = self._known()
        try:
            hello = self._ask(_HELLO, 1)
        except ModelCallFailed as failed:
            return _fails(explained(failed, self._order.provider, self._context), known)
        except LimitsExceeded as limit:
            return _fails(limit_reached(limit, self._order), known)
        known |= {
            "first_token_ms": hello.first_token_ms,
            "total_ms": hello.response.duration_ms,
            "streams": True,
            "reports_usage": hello.response.usage_reported,
        }
        return self._with_tools(known)

    def _known(self) -> dict[str, Any]:
        """What is known without a call: price and context window."""
        from drone.model.prices import listed, pricing_of, tier_of

        provider, own = self._order.provider, self._order.money.prices if self._order.money else ()
        pricing = pricing_of(provider.model, own, tier_of(provider))
        price = pricing.price
        is_set = price.input is not None and any(each == price for each in own)
        how = "set" if is_set else "listed" if pricing.is_known else "unknown"
        window = provider.context_window or listed(provider.model).get("max_input_tokens")
        return {
            "price": how,
            "input_usd": _per_million(price.input, price.discount),
            "output_usd": _per_million(price.output, price.discount),
            "context_window": window or self._model(1).window,
            "window_from": "set" if provider.context_window else "listed" if window else "assumed",
        }

    def _with_tools(self, known: dict[str, Any]) -> ProviderCheckStep:
        """The report of a provider that answered, with how its model calls tools."""
        from drone.model.route import calls_in_text

        if calls_in_text(self._order.provider):
            return _works({**known, "tool_calls": "text"})
        try:
            answer = self._ask(_CALL, CALL_TOKENS, (_PING,)).response
        except LimitsExceeded:
            return _works(known)
        except ModelCallFailed as failed:
            return self._refused_tools(known, failed)
        if any(call.name == _PING.name for call in answer.message.tool_calls):
            return _works({**known, "tool_calls": "native"})
        if answer.finish_reason == "length":
            return _works(known)
        advice = f"If runs end with format errors: fleet provider edit {self._order.provider.name} --protocol text"
        return _works({**known, "tool_calls": "ignored"}, f"Its model did not call a tool when asked to. {advice}")

    def _refused_tools(self, known: dict[str, Any], failed: ModelCallFailed) -> ProviderCheckStep:
        """The report of a provider that answered, but not with a tool offered."""
        from drone.model.errors import RETRIED, ErrorClass
        from drone.model.model_families import refuses_tools

        provider = self._order.provider
        refuses = refuses_tools(ErrorClass(failed.error_class), failed.detail)
        if not refuses and failed.error_class in RETRIED:
            return _works(known)
        if refuses and provider.protocol == "auto":
            return _works({**known, "tool_calls": "text"}, "It refuses tools, so its model calls them in text.")
        error = OrderError(
            f"{where(provider)} answers, but refuses requests with tools.",
            code="E-CHECK-TOOLS",
            why=shortened(failed.detail, 2_000),
            next=f"fleet provider edit {provider.name} --protocol text",
        )
        return _fails(error, known)

    def _ask(self, messages: tuple[Message, ...], tokens: int, tools: tuple[ToolSpec, ...] = ()) -> _Answer:
        """Ask with an answer of at most so many tokens; with more if the model needs them to think."""
        try:
            return self._asked(messages, tokens, tools)
        except ModelCallFailed as failed:
            from drone.model.output_limit import LEAST

            if failed.error_class != "format" or tokens >= LEAST or "token" not in failed.detail:
                raise
            # Some models refuse a limit in which they cannot finish thinking.
            return self._asked(messages, LEAST, tools)

    def _asked(self, messages: tuple[Message, ...], tokens: int, tools: tuple[ToolSpec, ...]) -> _Answer:
        clock = _FirstPiece(self._context.clock)
        self._budget.check()
        response = self._model(tokens).answer(messages, tools, clock)
        self._budget.charge_apart(response.usage)
        return _Answer(response, clock.after_ms(response.duration_ms))

    def _model(self, tokens: int) -> Model:
        from drone.model.output_limit import LEAST, NAMES, least_output

        provider = self._order.provider
        name = next((each for each in NAMES if each in provider.params), NAMES[0])
        limit = tokens + least_output(provider) - LEAST
        # With tools only natively: whether the endpoint takes them is the question.
        changed = {"params": {**provider.params, name: limit}, "protocol": "tools"}
        order = self._order.model_copy(update={"provider": provider.model_copy(update=changed)})
        controls = BudgetedControls(self._context.controls, self._budget)
        return self._context.make_model(order, self._context.recorder, controls)


@dataclass
class _FirstPiece:
    """Notes when the first piece of an answer arrives."""

    clock: Clock
    at: float | None = field(default=None, init=False)

    def __call__(self, kind: DeltaKind, text: str) -> None:
        del kind, text
        if self.at is None:
            self.at = self.clock.monotonic()

    def after_ms(self, total_ms: int) -> int | None:
        """When it arrived, in an answer that has just ended after this time; None if nothing was shown."""
        return None if self.at is None else max(0, total_ms - round((self.clock.monotonic() - self.at) * 1000))


def _works(known: dict[str, Any], remark: str = "") -> ProviderCheckStep:
    usage = "" if known["reports_usage"] else "It reports no usage, so the tokens of its answers are estimated."
    said = (f"It answered in {duration_label(known['total_ms'])}.", remark, usage)
    return ProviderCheckStep(ok=True, summary=" ".join(filter(None, said)), **known)


def _fails(error: FleetError, known: dict[str, Any]) -> ProviderCheckStep:
    return ProviderCheckStep(ok=False, summary=error.what, code=error.code, detail=error.why, next=error.next, **known)


def _per_million(price: float | None, discount: float) -> float | None:
    return None if price is None else round(price * MILLION * (1 - discount / 100), 6)
