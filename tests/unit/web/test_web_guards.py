"""What bodies and addresses may hold."""

from __future__ import annotations

import json

import pytest

from control_plane.web.middleware import refuse_no_text, refuse_nul
from shared.errors import Invalid


def test_a_text_that_nothing_can_hold_is_refused_however_deep() -> None:
    for value in ("a\0b", "\ud83d", {"key \udc00": 1}, [[{"deep": ["\0"]}]]):
        with pytest.raises(Invalid):
            refuse_no_text(json.dumps(value).encode())


def test_what_only_looks_like_one_or_is_no_json_is_let_through() -> None:
    for value in ("💥", "\\u0000 as text", "\\ud83d", "a\n\t\x01b", {}, None):
        refuse_no_text(json.dumps(value).encode())
    for body in (b"", b"{\\u0000", b"[" * 100_000 + b"\\u0000", b"\\ud800"):
        refuse_no_text(body)


def test_a_nul_in_an_address_is_refused() -> None:
    with pytest.raises(Invalid):
        refuse_nul({"path": "/a\0b", "query_string": b""})
