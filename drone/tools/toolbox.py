"""The tools of one run: their descriptions for the model, and the one place where calls are executed."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import format_tb

from drone.agent.hooks.calling import described
from drone.agent.protocols import ForeignTool
from drone.agent.values import ToolResult, ToolSpec
from drone.sandbox import Sandbox
from drone.sandbox.protocol import Check, OnOutput
from drone.tools import answer_review, telling
from drone.tools.answer_review import AnswerReview
from drone.tools.arguments import (
    AddCommentArguments,
    AnswerReviewArguments,
    AskArguments,
    EditorArguments,
    FileReadArguments,
    FileWriteArguments,
    GlobArguments,
    GrepArguments,
    RememberArguments,
    ShellArguments,
    SubmitArguments,
    TodoArguments,
    WebFetchArguments,
)
from drone.tools.editor import Editor
from drone.tools.file_read import FileRead
from drone.tools.file_write import FileWrite
from drone.tools.plan import PlanKeeper, plan_tools
from drone.tools.search import ENTRIES, Search
from drone.tools.shell import SUBMIT_LINE, Shell
from drone.tools.spawn import Spawn, SpawnChild
from drone.tools.syntax import SyntaxFeedback
from drone.tools.telling import AddComment, Remember, Todo
from drone.tools.tool import BuiltinTool
from drone.tools.web import WebFetch, web_fetch
from drone.tools.wrong_use import WrongUse
from shared.errors import FleetFault, InterruptLoop, OrderError, Submitted
from shared.events import TodoStep
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.redaction import cut_short
from shared.tool_names import ALWAYS, EXTENSION_PREFIX
from shared.work_order import Mode, ModeDefinition

log = logging.getLogger(__name__)

READ_ONLY = frozenset({"plan"})
"""Modes without tools that change things. shell is one of those tools: a command cannot be known to change nothing."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Tool names that every provider accepts."""
_NAMED = 200
"""Characters of a path in an error: a longer one is most likely the error."""


