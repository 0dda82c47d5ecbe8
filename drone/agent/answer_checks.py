"""Problems with an answer, worded so that the model can fix them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from drone.agent.values import ModelResponse, ToolSpec
from shared.messages import Message, ToolCall

DEEPEST = 64
"""Levels of nesting in a call's arguments; values that are stored and sent as JSON must stay far below 255."""
_EMPTY = (
    "Your last answer has neither text nor a tool call. Call a tool to continue; when you are done, call `submit` or "
    "answer with a short summary."
)
_CUT = (
    "Your last answer reached the length limit and was not used. Answer more briefly, and write large files in several "
    "calls."
)


def with_distinct_ids(message: Message, taken: Collection[str]) -> Message:
    """Return the message with a unique id on every call; `taken` are ids of earlier messages.

    Some endpoints restart the numbering for each message, or send no ids: results would then be ambiguous.
    """
    used = set(taken)
    calls = []
    for call in message.tool_calls:
        distinct = _distinct(call.id or "call", used)
        used.add(distinct)
        calls.append(call if distinct == call.id else call.model_copy(update={"id": distinct}))
    return message.model_copy(update={"tool_calls": tuple(calls)})


def format_problem(answer: ModelResponse) -> str | None:
    """Return why an answer cannot be acted on at all; None if it can."""
    if answer.message.tool_calls:
        return None
    if answer.finish_reason == "length":
        return _CUT
    return None if answer.message.content.strip() else _EMPTY


def call_problem(call: ToolCall, tools: Sequence[ToolSpec], *, cut: bool) -> str | None:
    """Return why a call cannot be run and how to fix it; None if it can. `cut`: the answer reached the length limit."""
    names = [tool.name for tool in tools]
    if not call.name:
        return f"Error: this call names no tool. Call one of: {', '.join(names)}."
    if call.name not in names:
        return f"Error: there is no tool named {call.name!r}. Call one of: {', '.join(names)}."
    try:
        arguments = json.loads(call.arguments)
    except ValueError as error:
        why = "the answer reached the length limit; write less in one call" if cut else str(error)
        return f"Error: the arguments of {call.name} are not valid JSON ({why}). Send the complete call again."
    except RecursionError:
        return _nested(call)
    if _depth(arguments) > DEEPEST:
        return _nested(call)
    if not isinstance(arguments, dict):
        return f"Error: the arguments of {call.name} must be one JSON object, such as {_example(call.name, tools)}."
    return None


def parsed_arguments(call: ToolCall) -> Any:
    """Return the arguments as a value, or the model's own text if it is not JSON or is nested deeper than DEEPEST."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call.arguments
    return call.arguments if _depth(arguments) > DEEPEST else arguments


def call_ids(messages: Iterable[Message]) -> set[str]:
    return {call.id for message in messages for call in message.tool_calls}


def _nested(call: ToolCall) -> str:
    return f"Error: the arguments of {call.name} are nested too deeply. Send the call again with plain values."


def _depth(value: Any) -> int:
    """Nesting depth of lists and objects; without recursion, which has its own limit."""
    depth, level = 0, [value]
    while level := [inner for each in level if isinstance(each, list | dict) for inner in _inside(each)]:
        depth += 1
        if depth > DEEPEST:
            break
    return depth


def _inside(container: list[Any] | dict[str, Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


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
