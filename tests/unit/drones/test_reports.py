"""Each kind of report: opened if its sender, its envelope and its content agree, and refused otherwise."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from control_plane.drones.reports import REPORTS, ForeignRun, InvalidReport, RefusalLog, ReportSender, open_report
from shared.envelope import Binding, key_id, new_private_key, public_key, seal
from shared.events import Beat, Delta, Event, Hello, Phase, RunBeat
from shared.registration import NewKey
from tests.support.clocks import HandClock
from tests.support.quiet_logs import quiet_logs

FLEET, DRONE, NEXT = new_private_key(), new_private_key(), new_private_key()
KEYS = {key_id(public_key(FLEET)): FLEET}
SENDER = ReportSender(
    "drone0000000",
    (public_key(DRONE), public_key(NEXT)),
    {"run000000000": "drone0000000", "run111111111": "drone1111111"}.get,
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
IDS: dict[str, Any] = {"run_id": "run000000000", "order_id": "order0000000", "generation": 2}
SELF: dict[str, Any] = {"drone_id": "drone0000000", "machine_id": "m", "boot_id": "b", "version": "1"}
SELF |= {"sandbox": "none", "concurrency": 1}
OWN, FOREIGN = RunBeat(**IDS), RunBeat(**{**IDS, "run_id": "run111111111"})
SAMPLES: dict[type, Any] = {
    Event: Event(**IDS, seq=1, at=NOW, body=Phase(name="setup")),
    Hello: Hello(**SELF, at=NOW, runs=(OWN, FOREIGN)),
    Beat: Beat(**SELF, sent_at=NOW, runs=(OWN, FOREIGN)),
    Delta: Delta(run_id="run000000000", order_id="order0000000", kind="text", text="x"),
    NewKey: NewKey(drone_id="drone0000000", public_key="AAAA"),
}


FIELDS = [
    (kind, field)
    for kind in REPORTS
    for field in ("drone_id", "order_id", "run_id", "generation")
    if field in kind.model_fields
]


def sealed(kind: type, body: str, *, by: bytes = DRONE, **bound: Any) -> str:
    """A report in the envelope that the drone makes for it."""
    sample = SAMPLES[kind]
    own = {"direction": REPORTS[kind], "drone": "drone0000000"}
    for field, name in (("order_id", "order"), ("run_id", "run"), ("generation", "generation")):
        if hasattr(sample, field):
            own[name] = getattr(sample, field)
    binding = Binding.model_validate({**own, **bound})
    return seal(body, binding, sender=by, recipient=public_key(FLEET), issued_at=NOW)


def test_a_report_under_another_key_or_for_another_drone_or_direction_is_refused() -> None:
    for kind in REPORTS:
        body = SAMPLES[kind].model_dump_json()
        foreign = [sealed(kind, body, by=new_private_key())]
        foreign += [sealed(kind, body, **bound) for bound in ({"drone": "drone1111111"}, {"direction": "control"})]
        for envelope in foreign:
            with pytest.raises(InvalidReport, match="cannot be opened"):
                open_report(kind, envelope, SENDER, KEYS)
        with pytest.raises(InvalidReport, match="invalid fields"):
            open_report(kind, sealed(kind, '{"drone_id": 1}'), SENDER, KEYS)


def test_a_drones_own_report_is_opened_without_what_it_says_of_foreign_runs() -> None:
    for kind in REPORTS:
        body = SAMPLES[kind].model_dump_json()
        report = open_report(kind, sealed(kind, body), SENDER, KEYS)
        without = {"runs": (OWN,)} if "runs" in kind.model_fields else {}
        assert report == SAMPLES[kind].model_copy(update=without)
        assert open_report(kind, sealed(kind, body, by=NEXT), SENDER, KEYS)


def test_every_kind_contains_an_id_of_its_sender() -> None:
    assert {kind for kind, field in FIELDS if field in {"drone_id", "run_id"}} == set(REPORTS)


def test_an_id_that_differs_from_the_envelopes_is_refused() -> None:
    for kind, field in FIELDS:
        other = SAMPLES[kind].model_copy(update={field: 3 if field == "generation" else "another00000"})
        with pytest.raises(InvalidReport, match=f"another {field} than its envelope"):
            open_report(kind, sealed(kind, other.model_dump_json()), SENDER, KEYS)
    for kind in (Event, Delta):
        other = SAMPLES[kind].model_copy(update={"run_id": "run111111111"})
        with pytest.raises(ForeignRun):
            open_report(kind, sealed(kind, other.model_dump_json(), run="run111111111"), SENDER, KEYS)


def test_refusals_of_one_drone_are_logged_once_in_ten_minutes(caplog: pytest.LogCaptureFixture) -> None:
    quiet_logs()
    clock = HandClock()
    refusals = RefusalLog(clock)
    with caplog.at_level(logging.WARNING):
        [refusals.note("refused", drone, InvalidReport("x")) for drone in ("a", "a", "b", "a")]
        clock.sleep(601)
        refusals.note("refused", "a", InvalidReport("x"))
    assert len(caplog.records) == 3
