"""An answer put together from its pieces, whole or odd."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from drone.model.assembly import LONGEST, Assembly
from drone.model.model_families import Thinking
from shared.messages import Message
from tests.support.clocks import HandClock


def _delta(**more: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"content": None, "tool_calls": None, "reasoning_content": None, **more})


def _piece(index: int | None, call_id: str | None = None, name: str | None = None, arguments: str = "") -> Any:
    return SimpleNamespace(index=index, id=call_id, function=SimpleNamespace(name=name, arguments=arguments))


def _assembled(*deltas: SimpleNamespace, thinking: Thinking = "tags") -> tuple[Message, list[tuple[str, str]]]:
    seen: list[tuple[str, str]] = []
    assembly = Assembly(lambda kind, text: seen.append((kind, text)), HandClock(), thinking)
    any(map(assembly.add, deltas))
    return assembly.message(), seen


def _calls(*pieces: Any) -> list[tuple[str, str, str]]:
    message, _ = _assembled(*(_delta(tool_calls=[piece]) for piece in pieces))
    return [(call.id, call.name, call.arguments) for call in message.tool_calls]


def _blocks(form: Thinking, *pieces: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    message, _ = _assembled(*(_delta(thinking_blocks=[piece]) for piece in pieces), thinking=form)
    return message.thinking_blocks


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


def test_how_long_thinking_streamed_is_known() -> None:
    clock = HandClock()
    assembly = Assembly(lambda *_: None, clock)
    for delta in (_delta(reasoning_content="Hm"), _delta(reasoning_content="."), _delta(content="Let me look.")):
        clock.sleep(2.0)
        assembly.add(delta)
    assert assembly.thinking_ms == 2000


def test_calls_are_told_apart_by_what_their_pieces_have_in_common() -> None:
    named, one = (("a", "one", "{}"), ("b", "two", "{}")), ("", "one", '{"x": 1}')
    assert _calls(*(_piece(0, *each) for each in named)) == list(named), "all have the index 0"
    assert _calls(*(_piece(None, None, "one", text) for text in ('{"x": 1}', '{"x": 2}'))) == [
        one,
        ("", "one", '{"x": 2}'),
    ]
    for call_id in ("a", None):
        repeated = (_piece(0, call_id, "one", text) for text in ('{"x":', "1}"))
        assert _calls(*repeated) == [(call_id or "", "one", '{"x":1}')]
    assert [name for _, name, _ in _calls(_piece(0, "a", "one", "{}"), _piece(1, "a", "two", "{}"))] == ["one", "two"]
    assert _calls(_piece(0, "a", None, '{"x": 1}')) == [("a", "", '{"x": 1}')]


def test_a_character_that_was_cut_in_two_is_whole_again_and_half_a_one_is_marked() -> None:
    message, seen = _assembled(_delta(content="ok \ud83d"), _delta(content="\ude00"), _delta(content="\ud83d"))
    assert message.content == "ok \U0001f600�"
    assert "".join(text for _, text in seen).encode()


def test_signed_thinking_is_put_together_block_by_block() -> None:
    blocks = _blocks(
        "blocks",
        {"type": "thinking", "thinking": "One ", "signature": None},
        {"type": "thinking", "thinking": "two."},
        {"type": "thinking", "thinking": "", "signature": "s1"},
        {"type": "thinking", "thinking": "Three.", "signature": ""},
        {"type": "thinking", "thinking": "", "signature": "s2"},
        {"type": "redacted_thinking", "data": "d1"},
        {"type": "redacted_thinking", "data": "d2"},
    )
    assert blocks == (
        {"type": "thinking", "thinking": "One two.", "signature": "s1"},
        {"type": "thinking", "thinking": "Three.", "signature": "s2"},
        {"type": "redacted_thinking", "data": "d1"},
        {"type": "redacted_thinking", "data": "d2"},
    )
    alone = {"type": "thinking", "thinking": "", "signature": "s"}
    assert _blocks("blocks", alone) == (alone,)
    assert _blocks("tags", {"type": "thinking", "thinking": "Hm.", "signature": "mistral"}) == (), "not kept"


def test_details_of_openrouter_are_put_together_by_their_index() -> None:
    kind = {"type": "reasoning.text", "format": "anthropic-claude-v1"}
    assembly = Assembly(lambda *_: None, HandClock(), "details")
    assembly.sign([{**kind, "text": "One ", "index": 0}, {**kind, "text": "two.", "index": 0}])
    assembly.sign([{**kind, "signature": "s1", "index": 0}])
    assembly.sign([{"type": "reasoning.encrypted", "data": "d", "id": "call_1", "index": 1}])
    assert assembly.message().thinking_blocks == (
        {**kind, "text": "One two.", "index": 0, "signature": "s1"},
        {"type": "reasoning.encrypted", "data": "d", "id": "call_1", "index": 1},
    )


def test_an_answer_that_is_longer_than_any_models_is_noticed() -> None:
    assembly = Assembly(lambda *_: None, HandClock())
    assembly.add(_delta(tool_calls=[_piece(0, "a", "one", "x" * LONGEST)]))
    assert assembly.too_long
