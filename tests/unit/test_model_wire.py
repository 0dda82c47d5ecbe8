"""Messages as an endpoint wants them, and an answer put together from its pieces."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from drone.model.wire import NO_ANSWER, Assembly, to_wire
from shared.messages import Message, ToolCall


def _delta(**more: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"content": None, "tool_calls": None, "reasoning_content": None, **more})


def _piece(index: int, call_id: str | None = None, name: str | None = None, arguments: str = "") -> SimpleNamespace:
    return SimpleNamespace(index=index, id=call_id, function=SimpleNamespace(name=name, arguments=arguments))


def _assembled(*deltas: SimpleNamespace) -> tuple[Message, list[tuple[str, str]]]:
    seen: list[tuple[str, str]] = []
    assembly = Assembly(lambda kind, text: seen.append((kind, text)))
    any(map(assembly.add, deltas))
    return assembly.message(), seen


def test_thinking_is_sent_back_before_the_content() -> None:
    message = Message(role="assistant", content="I found it.", thinking="Where is it?")
    assert to_wire([message])[0]["content"] == "<thinking>Where is it?</thinking>\nI found it."


def test_an_answer_that_held_nothing_is_not_sent_back_empty() -> None:
    assert to_wire([Message(role="assistant")])[0]["content"] == NO_ANSWER


def test_arguments_that_are_no_json_object_go_back_inside_one() -> None:
    call = ToolCall(id="a", name="shell", arguments='{"command": "l')
    sent = to_wire([Message(role="assistant", tool_calls=(call,))])[0]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"not_json": '{"command": "l'}


def test_text_thinking_and_calls_are_put_together_by_index() -> None:
    message, _ = _assembled(
        _delta(reasoning_content="Hm."),
        _delta(content="Let me "),
        _delta(content="look."),
        _delta(tool_calls=[_piece(0, "a", "one"), _piece(1, "b", "two")]),
        _delta(tool_calls=[_piece(1, arguments='{"x"'), _piece(0, arguments="{}")]),
        _delta(tool_calls=[_piece(1, arguments=": 1}")]),
    )
    assert (message.thinking, message.content) == ("Hm.", "Let me look.")
    assert [(c.id, c.name, c.arguments) for c in message.tool_calls] == [("a", "one", "{}"), ("b", "two", '{"x": 1}')]


def test_calls_that_all_have_the_index_nought_are_told_apart_by_their_ids() -> None:
    message, _ = _assembled(
        _delta(tool_calls=[_piece(0, "a", "one", "{}")]), _delta(tool_calls=[_piece(0, "b", "two", "{}")])
    )
    assert [(call.id, call.name) for call in message.tool_calls] == [("a", "one"), ("b", "two")]


def test_a_name_that_is_repeated_in_every_piece_is_taken_once() -> None:
    message, _ = _assembled(
        _delta(tool_calls=[_piece(0, "a", "one", '{"x":')]), _delta(tool_calls=[_piece(0, "a", "one", "1}")])
    )
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("one", '{"x":1}')]


def test_every_piece_is_shown_as_it_comes() -> None:
    _, seen = _assembled(
        _delta(reasoning_content="Hm."), _delta(content="Yes."), _delta(tool_calls=[_piece(0, "a", "one", "{}")])
    )
    assert seen == [("thinking", "Hm."), ("text", "Yes."), ("tool_call", "one "), ("tool_call", "{}")]
