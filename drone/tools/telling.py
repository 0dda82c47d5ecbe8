"""Tools with which an agent turns to people: ask, todo, add_comment and remember."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from drone.agent.values import AskedQuestion, ToolResult
from drone.tools.arguments import AddCommentArguments, AskArguments, RememberArguments, TodoArguments
from drone.tools.wrong_use import WrongUse
from shared.blobs import MAX_EVENT, sealed_size
from shared.events import CommentStep, RememberStep, TodoItem, TodoStep
from shared.memory import MAX_NOTE, MAX_REASON, one_line
from shared.redaction import cut_short, known

ASK = "ask"
MAX_QUESTION, MAX_CHOICE = 4000, 200
"""Characters of the question and the default, and of one choice."""
MAX_CHOICES = 12
MIN_DEADLINE, MAX_DEADLINE = 10, 7 * 86400
"""Seconds."""
_WORDS = {"done": "done", "in_progress": "in progress", "pending": "pending"}


def ask(call: AskArguments) -> ToolResult:
    """ask: return a question to the user, whose answer is the result of the call. Raises WrongUse."""
    question = _text("question", call.question, MAX_QUESTION)
    choices = tuple(_text("choices", each, MAX_CHOICE) for each in call.choices)
    if len(choices) > MAX_CHOICES:
        raise WrongUse(f"ask: {len(choices)} choices are too many (maximum {MAX_CHOICES}); group them")
    if len({each.casefold() for each in choices}) < len(choices):
        raise WrongUse("ask: two choices are the same; each must differ from the others")
    default = None if call.default is None else _default(call.default, choices)
    if call.deadline is not None and not MIN_DEADLINE <= call.deadline <= MAX_DEADLINE:
        raise WrongUse(
            f"ask: the deadline must be {MIN_DEADLINE} to {MAX_DEADLINE} seconds (given: {call.deadline:g}); "
            "leave it out to wait as long as the order allows"
        )
    return ToolResult("", asks=AskedQuestion(question, choices, default, call.deadline))


def _default(given: str, choices: tuple[str, ...]) -> str:
    default = _text("default", given, MAX_QUESTION)
    if choices and default not in choices:
        raise WrongUse(f"ask: the default {cut_short(default, 80)!r} is not one of the choices: {', '.join(choices)}")
    return default


def _text(name: str, given: str, longest: int) -> str:
    text = given.strip()
    if not text:
        raise WrongUse(f"ask: `{name}` is empty; write what the user needs to know to answer")
    if len(text) > longest:
        raise WrongUse(f"ask: `{name}` has {len(text):,} characters (maximum {longest:,}); shorten it")
    return text


@dataclass(frozen=True)
class Todo:
    """todo: the model's list of remaining work, shown to people next to the run. Each call has the complete list."""

    record: Callable[[TodoStep], object]

    def __call__(self, call: TodoArguments) -> ToolResult:
        states = [item.status for item in call.items]
        if states.count("in_progress") > 1:
            raise WrongUse(
                f"{states.count('in_progress')} items are in_progress; keep only the one that you are working on, and "
                "set the others to pending or done"
            )
        self.record(TodoStep(items=tuple(TodoItem(text=item.text, status=item.status) for item in call.items)))
        counts = [f"{states.count(state)} {word}" for state, word in _WORDS.items() if state in states]
        return ToolResult(f"noted: {', '.join(counts)}" if counts else "noted: the list is empty")


# --- the thread of a task -------------------------------------------------------------------------

ADD_COMMENT = "add_comment"
MAX_COMMENT = 100_000
"""Characters; longer texts belong in a file (S-072)."""


class AddComment:
    """add_comment: the only way for an agent to write to the thread of its task (S-065).

    It records each comment once and permanently, as soon as it is called.

    A comment does not wait for the end of its step: people read it while the agent continues. So it stays when the step
    is cut off, and the resumed run may write the same text again, which is not recorded a second time.
    """

    def __init__(self, record: Callable[[CommentStep], object], unseen: Iterable[str] = ()) -> None:
        """`unseen`: comments of earlier runs of this turn that the conversation does not show."""
        self._record = record
        self._unseen = Counter(map(str.strip, unseen))
        self.written = 0
        """Number of comments written by this run."""

    def __call__(self, call: AddCommentArguments) -> ToolResult:
        text = call.message.strip()
        if not text:
            raise WrongUse("add_comment: the message is empty; write what the others need to know")
        if self._unseen[text]:
            self._unseen[text] -= 1
            return ToolResult("this comment is already in the thread, from before the run was interrupted")
        step = CommentStep(text=text, to_task=True)
        if len(text) > MAX_COMMENT or sealed_size(step.model_dump_json()) > MAX_EVENT:
            raise WrongUse(
                f"add_comment: {len(text):,} characters are too long for a comment; write them to a file in the "
                "repository, and a comment with its path and a summary"
            )
        self._record(step)
        self.written += 1
        return ToolResult(f"comment {self.written} of this turn is in the thread")


# --- notes for later orders -----------------------------------------------------------------------

REMEMBER = "remember"
MOST_NOTES = 5
"""Notes of one run."""


class Remember:
    """remember: a short note for later orders, which takes effect once a user has agreed to it."""

    def __init__(self, record: Callable[[RememberStep], object]) -> None:
        self._record = record
        self._written: list[str] = []

    def __call__(self, call: RememberArguments) -> ToolResult:
        text, why = _line("note", call.note, MAX_NOTE), _line("why", call.why, MAX_REASON)
        if text in self._written:
            raise WrongUse(f"{REMEMBER}: you have proposed this note already")
        if len(self._written) >= MOST_NOTES:
            raise WrongUse(f"{REMEMBER}: {MOST_NOTES} notes are the most for one run; nothing more can be proposed")
        self._record(RememberStep(text=text, why=why, scope=call.scope))
        self._written.append(text)
        return ToolResult("proposed; a user decides whether later work gets this note")


def _line(name: str, given: str, longest: int) -> str:
    if len(given) > 4 * longest or len(text := one_line(given)) > longest:
        raise WrongUse(f"{REMEMBER}: `{name}` has {len(given):,} characters (maximum {longest:,}); shorten it")
    if not text:
        raise WrongUse(f"{REMEMBER}: `{name}` is empty")
    if known().text(text) != text:
        raise WrongUse(f"{REMEMBER}: `{name}` contains a secret; name where it is kept instead")
    return text