class Tools:
    """A run's toolbox (`drone.agent.protocols.Toolbox`)."""

    def __init__(
        self,
        own: Sequence[ForeignTool],
        foreign: Sequence[ForeignTool],
        shell: Shell,
        hidden: Mapping[str, Callable[[], bool]] | None = None,
    ) -> None:
        """`hidden`: tools that are offered only while their function returns true."""
        self._hidden = hidden or {}
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
        return tuple(name for name in self._tools if self._is_offered(name))

    @property
    def read_only(self) -> frozenset[str]:
        """The names of the tools that change nothing."""
        return frozenset(name for name, tool in self._tools.items() if tool.read_only)

    def specs(self) -> list[ToolSpec]:
        return [spec for spec in self._specs if self._is_offered(spec.name)]

    def execute(self, call: ToolCall) -> ToolResult:
        """Execute one call; whatever else a tool raises is the answer to it.

        Raises Submitted when the model is done, and propagates signals that stop the run; if a signal interrupted a
        command, the output so far is added to the signal's messages as the answer to this call. Raises FleetFault and
        OrderError, which no other call can avoid: a sandbox that does not start, a child's model that cannot be
        reached.
        """
        try:
            return self._carried_out(call)
        except WrongUse as error:
            return ToolResult(f"Error: {error}", is_error=True)
        except OSError as error:
            named = cut_short(str(error.filename or call.name), _NAMED)
            return ToolResult(f"Error: {named}: {error.strerror or error}", is_error=True)
        except (Submitted, FleetFault, OrderError):
            raise
        except InterruptLoop as signal:
            if call.name == "shell" and (output := self._shell.broken_off()) is not None:
                answer = Message(role="tool", tool_call_id=call.id, content=output)
                signal.messages = (answer, *signal.messages)
            raise
        except Exception as error:  # noqa: BLE001 - the boundary of a tool: a value it cannot handle ends no run
            # Not the error's own text, which may be long, fail, or have characters that no log can hold.
            said, where = described(error), "".join(format_tb(error.__traceback__))
            log.warning("the tool %s failed: %s\n%s", call.name, said, where)
            return ToolResult(f"Error: {call.name} failed: {said}", is_error=True)

    def _carried_out(self, call: ToolCall) -> ToolResult:
        tool = self._tools.get(call.name)
        if tool is None or not self._is_offered(call.name):
            raise WrongUse(f"unknown tool {cut_short(call.name, 60)!r}; available tools: {', '.join(self.names)}")
        return tool.execute(call)

    def _is_offered(self, name: str) -> bool:
        return name not in self._hidden or self._hidden[name]()

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
    of_mode: ModeDefinition | None = None,
    command_timeout: float,
    log_dir: Path,
    on_output: OnOutput | None,
    check: Check,
    spawn: SpawnChild | None = None,
    record_todo: Callable[[TodoStep], object] | None = None,
    thread: AddComment | None = None,
    asks: bool = False,
    plan: PlanKeeper | None = None,
    review: AnswerReview | None = None,
    memory: Remember | None = None,
    foreign: Sequence[ForeignTool] = (),
    readable: Sequence[Path] = (),
    allows: Callable[[str], bool] = lambda _: True,
    refuse: Callable[[str], None] = lambda _: None,
) -> Tools:
    """Return the tools of a mode; `of_mode` limits them further. `check` is called while commands and searches run, and
    may raise to end them.

    `spawn` runs a child agent, `record_todo` records a list, `thread` takes comments, `review` takes answers to review
    comments, and `memory` takes notes; without them these tools are missing. `asks`: there is `ask`, too. `plan` takes
    plans and reports on their points. `foreign` tools come last, in mode plan only those that change nothing. Files in
    `readable` can be read like the workspace. The owner decides with `allows` which tools there are, and with `refuse`
    which shell lines run.
    """
    may_read = tuple(path.resolve() for path in readable if path.is_dir())
    search = Search(workspace, sandbox, check, may_read)
    shell = Shell(workspace, sandbox, command_timeout, log_dir, on_output, check, may_read, refuse)
    own: list[ForeignTool] = [*_reading(search, check), *_changing(workspace, shell)]
    own += _telling(record_todo, thread, plan, review, memory, asks=asks)
    if spawn is not None:
        own.append(Spawn(spawn, lambda: tools.names))
    own.append(BuiltinTool("submit", _SUBMIT, SubmitArguments, _submit, read_only=True))
    if mode in READ_ONLY:
        own = [tool for tool in own if tool.read_only]
        foreign = [tool for tool in foreign if tool.read_only]
    own, foreign = ([tool for tool in some if allows(tool.spec.name)] for some in (own, foreign))
    of = _limited(of_mode, own, foreign)
    hidden = {answer_review.NAME: lambda: review.offered} if review is not None else {}
    tools = Tools(of.own, of.foreign, shell, hidden)
    tools.problems += of.problems
    return tools


def _telling(  # noqa: PLR0913 - one argument for each thing that a run may tell
    record_todo: Callable[[TodoStep], object] | None,
    thread: AddComment | None,
    plan: PlanKeeper | None,
    review: AnswerReview | None,
    memory: Remember | None,
    *,
    asks: bool,
) -> list[ForeignTool]:
    """Tools that change nothing in the workspace: an agent that only plans must be able to report, too."""
    own: list[ForeignTool] = []
    if record_todo is not None:
        own.append(BuiltinTool("todo", _TODO, TodoArguments, Todo(record_todo), read_only=True))
    if thread is not None:
        own.append(BuiltinTool(telling.ADD_COMMENT, _ADD_COMMENT, AddCommentArguments, thread, read_only=True))
    if asks:
        own.append(BuiltinTool(telling.ASK, _ASK, AskArguments, telling.ask, read_only=True))
    if plan is not None:
        own += plan_tools(plan)
    if review is not None:
        own.append(BuiltinTool(answer_review.NAME, _ANSWER_REVIEW, AnswerReviewArguments, review, read_only=True))
    if memory is not None:
        own.append(BuiltinTool(telling.REMEMBER, _REMEMBER, RememberArguments, memory, read_only=True))
    return own


def _reading(search: Search, check: Check) -> list[BuiltinTool]:
    return [
        BuiltinTool("file_read", _FILE_READ, FileReadArguments, FileRead(search, check), read_only=True, parallel=True),
        BuiltinTool("grep", _GREP, GrepArguments, search.grep, read_only=True, parallel=True),
        BuiltinTool("glob", _GLOB, GlobArguments, search.glob, read_only=True, parallel=True),
        BuiltinTool(
            web_fetch.NAME, _WEB_FETCH, WebFetchArguments, WebFetch(search.sandbox.gateway, check), read_only=True
        ),
    ]


