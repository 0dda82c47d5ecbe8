"""What is read from HTTP: URLs of this machine, the header `traceparent`, and problem documents."""

from __future__ import annotations

from shared import errors
from shared.loopback import http_options, is_loopback
from shared.problems import error_of, kind_of
from shared.trace_context import TraceParent, valid_traceparent


def test_loopback_is_told_by_the_host_alone() -> None:
    cases: dict[str, bool] = {
        "http://127.0.0.1:1": True,
        "http://127.9.9.9": True,
        "http://[::1]:8420": True,
        "http://localhost": True,
        "http://localhost.example.org": False,
        "http://127.0.0.1.example.org": False,
        "http://127.0.0.1@example.org": False,
        "http://10.0.0.1": False,
        "": False,
    }
    assert {url: is_loopback(url) for url in cases} == cases


def test_only_plain_http_on_this_machine_goes_without_certificates() -> None:
    cases: list[tuple[str, bool, bool]] = [
        ("http://127.0.0.1:8420", False, False),
        ("https://127.0.0.1:8420", False, True),
        ("http://fleet.example.org", True, True),
        ("https://fleet.example.org", True, True),
    ]
    for url, proxies, certificates in cases:
        options = http_options(url)
        assert (options["trust_env"], bool(options["verify"])) == (proxies, certificates), url


TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{SPAN}-01"


def test_a_valid_traceparent_is_read_also_of_a_later_version_and_any_other_is_ignored() -> None:
    assert TraceParent.read(VALID) == TraceParent(bytes.fromhex(TRACE), bytes.fromhex(SPAN), sampled=True)
    flags = {"00": False, "01": True, "03": True, "fe": False}
    parents = {each: TraceParent.read(f"00-{TRACE}-{SPAN}-{each}") for each in flags}
    assert {each: parent.sampled for each, parent in parents.items() if parent} == flags
    kept = (VALID, f"cc-{TRACE}-{SPAN}-01", f"01-{TRACE}-{SPAN}-01-what-a-later-version-adds")
    ignored = (
        *("", "none", VALID.upper(), f"{VALID}-more", f"{VALID}\n", f" {VALID}", f"ff-{TRACE}-{SPAN}-01"),
        *(f"cc-{TRACE}-{SPAN}-01.more", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01"),
        *(f"00-{TRACE[1:]}-{SPAN}-01", f"00-{TRACE}-{SPAN}", f"0-{TRACE}-{SPAN}-01"),
    )
    found = {header: valid_traceparent(header) for header in (*kept, *ignored)}
    assert found == {**dict.fromkeys(kept, VALID), **dict.fromkeys(ignored, "")}


PROBLEM = {"code": "E-DRONE-404", "detail": "no drone has this name", "why": "it was removed", "next": "fleet drones"}


def test_the_status_decides_the_class_and_with_it_the_exit_code() -> None:
    cases: list[tuple[int, type[errors.FleetError]]] = [
        (401, errors.Unauthenticated),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (412, errors.Precondition),
        (413, errors.TooLarge),
        (422, errors.Invalid),
        (429, errors.TooOften),
        (418, errors.Refused),
        (503, errors.FleetFault),
    ]
    for status, kind in cases:
        assert type(error_of(status, PROBLEM)) is kind, status
        assert kind_of(status) is kind, status
    error = error_of(404, PROBLEM)
    assert error is not None
    assert (error.code, error.what, error.why, error.next) == tuple(PROBLEM.values())
    others: list[object] = [None, [], "text", {}, {"code": 7}, {"detail": "no code"}]
    assert [other for other in others if error_of(404, other) is not None] == []
