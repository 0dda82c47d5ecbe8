"""Conversations: their one rule, and how to rebuild them from the steps of runs.

The rule: every call id is answered by exactly one tool message. An endpoint refuses a conversation that breaks it, so
it holds after every step, however the step ended.
"""

from __future__ import annotations

from collections.abc import Iterable

from shared.events import AssistantStep, Body, CompactionStep, ReasoningStep, ToolResultStep, UserStep
from shared.messages import Message, ToolCall

BROKEN_OFF = "This call was interrupted"
SITUATION = "<situation>"
"""Begins the text that the loop adds below the prompt, only in the message that opens a run (`user.jinja`)."""
SUMMARY_BEGINS, SUMMARY_ENDS = "<summary>\n", "\n</summary>"


def messages_of(bodies: Iterable[Body], history: Iterable[Message] = ()) -> list[Message]:
    """Return the conversation after the steps of one run, which began with `history`; without the system prompt.

    A compaction step replaces messages with its summary. The steps give the same messages as in the loop, byte for
    byte, so that the next turn's prompt begins with the same prefix.
    """
    messages = list(history)
    thought: ReasoningStep | None = None
    for body in bodies:
        match body:
            case ReasoningStep():
                thought = body
            case AssistantStep():
                messages.append(_answer(body, thought))
                thought = None
            case UserStep():
                messages.append(said(body))
            case ToolResultStep():
                messages.append(_result(body))
            case CompactionStep():
                messages = compacted(messages, body.summary, body.kept)
            case _:
                pass
    return messages


def _result(body: ToolResultStep) -> Message:
    return Message(role="tool", tool_call_id=body.call_id, content=body.output, is_error=body.is_error)


def compacted(messages: list[Message], summary: str, kept: int) -> list[Message]:
    """Return the summary followed by the last `kept` messages; `messages` has no system prompt."""
    tail = messages[len(messages) - kept :] if kept else []
    return [summary_message(summary), *tail]


def summary_message(summary: str) -> Message:
    """The message that replaces the compacted part of a conversation."""
    return Message(role="user", content=f"{SUMMARY_BEGINS}{summary.strip()}{SUMMARY_ENDS}", part="summary")


def said(body: UserStep) -> Message:
    """The message of a user or of the loop that the step recorded."""
    return Message(role="user", content=body.text, part="opening" if body.source == "prompt" else "other")


def summary_in(message: Message) -> str | None:
    """The summary in a summary message; None for any other message."""
    if message.part != "summary":
        return None
    return message.content.removeprefix(SUMMARY_BEGINS).removesuffix(SUMMARY_ENDS)


def opens_turn(message: Message) -> bool:
    """Whether it is the message that opened a run."""
    return message.part == "opening"


def not_run(call: ToolCall, why: str) -> Message:
    """Return the answer to a call that was not run, with the reason."""
    return Message(role="tool", tool_call_id=call.id, content=f"This call was not run: {why}", is_error=True)


def repaired(history: Iterable[Message], *, open_end: bool = False) -> list[Message]:
    """Return a history that may have been cut anywhere in a form that follows the rule.

    Unanswered calls are answered as not run; answers without a call are left out. `open_end`: calls at the end stay
    unanswered, for a run that continues with them.
    """
    whole: list[Message] = []
    waiting: dict[str, ToolCall] = {}
    for message in history:
        if message.role == "tool":
            if waiting.pop(message.tool_call_id or "", None):
                whole.append(message)
            continue
        whole.extend(not_run(call, "the run had ended.") for call in waiting.values())
        waiting = {call.id: call for call in message.tool_calls}
        whole.append(message)
    if not open_end:
        whole.extend(not_run(call, "the run had ended.") for call in waiting.values())
    return whole


def _answer(body: AssistantStep, thought: ReasoningStep | None) -> Message:
    return Message(
        role="assistant",
        content=body.text,
        thinking=thought.text if thought else "",
        thinking_blocks=thought.blocks if thought else (),
        tool_calls=body.tool_calls,
    )
