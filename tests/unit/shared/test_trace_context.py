"""The header `traceparent`: what the standard accepts, and what it tells to ignore."""

from __future__ import annotations

from shared.trace_context import TraceParent, valid_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{SPAN}-01"


def test_a_valid_header_is_kept_as_it_is() -> None:
    assert TraceParent.read(VALID) == TraceParent(bytes.fromhex(TRACE), bytes.fromhex(SPAN), sampled=True)
    assert valid_traceparent(VALID) == VALID


def test_only_one_flag_says_whether_the_sender_records_the_trace() -> None:
    for flags, sampled in (("00", False), ("01", True), ("03", True), ("fe", False)):
        parent = TraceParent.read(f"00-{TRACE}-{SPAN}-{flags}")
        assert parent is not None, flags
        assert parent.sampled == sampled, flags


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    cases: list[str] = [f"cc-{TRACE}-{SPAN}-01", f"01-{TRACE}-{SPAN}-01-what-a-later-version-adds"]
    wrong = [(header, got) for header in cases if (got := valid_traceparent(header)) != VALID]
    assert wrong == []


def test_any_other_header_is_ignored() -> None:
    cases: list[str] = [
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
    ]
    wrong = [(header, got) for header in cases if (got := valid_traceparent(header)) != ""]
    assert wrong == []
