"""Steps as the page's templates need them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter, ValidationError

from control_plane.documents import StepDocument
from shared.events import Body

_BODY: TypeAdapter[Any] = TypeAdapter(Body)


def shown_steps(steps: Iterable[StepDocument]) -> list[dict[str, Any]]:
    """Each step with every field of its kind, so that one reported by an older or newer drone is shown all the same."""
    return [_shown(step.model_dump()) for step in steps]


def _shown(step: dict[str, Any]) -> dict[str, Any]:
    try:
        return {**step, **_BODY.validate_python(step).model_dump()}
    except ValidationError:
        return {**step, "kind": "other", "name": step["kind"]}
