"""Steps as the page's templates need them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter, ValidationError

from control_plane.documents.orders import StepDocument
from shared.events import Body

_BODY: TypeAdapter[Any] = TypeAdapter(Body)


def shown_steps(steps: Iterable[StepDocument]) -> list[dict[str, Any]]:
    """Each step with every field of its kind, so that steps from older or newer drones are shown as well."""
    return [_shown(step.model_dump()) for step in steps]


def _shown(step: dict[str, Any]) -> dict[str, Any]:
    try:
        whole = {**step, **_BODY.validate_python(step).model_dump()}
    except ValidationError:
        return {**step, "kind": "other", "name": step["kind"]}
    if whole["kind"] == "child":
        whole["inner"] = _inner(whole)
    return whole


def _inner(child: dict[str, Any]) -> dict[str, Any] | None:
    """A child's step in the form of an order's step; None if it is unknown, or is itself a child's step."""
    own = {"seq": child["seq"], "at": child["at"], "run": child["run"]}
    try:
        body = _BODY.validate_python(child["step"]).model_dump()
    except ValidationError:
        return None
    return {**body, **own} if body["kind"] != "child" else None
