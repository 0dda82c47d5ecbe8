"""The tools of one run: what the model is told of them, and the one place where a call is checked and carried out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from drone.agent.protocols import ToolResult, ToolSpec
from drone.sandbox import Sandbox
from drone.sandbox.protocol import Check, OnOutput
from drone.tools.arguments import (
    Arguments,
    EditorArguments,
    FileReadArguments,
    FileWriteArguments,
    ShellArguments,
    SubmitArguments,
    schema,
)
from drone.tools.editor import Editor
from drone.tools.file_read import FileRead
from drone.tools.file_write import FileWrite
from drone.tools.shell import SUBMIT_LINE, Shell
from drone.tools.wrong_use import WrongUse, describe
from shared.errors import InterruptLoop, Submitted
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.work_order import Mode

READ_ONLY = frozenset({"plan"})
"""Modes without the tools that change things: shell is one of them, since no command can be known to change nothing."""


@dataclass(frozen=True)
class Tool:
    """One tool: what the model is told, how arguments are checked, and what carries it out."""

    name: str
    description: str
    arguments: type[Arguments]
    act: Callable[[Any], ToolResult]

    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, schema(self.arguments))


class Tools:
    """A run's toolbox (`drone.agent.protocols.Toolbox`)."""

    def __init__(self, tools: list[Tool], shell: Shell) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._shell = shell

    def specs(self) -> list[ToolSpec]:
        return [tool.spec() for tool in self._tools.values()]

    def execute(self, call: ToolCall) -> ToolResult:
        """Carry out one call.

        Raises Submitted when the model is done, and lets through what stops a run; a command that was broken off by
        that leaves its output so far in the signal's messages, as the answer to this call.
        """
        try:
            tool = self._find(call.name)
            return tool.act(_parsed(tool, call.arguments))
        except WrongUse as error:
            return ToolResult(f"Error: {error}", is_error=True)
        except OSError as error:
            return ToolResult(f"Error: {error.filename or call.name}: {error.strerror or error}", is_error=True)
        except Submitted:
            raise
        except InterruptLoop as signal:
            if call.name == "shell" and (output := self._shell.broken_off()):
                answer = Message(role="tool", tool_call_id=call.id, content=output)
                signal.messages = (answer, *signal.messages)
            raise

    def _find(self, name: str) -> Tool:
        if name not in self._tools:
            raise WrongUse(f"there is no tool {name[:60]!r}; the tools are {', '.join(self._tools)}")
        return self._tools[name]


def build_toolbox(  # noqa: PLR0913 - each is a fact of one run
    workspace: Path,
    sandbox: Sandbox,
    *,
    mode: Mode,
    command_timeout: float,
    log_dir: Path,
    on_output: OnOutput | None,
    check: Check,
) -> Tools:
    """Give the tools of a mode. `check` is called while commands and long reads run, and may raise to end them."""
    shell = Shell(workspace, sandbox, command_timeout, log_dir, on_output, check)
    reading = Tool("file_read", _FILE_READ, FileReadArguments, FileRead(workspace, sandbox, check))
    submit = Tool("submit", _SUBMIT, SubmitArguments, _submit)
    if mode in READ_ONLY:
        return Tools([reading, submit], shell)
    return Tools(
        [
            reading,
            Tool("file_write", _FILE_WRITE, FileWriteArguments, FileWrite(workspace)),
            Tool("editor", _EDITOR, EditorArguments, Editor(workspace)),
            Tool("shell", _shell_description(command_timeout), ShellArguments, shell),
            submit,
        ],
        shell,
    )


def _parsed(tool: Tool, text: str) -> Arguments:
    try:
        given = json.loads(text or "{}")
    except ValueError as error:
        raise WrongUse(f"{tool.name}: the arguments are not JSON ({error}); send one JSON object") from error
    if not isinstance(given, dict):
        raise WrongUse(f"{tool.name}: the arguments must be one JSON object, with {', '.join(_names(tool))}")
    try:
        return tool.arguments.model_validate(given)
    except ValidationError as error:
        raise WrongUse(describe(tool.name, error)) from error


def _names(tool: Tool) -> list[str]:
    return list(tool.arguments.model_fields)


def _submit(call: SubmitArguments) -> ToolResult:
    raise Submitted(outcome=Outcome(ExitStatus.SUBMITTED, "The model submitted its work.", call.summary))


def _shell_description(command_timeout: float) -> str:
    limit = f"{command_timeout:g} s unless `timeout` says otherwise" if command_timeout else "no time limit"
    return (
        f"Run a shell line in the workspace ({limit}). Each call is a fresh shell: directory and variables do not "
        "last, and nothing keeps running after it. stdout and stderr come as one text, then the return code; of more "
        f"than 10,000 characters the head and the tail. First output line {SUBMIT_LINE}: the rest is submitted."
    )


_FILE_READ = (
    "Read in the workspace: view a file or directory, some lines, search with a regular expression, find files."
)
_FILE_WRITE = "Write a whole file in the workspace; its parents are made. For a change in a file use editor."
_EDITOR = "Change a file: str_replace a text that occurs exactly once, insert lines, or undo_edit the last change."
_SUBMIT = "Say that the work is done, with a summary. Nothing can be done after it."
