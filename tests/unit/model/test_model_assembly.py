"""An answer put together from its pieces, whole or odd."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drone.model.answer_assembly import LONGEST, Assembly
from drone.model.model_families import Thinking
from drone.model.surrogates import whole, whole_json
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
    long = Assembly(lambda *_: None, HandClock())
    long.add(_delta(tool_calls=[_piece(0, "a", "one", "x" * LONGEST)]))
    assert long.too_long
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


def test_calls_are_told_apart_by_what_their_pieces_have_in_common() -> None:
    named, one = (("a", "one", "{}"), ("b", "two", "{}")), ("", "one", '{"x": 1}')
    assert _calls(*(_piece(0, *each) for each in named)) == list(named), "all have the index 0"
    unnamed = _calls(*(_piece(None, None, "one", text) for text in ('{"x": 1}', '{"x": 2}')))
    assert unnamed == [one, ("", "one", '{"x": 2}')]
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


TEXT = st.text(alphabet=st.characters(categories=None) | st.sampled_from("\ud83d\ude00\\ud"))


def test_a_half_in_an_escape_is_marked_and_nothing_else_is_touched() -> None:
    cases: dict[str, str] = {
        r'{"a": "\ud83d\ude00"}': r'{"a": "\ud83d\ude00"}',
        r'{"a": "\ud83d"}': r'{"a": "\ufffd"}',
        r'{"a": "\uDE00\ud83d x"}': r'{"a": "\ufffd\ufffd x"}',
        r'{"a": "\\ud83d"}': r'{"a": "\\ud83d"}',
        r'{"a": "\ud83d\\ude00"}': r'{"a": "\ufffd\\ude00"}',
        "no json \\ud8": "no json \\ud8",
    }
    assert {text: whole_json(text) for text in cases} == cases


def test_a_raw_line_break_in_a_string_of_json_becomes_an_escape_if_nothing_else_is_wrong() -> None:
    cases: dict[str, str] = {
        '{"path":"a.txt","content":"one\ntwo"}': '{"path":"a.txt","content":"one\\ntwo"}',
        '{\n\t"a": "1\r\n\t2\\n\x1b[0m \\"x\n\\""\n}\n': '{\n\t"a": "1\\r\\n\\t2\\n\\u001b[0m \\"x\\n\\""\n}\n',
        '{"a\nb": ["\0", 1.50, 12345678901234567890]}': '{"a\\nb": ["\\u0000", 1.50, 12345678901234567890]}',
        '{"a": "\ud83d\n"}': '{"a": "\ufffd\\n"}',
        # Valid, or not to be saved: unchanged.
        '{\n "a": "one\\ntwo"\n}': '{\n "a": "one\\ntwo"\n}',
        '{"a": "one\ntwo': '{"a": "one\ntwo',
        '{"a": "say "hi"\n"}': '{"a": "say "hi"\n"}',
        'a.py\nprint("x\ny")': 'a.py\nprint("x\ny")',
        "[" * 100_000 + "\n": "[" * 100_000 + "\n",
    }
    assert {text: whole_json(text) for text in cases} == cases
    call = _calls(_piece(0, "a", "file_write", '{"content":"one\n'), _piece(0, arguments='two"}'))
    assert call == [("a", "file_write", '{"content":"one\\ntwo"}')]


@given(TEXT)
def test_whatever_is_said_can_be_stored(text: str) -> None:
    assert whole(whole(text)) == whole(text).encode().decode()
    assert json.loads(whole_json(json.dumps(text))) == whole(text)


TEXT_PIECE = st.one_of(st.none(), st.text(max_size=4))
ARGUMENTS = st.sampled_from([None, "", "{", '{"text":', ' "x"}', "[]", "\ud83d"])
FUNCTION = st.builds(SimpleNamespace, name=st.sampled_from([None, "", "echo", "nothing"]), arguments=ARGUMENTS)
INDEXES, IDS = st.sampled_from([None, 0, 0, 1, 7]), st.sampled_from([None, "", "a", "b"])
PIECE = st.builds(SimpleNamespace, index=INDEXES, id=IDS, function=FUNCTION)
CALLS = st.one_of(st.none(), st.lists(PIECE, max_size=3))
DELTA = st.builds(SimpleNamespace, content=TEXT_PIECE, reasoning_content=TEXT_PIECE, tool_calls=CALLS)


@given(st.lists(DELTA, max_size=8))
def test_any_deltas_make_a_message_that_can_be_stored_with_their_text_as_it_was_shown(deltas: list[Any]) -> None:
    message, seen = _assembled(*deltas)
    message.model_dump_json().encode()
    assert message.content == "".join(text for kind, text in seen if kind == "text")