def _changing(workspace: Path, shell: Shell) -> list[BuiltinTool]:
    syntax = SyntaxFeedback(workspace, shell.sandbox, shell.check)
    return [
        BuiltinTool("file_write", _FILE_WRITE, FileWriteArguments, FileWrite(workspace, syntax)),
        BuiltinTool("editor", _EDITOR, EditorArguments, Editor(workspace, syntax)),
        BuiltinTool("shell", _shell_description(shell), ShellArguments, shell),
    ]


def _submit(call: SubmitArguments) -> ToolResult:
    raise Submitted(outcome=Outcome(ExitStatus.SUBMITTED, "The model submitted its work.", call.summary))


def _shell_description(shell: Shell) -> str:
    seconds = shell.command_timeout
    hidden = shell.sandbox.hidden
    unseen = f" Hidden from commands: {', '.join(map(str, hidden))}." if hidden else ""
    limit = f"time limit {seconds:g} s unless `timeout` is given" if seconds else "no time limit"
    return (
        f"Run a command line in the workspace ({limit}). Each call is a new shell: directory and variables do not "
        "persist, and nothing keeps running after it. Returns stdout and stderr as one text, then the return code; if "
        "longer than 10,000 characters, only the head and the tail. If the first output line is "
        f"{SUBMIT_LINE}, the rest is submitted. {shell.sandbox.network_rule}{unseen}"
    )


_FILE_READ = (
    "Read in the workspace: view a file or directory, read some lines, search with a regular expression, find files."
)
_GREP = (
    "Search file contents with a regular expression. In a git repository, files that git ignores are skipped unless "
    "`path` itself is ignored. Lines are grouped by file, as `number:line`, or `number-line` for context."
)
_GLOB = f"Find files by name or path, at most {ENTRIES}. In a git repository, files that git ignores are skipped."
_WEB_FETCH = (
    "Get a page of the web as Markdown; text and JSON come unchanged. Of a long page, first the head and the tail. No "
    "login, no JavaScript, only GET."
)
_FILE_WRITE = "Write a whole file in the workspace; parent directories are created. To change a part, use editor."
_EDITOR = "Change a file: str_replace a text that occurs exactly once, insert lines, or undo_edit the last change."
_TODO = "Keep a to-do list, for work of several steps. Users see it. Send the whole list each time."
_ADD_COMMENT = (
    "Write a comment to the thread of your task, where users and the other agents read it. It appears immediately and "
    "permanently. The last tag in the last comment of your turn, @name or @user, decides who is next."
)
_ASK = (
    "Ask your user a question that only they can answer, and wait for the answer, which is the result of the call. The "
    "wait costs none of your time, but may take hours: decide yourself wherever a wrong guess is easy to correct."
)
_ANSWER_REVIEW = (
    "Answer a comment of the user's review, once each: done, declined with the reason, or asks with a question. The "
    "user sees it next to the lines. The commit of what is done is filled in when your work is delivered."
)
_REMEMBER = (
    "Propose a short note for later work: what took you long to find out, or what the user told you to do always. A "
    "user decides whether it is kept. No secrets, nothing about the present task, nothing that the repository says."
)
_SUBMIT = "Report that the work is done, with a summary. Nothing can be done after it."


@dataclass(frozen=True)
class _ModeTools:
    """Tools as a mode that is not built in allows them (G-030).

    They are the same for the whole run, so that the request's list of tools stays the same.
    """

    own: Sequence[ForeignTool]
    foreign: Sequence[ForeignTool]
    problems: Sequence[str] = ()
    """Tools that the mode allows and the run does not have, one sentence each."""


def _limited(mode: ModeDefinition | None, own: Sequence[ForeignTool], foreign: Sequence[ForeignTool]) -> _ModeTools:
    """Those of the tools that the mode allows; all of them without a mode, or for one that names none."""
    if mode is None or not mode.tools:
        return _ModeTools(own, foreign)
    allowed = {*ALWAYS, *(name.removeprefix(EXTENSION_PREFIX) for name in mode.tools)}
    there = {tool.spec.name for tool in (*own, *foreign)}
    return _ModeTools(
        own=[tool for tool in own if tool.spec.name in allowed],
        foreign=[tool for tool in foreign if tool.spec.name in allowed],
        problems=[
            f"The mode {mode.name} allows the tool {name!r}, which this run does not have."
            for name in sorted(allowed - there - {*ALWAYS})
        ],
    )
