"""The tools of one run: their descriptions for the model, and the one place where calls are executed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from drone.agent.protocols import ForeignTool
from drone.agent.values import ToolResult, ToolSpec
from drone.sandbox import Sandbox
from drone.sandbox.protocol import Check, OnOutput
from drone.tools import add_comment
from drone.tools.add_comment import AddComment
from drone.tools.arguments import (
    AddCommentArguments,
    EditorArguments,
    FileReadArguments,
    FileWriteArguments,
    GlobArguments,
    GrepArguments,
    ShellArguments,
    SubmitArguments,
    TodoArguments,
)
from drone.tools.editor import Editor
from drone.tools.file_read import FileRead
from drone.tools.file_write import FileWrite
from drone.tools.search import ENTRIES, Search
from drone.tools.shell import SUBMIT_LINE, Shell
from drone.tools.spawn import Spawn, SpawnChild
from drone.tools.todo import Todo
from drone.tools.tool import BuiltinTool
from drone.tools.wrong_use import WrongUse
from shared.errors import InterruptLoop, Submitted
from shared.events import TodoStep
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.redaction import cut_short
from shared.work_order import Mode

READ_ONLY = frozenset({"plan"})
"""Modes without tools that change things. shell is one of those tools: a command cannot be known to change nothing."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Tool names that every provider accepts."""


class Tools:
    """A run's toolbox (`drone.agent.protocols.Toolbox`)."""

    def __init__(self, own: Sequence[ForeignTool], foreign: Sequence[ForeignTool], shell: Shell) -> None:
        self.problems: list[str] = []
        """Foreign tools that were left out, one sentence each, for people."""
        self._shell = shell
        self._tools = {tool.spec.name: tool for tool in own}
        self._ours = frozenset(self._tools)
        for tool in foreign:
            self._add(tool)
        # Read only once: a foreign tool that changes its description would change the prompt's stable prefix.
        self._specs = [tool.spec for tool in self._tools.values()]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def read_only(self) -> frozenset[str]:
        """The names of the tools that change nothing."""
        return frozenset(name for name, tool in self._tools.items() if tool.read_only)

    def specs(self) -> list[ToolSpec]:
        return list(self._specs)

    def execute(self, call: ToolCall) -> ToolResult:
        """Execute one call.

        Raises Submitted when the model is done, and propagates signals that stop the run; if a signal interrupted a
        command, the output so far is added to the signal's messages as the answer to this call.
        """
        try:
            return self._carried_out(call)
        except WrongUse as error:
            return ToolResult(f"Error: {error}", is_error=True)
        except OSError as error:
            return ToolResult(f"Error: {error.filename or call.name}: {error.strerror or error}", is_error=True)
        except Submitted:
            raise
        except InterruptLoop as signal:
            if call.name == "shell" and (output := self._shell.broken_off()) is not None:
                answer = Message(role="tool", tool_call_id=call.id, content=output)
                signal.messages = (answer, *signal.messages)
            raise

    def _carried_out(self, call: ToolCall) -> ToolResult:
        tool = self._tools.get(call.name)
        if tool is None:
            raise WrongUse(f"unknown tool {cut_short(call.name, 60)!r}; available tools: {', '.join(self._tools)}")
        if call.name in self._ours:
            return tool.execute(call)
        try:
            return tool.execute(call)
        except (InterruptLoop, WrongUse, OSError):
            raise
        except Exception as error:  # noqa: BLE001 - foreign code: any error it raises is the answer to its call
            return ToolResult(f"Error: {call.name} failed: {type(error).__name__}: {error}", is_error=True)

    def _add(self, tool: ForeignTool) -> None:
        name = tool.spec.name
        if name in self._ours:
            self.problems.append(f"The tool {name!r} is ignored: a built-in tool has the same name.")
        elif name in self._tools:
            self.problems.append(f"The tool {name!r} is ignored: another tool has the same name.")
        elif not _NAME.fullmatch(name):
            self.problems.append(
                f"The tool {name[:80]!r} is ignored: its name must have 1 to 64 letters, digits, `_` and `-`."
            )
        else:
            self._tools[name] = tool


