"""Valid return values of handlers, by event; other values are refused with a message for the handler's author."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from drone.agent.hooks.calling import WrongAnswer, plain
from drone.agent.hooks.events import Block, CancelCompaction, Patch
from shared.messages import Message


def nothing(_answer: object) -> None:
    """Ignore the return value of an observer."""


def prompt(answer: object) -> str:
    """The complete new system prompt."""
    if isinstance(answer, str) and answer.strip():
        return plain(answer)
    raise _wrong(answer, "a non-empty string")


def text(answer: object) -> str:
    """What the model is given in place of a user's text."""
    if isinstance(answer, str) and answer.strip():
        return plain(answer)
    raise _wrong(answer, "a non-empty string")


def text_or_block(answer: object) -> str | Block:
    """The same, or why the model is not given it."""
    return Block(refusal(answer)) if isinstance(answer, Block) else text(answer)


def history(answer: object) -> list[Message]:
    """The messages to continue with, without the system prompt."""
    messages = _messages(answer)
    if any(message.role == "system" for message in messages):
        raise WrongAnswer("it returned a system message; use before_agent_start for the system prompt")
    return messages


def for_one_question(answer: object) -> list[Message]:
    """Messages after the transcript: only user messages are allowed, or the sequence would be invalid."""
    if isinstance(answer, str):
        return [Message(role="user", content=plain(answer))] if answer.strip() else []
    messages = [answer] if isinstance(answer, Message) else _messages(answer)
    if any(message.role != "user" for message in messages):
        raise WrongAnswer("it returned a message whose role is not user")
    return messages


def refusal(answer: object) -> str:
    """Why a call must not run."""
    reason = answer.reason if isinstance(answer, Block) else answer
    if isinstance(reason, str):
        return plain(reason.strip()) or "an extension does not allow it."
    raise _wrong(answer, "a string or a Block")


def patch(answer: object) -> Patch:
    """The changes to a result."""
    if not isinstance(answer, Patch):
        raise _wrong(answer, "a Patch")
    if not isinstance(answer.output, str | None) or not isinstance(answer.is_error, bool | None):
        raise WrongAnswer("it returned a Patch whose fields have the wrong types")
    return answer if answer.output is None else replace(answer, output=plain(answer.output))


def summary(answer: object) -> CancelCompaction | str:
    """CANCEL, or the summary for a compaction."""
    if isinstance(answer, CancelCompaction):
        return answer
    if isinstance(answer, str) and answer.strip():
        return plain(answer)
    raise _wrong(answer, "CANCEL or a summary")


def _messages(answer: object) -> list[Message]:
    if isinstance(answer, Iterable) and not isinstance(answer, str | bytes | dict | Message):
        found = list(answer)
        if all(isinstance(message, Message) for message in found):
            return found
    raise _wrong(answer, "a list of Message")


def _wrong(answer: object, wanted: str) -> WrongAnswer:
    return WrongAnswer(f"it returned {type(answer).__name__}, not {wanted}")
