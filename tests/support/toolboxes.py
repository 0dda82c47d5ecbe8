"""A toolbox on a directory, called as a model calls it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from drone.agent.protocols import ToolResult
from drone.sandbox import choose
from drone.tools import Tools, build_toolbox
from shared.messages import ToolCall

Call = Callable[..., ToolResult]


def toolbox(workspace: Path, mode: Any = "build", check: Callable[[], None] = lambda: None) -> Tools:
    """The tools of a mode, without a sandbox: what a sandbox adds is tested with the sandboxes."""
    return build_toolbox(
        workspace,
        choose("none"),
        mode=mode,
        command_timeout=20,
        log_dir=workspace.with_name(f"{workspace.name}-logs"),
        on_output=None,
        check=check,
    )


def called(tools: Tools, name: str, **arguments: Any) -> ToolResult:
    """Call a tool with JSON arguments."""
    return tools.execute(ToolCall(id="call1", name=name, arguments=json.dumps(arguments)))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def call(workspace: Path) -> Call:
    """Calls tools of one toolbox on `workspace`."""
    tools = toolbox(workspace)
    return lambda name, **arguments: called(tools, name, **arguments)
