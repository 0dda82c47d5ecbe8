"""What in a comment is a tag (S-050)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.teams.tags import tags_in

PIECES: list[tuple[str, tuple[str, ...]]] = [
    ("plain words", ()),
    ("@backend_dev.", ("backend_dev",)),
    ("(@user)", ("user",)),
    ("@lead, @tester: look", ("lead", "tester")),
    ("**@lead**", ("lead",)),
    ("@lead's", ("lead",)),
    ("@Foo and @1x and @_x", ()),
    ("@fooBar", ()),
    ("me@example.org", ()),
    ("a@b", ()),
    ("@a@b", ()),
    ("@@lead", ()),
    ("@", ()),
    ("`@lead`", ()),
    ("`` a ` @lead ``", ()),
    ("```@lead```", ()),
    ("a lonely ` and @lead", ("lead",)),
    ("é@lead @leadé", ()),
    ("\n```\n@lead\n```\n", ()),
    ("\n~~~~ python\n@lead\n~~~\n@lead\n~~~~\n", ()),
    ("\n- ```\n  @lead\n  ```\n", ()),
    ("\n> ```\n> @lead\n> ```\n", ()),
    ("\n```py\r\n@lead\r\n```\r\n", ()),
    ("a lonely ` here\n\n@lead and a lonely ` there", ("lead",)),
]


def test_a_tag_is_a_name_behind_an_at_sign_and_not_code_or_an_address() -> None:
    assert [(text, tags_in(text)) for text, _ in PIECES] == PIECES


@given(st.lists(st.sampled_from(PIECES), max_size=8))
def test_tags_come_in_the_order_of_the_text(pieces: list[tuple[str, tuple[str, ...]]]) -> None:
    text = "\n\n".join(text for text, _ in pieces)
    assert tags_in(text) == tuple(tag for _, tags in pieces for tag in tags)
    # A fenced block that is never closed goes to the end.
    assert tags_in(f"@lead\n```\n{text.replace('`', '').replace('~', '')}") == ("lead",)


@pytest.mark.timeout(60)
def test_a_long_comment_full_of_marks_is_read_to_its_end() -> None:
    for text in ("`" * 3000 + "``` " * 30_000, " ".join("`" * n for n in range(1, 440)), "> " * 50_000):
        assert tags_in(f"{text}\n\n@lead") == ("lead",)
