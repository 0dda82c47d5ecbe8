"""The JSON document of `drone run`: the fields of an order, with null for values that only a control plane has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from shared.blobs import INLINE_PATCH
from shared.closing_question import closes_with_question
from shared.durations import duration_label
from shared.events import Delivered, Event, Phase, Prepared, RunEnded, RunStarted, Stats, TodoStep
from shared.outcome import EndedWork, OrderOutcome, order_outcome
from shared.states import OrderStatus, RunStatus
from shared.terminal.boundary import version
from shared.terminal.output import plain
from shared.titles import title
from shared.trajectories import RunFacts, trajectory
from shared.work_order import WorkOrder

T = TypeVar("T", bound=BaseModel)

_LIFECYCLE = (RunStarted, Phase, Prepared, Delivered, RunEnded)
"""Events that are not steps: their information is in the order's fields."""


@dataclass(frozen=True)
class LocalResult:
    """A finished run: its order, its events and its patch."""

    order: WorkOrder
    events: tuple[Event, ...]
    patch: bytes | None
    """None: the run ended before anything was delivered."""
    interrupted: bool = False
    """A person pressed Ctrl-C."""

    @property
    def ended(self) -> RunEnded | None:
        """The run's last event."""
        return self.last(RunEnded)

    def last(self, kind: type[T]) -> T | None:
        """The newest event of this kind."""
        return next((each.body for each in reversed(self.events) if isinstance(each.body, kind)), None)

    @property
    def succeeded(self) -> bool:
        return self.ended is not None and self.ended.status == "success"

    @property
    def asks(self) -> bool:
        """It changed nothing, and closes with a question."""
        return self.succeeded and not self.patch and closes_with_question(self.ended.response if self.ended else "")

    @property
    def outcome(self) -> OrderOutcome:
        delivered = self.last(Delivered)
        left_out = delivered is not None and bool(delivered.left_out)
        work = EndedWork(is_changed=bool(self.patch), asks=self.asks, is_left_behind=left_out)
        exit_status = self.ended.exit_status if self.ended else None
        return order_outcome(_status(self.ended), exit_status, work) or OrderOutcome.FAILED


def trajectory_of(result: LocalResult) -> dict[str, Any]:
    """The run as a trajectory, in the format mini-swe-agent-1.1."""
    order = result.order
    limits = order.limits.model_dump(mode="json")
    facts = RunFacts(order.order_id, order.run_id, order.provider.model, order.session.mode, limits, version())
    return trajectory(facts, ((event.at, event.body) for event in result.events))


def document(result: LocalResult) -> dict[str, Any]:
    """Return the fields of `fleet show --json`, in the same order; only JSON types."""
    order, ended = result.order, result.ended
    facts: dict[str, Any] = {
        "id": order.order_id,
        "status": _status(ended),
        "reason": ended.reason if ended else "the run ended without a result",
        "exit_status": ended.exit_status if ended else None,
        "outcome": result.outcome,
        "attempt": order.attempt,
        "generation": order.generation,
        "organization": None,
        "user": None,
        "drone": None,
        "project": None,
        "session": order.session.id,
        "provider": None,
        "model": order.provider.model,
        "mode": order.session.mode,
        "thinking": order.provider.thinking,
        "priority": None,
        "labels": {},
        "created_at": order.submitted_at,
        "started_at": _time(result, first=True),
        "ended_at": _time(result, first=False),
        "prompt": order.prompt,
        "response": ended.response if ended else None,
        **_delivery(result),
        "late_refs": [],
        "patch": _inline(result.patch),
        "receipt": ended.receipt if ended else None,
        "max_attempts": 1,
        "approve": order.approve,
        "allow": list(order.allow),
        "verification": (ended.verification or None) if ended else None,
        "title": title(order.prompt),
        "asks": result.asks,
        # There are no approvals, no questions and no user messages from outside.
        "waiting_for": None,
        "doing": "",
        "stalled": False,
        "todo": _todo(result),
        "unheard": [],
        "stats": _stats(ended.stats if ended else Stats()),
        "runs": [_run(result)],
        "steps": _steps(result),
    }
    plain_facts: dict[str, Any] = plain(facts)
    return plain_facts


def _status(ended: RunEnded | None) -> OrderStatus:
    if ended is None or ended.status == "failed":
        return OrderStatus.FAILED
    return OrderStatus.SUCCEEDED if ended.status == "success" else OrderStatus.CANCELED


def _delivery(result: LocalResult) -> dict[str, Any]:
    prepared = result.last(Prepared)
    delivered = result.last(Delivered)
    return {
        # The branch stays in a temporary workspace: the user gets the patch.
        "branch": None,
        "base_commit": prepared.base_commit if prepared else None,
        "head_commit": delivered.head_commit if delivered else None,
        "pushed": False,
        "push_error": None,
        "left_out": delivered.left_out if delivered else (),
    }


def _inline(patch: bytes | None) -> str | None:
    return patch.decode(errors="replace") if patch is not None and len(patch) <= INLINE_PATCH else None


def _stats(stats: Stats) -> dict[str, Any]:
    return {**stats.model_dump(), "duration_label": duration_label(stats.duration_ms)}


def _todo(result: LocalResult) -> list[dict[str, Any]]:
    last = result.last(TodoStep)
    return [item.model_dump() for item in last.items] if last else []


def _run(result: LocalResult) -> dict[str, Any]:
    ended = result.ended
    return {
        "id": result.order.run_id,
        "attempt": result.order.attempt,
        "drone": None,
        "status": ended.status if ended else RunStatus.LOST,
        "started_at": _time(result, first=True),
        "ended_at": _time(result, first=False),
        "cost_usd": ended.stats.cost_usd if ended else None,
    }


def _time(result: LocalResult, *, first: bool) -> Any:
    events = result.events
    if first:
        return events[0].at if events else None
    return events[-1].at if result.ended else None


def _steps(result: LocalResult) -> list[dict[str, Any]]:
    """The steps, numbered without gaps like those of an order."""
    steps = [event for event in result.events if not isinstance(event.body, _LIFECYCLE)]
    return [
        {
            "seq": seq,
            "kind": step.body.kind,
            "run": step.run_id,
            "at": step.at,
            "undone": False,
            **step.body.model_dump(exclude={"kind"}),
        }
        for seq, step in enumerate(steps, start=1)
    ]
