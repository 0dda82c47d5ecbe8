"""A toolbox on a directory, called the way a model calls it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from drone.agent.values import ToolResult, ToolSpec
from drone.sandbox import Sandbox, choose
from drone.tools import Tools, build_toolbox
from shared.messages import ToolCall

Call = Callable[..., ToolResult]


def toolbox(workspace: Path, mode: Any = "build", sandbox: Sandbox | None = None, **more: Any) -> Tools:
    """The tools of a mode, without a sandbox unless one is given: sandboxes have their own tests."""
    given = {"check": lambda: None, "command_timeout": 20, "on_output": None, **more}
    return build_toolbox(
        workspace,
        sandbox or choose("none", os.environ),
        mode=mode,
        log_dir=workspace.with_name(f"{workspace.name}-logs"),
        **given,
    )


def called(tools: Tools, name: str, /, **arguments: Any) -> ToolResult:
    """Call a tool with JSON arguments."""
    return tools.execute(ToolCall(id="call1", name=name, arguments=json.dumps(arguments)))


@dataclass
class MadeTool:
    """A foreign tool: it returns its arguments, or raises."""

    name: str
    read_only: bool = False
    error: Exception | None = None
    calls: list[ToolCall] = field(default_factory=list)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, f"Made {len(self.calls)} times.")

    def execute(self, call: ToolCall) -> ToolResult:
        self.calls.append(call)
        if self.error is not None:
            raise self.error
        return ToolResult(call.arguments)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def call(workspace: Path) -> Call:
    """A function that calls the tools of one toolbox on `workspace`."""
    tools = toolbox(workspace)
    return lambda name, **arguments: called(tools, name, **arguments)
