"""Characters that were cut in half."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from drone.model.surrogates import whole, whole_json

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


@given(TEXT)
def test_whatever_is_said_can_be_stored(text: str) -> None:
    assert whole(whole(text)) == whole(text).encode().decode()
    assert json.loads(whole_json(json.dumps(text))) == whole(text)


@given(st.text())
def test_whole_text_stays_as_it_is(text: str) -> None:
    assert (whole(text), whole_json(json.dumps(text))) == (text, json.dumps(text))