def build_toolbox(  # noqa: PLR0913 - each is a fact of one run
    workspace: Path,
    sandbox: Sandbox,
    *,
    mode: Mode,
    command_timeout: float,
    log_dir: Path,
    on_output: OnOutput | None,
    check: Check,
    spawn: SpawnChild | None = None,
    record_todo: Callable[[TodoStep], object] | None = None,
    thread: AddComment | None = None,
    foreign: Sequence[ForeignTool] = (),
    readable: Sequence[Path] = (),
    allows: Callable[[str], bool] = lambda _: True,
    refuse: Callable[[str], None] = lambda _: None,
) -> Tools:
    """Return the tools of a mode. `check` is called while commands and searches run, and may raise to end them.

    `spawn` runs a child agent, `record_todo` records a list and `thread` takes comments; without them these tools are
    missing. `foreign` tools come last, in mode plan only those that change nothing. Files in `readable` can be read
    like the workspace. The owner decides with `allows` which tools there are, and with `refuse` which shell
    lines run.
    """
    may_read = tuple(path.resolve() for path in readable if path.is_dir())
    search = Search(workspace, sandbox, check, may_read)
    shell = Shell(workspace, sandbox, command_timeout, log_dir, on_output, check, may_read, refuse)
    own: list[ForeignTool] = [*_reading(search, check), *_changing(workspace, shell)]
    if record_todo is not None:
        own.append(BuiltinTool("todo", _TODO, TodoArguments, Todo(record_todo), read_only=True))
    if thread is not None:
        # It changes nothing in the workspace: an agent that only plans must be able to report, too.
        own.append(BuiltinTool(add_comment.NAME, _ADD_COMMENT, AddCommentArguments, thread, read_only=True))
    if spawn is not None:
        own.append(Spawn(spawn, lambda: tools.names))
    own.append(BuiltinTool("submit", _SUBMIT, SubmitArguments, _submit, read_only=True))
    if mode in READ_ONLY:
        own = [tool for tool in own if tool.read_only]
        foreign = [tool for tool in foreign if tool.read_only]
    own, foreign = ([tool for tool in some if allows(tool.spec.name)] for some in (own, foreign))
    tools = Tools(own, foreign, shell)
    return tools


def _reading(search: Search, check: Check) -> list[BuiltinTool]:
    return [
        BuiltinTool("file_read", _FILE_READ, FileReadArguments, FileRead(search, check), read_only=True),
        BuiltinTool("grep", _GREP, GrepArguments, search.grep, read_only=True),
        BuiltinTool("glob", _GLOB, GlobArguments, search.glob, read_only=True),
    ]


def _changing(workspace: Path, shell: Shell) -> list[BuiltinTool]:
    return [
        BuiltinTool("file_write", _FILE_WRITE, FileWriteArguments, FileWrite(workspace)),
        BuiltinTool("editor", _EDITOR, EditorArguments, Editor(workspace)),
        BuiltinTool("shell", _shell_description(shell), ShellArguments, shell),
    ]


def _submit(call: SubmitArguments) -> ToolResult:
    raise Submitted(outcome=Outcome(ExitStatus.SUBMITTED, "The model submitted its work.", call.summary))


def _shell_description(shell: Shell) -> str:
    seconds = shell.command_timeout
    limit = f"time limit {seconds:g} s unless `timeout` is given" if seconds else "no time limit"
    return (
        f"Run a command line in the workspace ({limit}). Each call is a new shell: directory and variables do not "
        "persist, and nothing keeps running after it. Returns stdout and stderr as one text, then the return code; if "
        "longer than 10,000 characters, only the head and the tail. If the first output line is "
        f"{SUBMIT_LINE}, the rest is submitted. {shell.sandbox.network_rule}"
    )


_FILE_READ = (
    "Read in the workspace: view a file or directory, read some lines, search with a regular expression, find files."
)
_GREP = (
    "Search file contents with a regular expression. In a git repository, files that git ignores are skipped unless "
    "`path` itself is ignored. Lines are grouped by file, as `number:line`, or `number-line` for context."
)
_GLOB = f"Find files by name or path, at most {ENTRIES}. In a git repository, files that git ignores are skipped."
_FILE_WRITE = "Write a whole file in the workspace; parent directories are created. To change a part, use editor."
_EDITOR = "Change a file: str_replace a text that occurs exactly once, insert lines, or undo_edit the last change."
_TODO = "Keep a to-do list, for work of several steps. Users see it. Send the whole list each time."
_ADD_COMMENT = (
    "Write a comment to the thread of your task, where users and the other agents read it. It appears immediately and "
    "permanently. The last tag in the last comment of your turn, @name or @user, decides who is next."
)
_SUBMIT = "Report that the work is done, with a summary. Nothing can be done after it."
