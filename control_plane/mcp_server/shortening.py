"""Shortens long documents for a reader with limited attention: what was left out can be requested."""

from __future__ import annotations

from typing import Any

from control_plane.documents.orders import OrderDocument, StepDocument

SHOWN_STEPS = 20
SHOWN_OUTPUT = 500
"""Characters of an output; as `fleet run show` without `--full` (S-123)."""
SHOWN_PATCH = 20_000


def shorter_order(order: OrderDocument) -> OrderDocument:
    """The order with its last steps, their outputs cut, and its patch if that is short."""
    steps = [_shorter_step(step) for step in order.steps[-SHOWN_STEPS:]]
    patch = order.patch if order.patch is None or len(order.patch) <= SHOWN_PATCH else None
    return order.model_copy(update={"steps": steps, "patch": patch})


def shortened(step: dict[str, Any]) -> dict[str, Any]:
    """A step with its texts cut; each cut says how much was left out."""
    return {key: _cut(value) if isinstance(value, str) else value for key, value in step.items()}


def _shorter_step(step: StepDocument) -> StepDocument:
    return step.model_copy(update=shortened(step.model_extra or {}))


def _cut(text: str) -> str:
    left = len(text) - SHOWN_OUTPUT
    return text if left <= 0 else f"{text[:SHOWN_OUTPUT]}… ({left:,} more characters; shown with full=true)"
