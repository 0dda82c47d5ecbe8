"""The header `traceparent`: what the standard accepts, and what it tells to ignore."""

from __future__ import annotations

import pytest

from shared.trace_context import TraceParent, valid_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{SPAN}-01"


def test_a_valid_header_is_kept_as_it_is() -> None:
    assert TraceParent.read(VALID) == TraceParent(bytes.fromhex(TRACE), bytes.fromhex(SPAN), sampled=True)
    assert valid_traceparent(VALID) == VALID


@pytest.mark.parametrize(("flags", "sampled"), [("00", False), ("01", True), ("03", True), ("fe", False)])
def test_only_one_flag_says_whether_the_sender_records_the_trace(flags: str, sampled: bool) -> None:
    parent = TraceParent.read(f"00-{TRACE}-{SPAN}-{flags}")
    assert parent is not None
    assert parent.sampled == sampled


@pytest.mark.parametrize("header", [f"cc-{TRACE}-{SPAN}-01", f"01-{TRACE}-{SPAN}-01-what-a-later-version-adds"])
def test_a_later_version_is_read_as_far_as_it_is_known(header: str) -> None:
    assert valid_traceparent(header) == VALID


@pytest.mark.parametrize(
    "header",
    [
        "",
        "none",
        VALID.upper(),
        f"{VALID}-more",
        f"{VALID}\n",
        f" {VALID}",
        f"ff-{TRACE}-{SPAN}-01",
        f"cc-{TRACE}-{SPAN}-01.more",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        f"0-{TRACE}-{SPAN}-01",
    ],
)
def test_any_other_header_is_ignored(header: str) -> None:
    assert valid_traceparent(header) == ""
