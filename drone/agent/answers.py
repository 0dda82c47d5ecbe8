"""What is wrong with an answer, said so that the model can mend it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from drone.agent.protocols import Answer, ToolSpec
from shared.messages import Message, ToolCall

_EMPTY = (
    "Your last answer held neither text nor a tool call. Call a tool to go on; when you are done, call `submit` or "
    "answer with a short summary."
)
_CUT = (
    "Your last answer reached the length limit before its end and was not taken. Answer more briefly, and write large "
    "files in several calls."
)


def with_distinct_ids(message: Message, taken: Collection[str]) -> Message:
    """Return the message with a call id of its own on every call; `taken` are ids of earlier messages.

    Some endpoints number the calls of each message from zero again, or give none an id: results could then not be
    told apart.
    """
    used = set(taken)
    calls = []
    for call in message.tool_calls:
        distinct = _distinct(call.id or "call", used)
        used.add(distinct)
        calls.append(call if distinct == call.id else call.model_copy(update={"id": distinct}))
    return message.model_copy(update={"tool_calls": tuple(calls)})


def format_problem(answer: Answer) -> str | None:
    """Say why an answer cannot be acted on at all; None if it can."""
    if answer.message.tool_calls:
        return None
    if answer.finish_reason == "length":
        return _CUT
    return None if answer.message.content.strip() else _EMPTY


def call_problem(call: ToolCall, tools: Sequence[ToolSpec], *, cut: bool) -> str | None:
    """Say why a call cannot be run, and how to mend it; None if it can. `cut`: the answer reached the length limit."""
    names = [tool.name for tool in tools]
    if call.name not in names:
        return f"Error: there is no tool named {call.name!r}. Call one of: {', '.join(names)}."
    try:
        arguments = json.loads(call.arguments)
    except ValueError as error:
        why = "the answer reached the length limit; write less in one call" if cut else str(error)
        return f"Error: the arguments of {call.name} are not valid JSON ({why}). Send the call again, whole."
    if not isinstance(arguments, dict):
        return f"Error: the arguments of {call.name} must be one JSON object, such as {_example(call.name, tools)}."
    return None


def parsed_arguments(call: ToolCall) -> Any:
    """Return the arguments as a value, or the model's own text where it is not JSON."""
    try:
        return json.loads(call.arguments)
    except ValueError:
        return call.arguments


def call_ids(messages: Iterable[Message]) -> set[str]:
    return {call.id for message in messages for call in message.tool_calls}


def _distinct(wanted: str, used: Collection[str]) -> str:
    if wanted not in used:
        return wanted
    number = 2
    while f"{wanted}_{number}" in used:
        number += 1
    return f"{wanted}_{number}"


def _example(name: str, tools: Sequence[ToolSpec]) -> str:
    parameters = next(tool.parameters for tool in tools if tool.name == name)
    return json.dumps({key: "…" for key in parameters.get("properties", {})}, ensure_ascii=False)
