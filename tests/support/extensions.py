"""Extensions and guardrails in files, and the loop with them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drone.agent.agent import Agent
from drone.agent.in_memory import EchoToolbox
from drone.agent.protocols import ForeignTool
from drone.agent.values import ToolResult, ToolSpec
from drone.extensions.context import RegisteredModel, RunningAgent
from drone.extensions.merged import Services, load
from drone.extensions.sources import Sources
from shared.events import ErrorStep
from shared.messages import Message, ToolCall
from shared.outcome import Outcome
from tests.support.scripted import Loop

WAITS = """
import threading

def wait(*_):
    while True:
        threading.Event().wait(0.01)
"""
"""Code that never returns, but can be interrupted."""


def write(home: Path, name: str, code: str) -> Path:
    """Put a file below a home: `extensions/x.py`, `guardrails/x.py`."""
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(code), encoding="utf-8")
    return file


class ToolboxWith(EchoToolbox):
    """The echo tools, and those of extensions."""

    def __init__(self, foreign: Sequence[ForeignTool]) -> None:
        super().__init__()
        self.foreign = {tool.spec.name: tool for tool in foreign}

    def specs(self) -> list[ToolSpec]:
        return [*super().specs(), *(tool.spec for tool in self.foreign.values())]

    def execute(self, call: ToolCall) -> ToolResult:
        tool = self.foreign.get(call.name)
        return super().execute(call) if tool is None else tool.execute(call)


@dataclass
class ExtendedLoop(Loop):
    """The loop with the extensions in the drone's home and in the project's directory."""

    home: Path | None = None
    project: Path | None = None
    bounds: dict[str, Any] = field(default_factory=dict)
    """Arguments for `Services`."""
    installed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        services = Services(self.recorder, self.controls, **self.bounds)
        self.extensions = load(Sources(self.home, self.project, entry_points=self.installed), services)
        self.toolbox = ToolboxWith(self.extensions.tools)
        mine = self.extensions
        common = (self.model, self.toolbox, mine.recorder, mine.controls, self.limits, self.clock)
        self.agent = Agent(*common, hooks=mine.hooks, guardrails=mine.guardrails)
        place = (self.agent, mine.controls, mine.recorder, Path("/workspace"), "s1", "scripted", lambda _: False)
        mine.bind(RunningAgent(*place, self.prompt, models=[RegisteredModel("scripted", "scripted", None)]))

    def run(self, *history: Message) -> Outcome:
        try:
            return super().run(*history)
        finally:
            self.extensions.close()

    @property
    def reports(self) -> list[str]:
        """The reports about failed extensions."""
        steps = [body for body in self.recorder.bodies if isinstance(body, ErrorStep)]
        return [step.what for step in steps if step.code == "E-EXTENSION"]
