"""Counts of what runs report: calls of models and tools, tokens, and how long answers took."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Histogram
from pydantic import TypeAdapter, ValidationError

from shared.events import (
    AssistantStep,
    Body,
    ChargeStep,
    ChildStep,
    Event,
    RetryStep,
    ReviewerStep,
    RunEnded,
    ToolCallStep,
    ToolResultStep,
    Usage,
)
from shared.outcome import ExitStatus
from shared.tool_names import ALWAYS, MCP_PREFIX, SELECTABLE

BUCKETS = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
_OWN_TOOLS = frozenset({*ALWAYS, *SELECTABLE})
_ENDED_EARLY = frozenset({"timed_out", "broken_off", "held_back"})
_BODY: TypeAdapter[Body] = TypeAdapter(Body)


class EventCounts:
    """Counts since the worker started, in `registry`. Threads may share an instance."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "drone_model_calls", "Requests to models. failed: no whole answer.", ("outcome",), registry=registry
        )
        self._seconds = Histogram(
            "drone_model_call_seconds", "Time until an answer was complete.", buckets=BUCKETS, registry=registry
        )
        self._tokens = Counter("drone_tokens", "Tokens of model calls.", ("kind",), registry=registry)
        self._tools = Counter("drone_tool_calls", "Tool calls.", ("tool", "outcome"), registry=registry)
        # From the start: Prometheus sees no increase in a series that begins with 1.
        for outcome in ("answered", "failed"):
            self._calls.labels(outcome)

    def of_run(self) -> Callable[[Event], None]:
        """A function that counts the events of one run, each once, even if it is called with one again."""
        return _RunEvents(self).count

    def answered(self, usage: Usage, duration_ms: int = 0) -> None:
        """A model gave a whole answer; 0: its time is unknown."""
        self._calls.labels("answered").inc()
        self.used(usage)
        if duration_ms:
            self._seconds.observe(duration_ms / 1000)

    def failed(self) -> None:
        """A model gave no whole answer."""
        self._calls.labels("failed").inc()

    def used(self, usage: Usage) -> None:
        self._tokens.labels("input").inc(usage.input_tokens)
        self._tokens.labels("output").inc(usage.output_tokens)
        self._tokens.labels("thinking").inc(usage.thinking_tokens)
        self._tokens.labels("cached").inc(usage.cached_tokens)

    def called(self, tool: str, result: ToolResultStep) -> None:
        """A call of a tool has its result."""
        early = result.execution in _ENDED_EARLY
        outcome = result.execution if early else "error" if result.is_error else "ok"
        self._tools.labels(_label(tool), outcome).inc()


class _RunEvents:
    """The events of one run, in their order. Used by one thread at a time."""

    def __init__(self, counts: EventCounts) -> None:
        self._counts = counts
        self._last_seq = 0
        self._open: dict[str, str] = {}
        """The tools of the calls without a result, by the ids of the calls."""

    def count(self, event: Event) -> None:
        if event.seq > self._last_seq:
            self._last_seq = event.seq
            self._count(event.body)

    def _count(self, body: Body) -> None:
        match body:
            case AssistantStep():
                self._counts.answered(body.usage, body.duration_ms)
            case ReviewerStep(problem="", repeated=False):
                self._counts.answered(body.usage, body.duration_ms)
            case ChargeStep(about="broken_off"):
                # A failed call, which is reported besides.
                self._counts.used(body.usage)
            case ChargeStep():
                self._counts.answered(body.usage)
            case RetryStep() | RunEnded(exit_status=ExitStatus.MODEL_ERROR):
                self._counts.failed()
            case _:
                self._count_tool(body)

    def _count_tool(self, body: Body) -> None:
        match body:
            case ToolCallStep():
                self._open[body.call_id] = body.tool
            case ToolResultStep():
                self._counts.called(self._open.pop(body.call_id, ""), body)
            case ChildStep():
                self._count_child(body)

    def _count_child(self, child: ChildStep) -> None:
        try:
            self._count(_BODY.validate_python(child.step))
        except ValidationError:
            # Written by a newer version, in a kind that this one does not know.
            return


def _label(tool: str) -> str:
    """The tool's name if it is built in: models, servers and extensions name tools as they like."""
    if tool in _OWN_TOOLS:
        return tool
    return "mcp" if tool.startswith(MCP_PREFIX) else "other"
