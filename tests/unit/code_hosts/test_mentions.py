"""Which comments address the fleet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.code_hosts.mentions import request_in
from shared.code_hosts import is_ours, marked


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("@fleet fix it", "fix it"),
        ("@Fleet: fix it", "fix it"),
        ("Please, @fleet, fix it", "Please, @fleet, fix it"),
        ("@fleet", "@fleet"),
        ("Thanks.\r\n\r\n@fleet now the docs", "Thanks.\n\n@fleet now the docs"),
    ],
)
def test_a_comment_that_addresses_the_fleet_is_its_request(text: str, request_: str) -> None:
    assert request_in(text, "@fleet") == request_


@pytest.mark.parametrize(
    "text",
    [
        "fix it",
        "> @fleet fix it",
        "`@fleet` is the word",
        "```\n@fleet fix it\n```",
        "~~~\n@fleet fix it",
        "    @fleet fix it",
        "@fleet-admins look",
        "@fleets look",
        "me@fleet.example",
        "see https://host/@fleet",
        "@fleet.org",
    ],
)
def test_a_quotation_code_or_another_word_is_no_mention(text: str) -> None:
    assert request_in(text, "@fleet") is None


@given(st.text())
def test_what_the_fleet_writes_is_recognized_whatever_it_says(text: str) -> None:
    assert is_ours(marked("abc", text))
    assert not is_ours(f"> {marked('abc', text)}")
