"""An order as one HTML file that needs no server and loads nothing: to hand on, to attach, and to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from markupsafe import Markup

from control_plane.contract.documents.orders import OrderDocument, StepDocument
from control_plane.core.patches.patch import read_patch
from control_plane.web.assets import STATIC
from control_plane.web.conversation.blocks import ChatBlock
from control_plane.web.conversation.calls import ShownCall
from control_plane.web.conversation.grouping import chat_of, inner_step
from control_plane.web.diffs.shown import DiffOptions, ShownFile, shown_part
from control_plane.web.markup.markdown import markdown
from control_plane.web.rendering import rendered

SHEETS = ("tokens", "base", "components", "session", "changes", "export")
MOST_LINES = 20_000
"""Lines of the patch in one file; `fleet patch` has all of them."""
MOST_STEPS = 5000
"""The newest ones; the trajectory has all of them."""


def exported_page(order: OrderDocument, patch: bytes | None, now: datetime) -> str:
    """The file's text. `patch`: None if there is none. What is left out of a very large order is said in its place."""
    shown = _ShownSteps(order)
    context = {
        "order": order,
        "now": now,
        "style": Markup("\n").join(Markup((STATIC / f"css/{sheet}.css").read_text()) for sheet in SHEETS),  # noqa: S704
        "response": markdown(order.response) if order.response else "",
        "files": _files(patch or b""),
        "blocks": shown.blocks(order.steps[-MOST_STEPS:]),
        "blocks_of": shown.of_children,
        "left_out": max(0, len(order.steps) - MOST_STEPS),
    }
    return str(rendered("session/export.html", context))


@dataclass
class _ShownSteps:
    """Makes blocks of an order's steps, and of those of its sub-agents."""

    order: OrderDocument
    _steps: dict[int, StepDocument] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._steps = {step.seq: step for step in self.order.steps}

    def blocks(self, steps: Sequence[StepDocument]) -> list[ChatBlock]:
        return chat_of(self.order.id, steps, active=self.order.ended_at is None).blocks

    def of_children(self, call: ShownCall) -> list[ChatBlock]:
        return self.blocks([inner_step(self._steps[seq]) for seq, _ in call.children])


def _files(patch: bytes) -> list[ShownFile]:
    found, room = [], MOST_LINES
    for file in read_patch(patch):
        found.append(shown_part(file, 0, room, DiffOptions()))
        room -= found[-1].upto
    return found
