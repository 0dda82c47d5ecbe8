"""The tools of a mode that is not built in (G-030)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drone.agent.protocols import ForeignTool
from shared.tool_names import ALWAYS, EXTENSION_PREFIX
from shared.work_order import ModeDefinition


@dataclass(frozen=True)
class ModeTools:
    """Tools as a mode allows them: the same for the whole run, so that the request's list of tools stays the same."""

    own: Sequence[ForeignTool]
    foreign: Sequence[ForeignTool]
    problems: Sequence[str] = ()
    """Tools that the mode allows and the run does not have, one sentence each."""


def limited(mode: ModeDefinition | None, own: Sequence[ForeignTool], foreign: Sequence[ForeignTool]) -> ModeTools:
    """Those of the tools that the mode allows; all of them without a mode, or for one that names none."""
    if mode is None or not mode.tools:
        return ModeTools(own, foreign)
    allowed = {*ALWAYS, *(name.removeprefix(EXTENSION_PREFIX) for name in mode.tools)}
    there = {tool.spec.name for tool in (*own, *foreign)}
    return ModeTools(
        own=[tool for tool in own if tool.spec.name in allowed],
        foreign=[tool for tool in foreign if tool.spec.name in allowed],
        problems=[
            f"The mode {mode.name} allows the tool {name!r}, which this run does not have."
            for name in sorted(allowed - there - {*ALWAYS})
        ],
    )
