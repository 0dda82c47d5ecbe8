"""Traces of orders: what is in them, and their export to a receiver that is away, hangs, refuses or repeats."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import select

from control_plane.contract.declarations import orders
from control_plane.contract.declarations.orders import CancelRequest
from control_plane.core import Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.core.origin import RequestOrigin, coming_from
from control_plane.db.traces import TraceExport
from control_plane.operations.doctor import server_checks
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.retention.removing import _remove_orders
from control_plane.orders.lost import Loss, lose
from control_plane.telemetry.tracing.exporter import PATIENCE, TraceExporter
from control_plane.telemetry.tracing.spans import trace_id
from shared.events import Phase
from shared.reasons import RunLoss
from shared.states import OrderStatus
from shared.terminal.doctor import OK, WARN
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.fleet import Api, api_on, logs_in
from tests.support.made import make_project, submit
from tests.support.metrics import TOKEN, figure, scrape
from tests.support.otlp_receivers import OtlpReceiver, Received, names_below, only, problems_of

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def api(sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory, otlp: OtlpReceiver) -> Iterator[Api]:
    """A control plane that exports traces, with a project."""
    with api_on(sqlite_url, valkey, core_factory, otlp_endpoint=otlp.endpoint, metrics_token=TOKEN) as api:
        api.add_work()
        yield api


def submitted(api: Api, *headers: tuple[str, str]) -> str:
    """The id of an order that was submitted with these headers."""
    with api.http() as http:
        answer = http.post("/api/v1/orders", json={"prompt": "Fix it", "project": "demo"}, headers=list(headers))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def traced(api: Api, otlp: OtlpReceiver, order_id: str) -> list[Received]:
    TraceExporter(api.core).round()
    spans = otlp.trace_of(order_id)
    assert problems_of(spans) == []
    return spans


def test_an_order_belongs_to_the_trace_that_its_request_names_and_with_an_invalid_header_to_its_own(
    api: Api, otlp: OtlpReceiver
) -> None:
    """Which headers are valid is tested in tests/unit/shared/test_network.py."""
    named = f"00-{TRACE}-{SPAN}-01"
    for headers, right in (([named], True), (["none"], False), ([named] * 2, False)):
        order_id = submitted(api, *(("traceparent", value) for value in headers))
        api.client.call(orders.CANCEL, CancelRequest(), order_id=order_id)
        root = only(traced(api, otlp, order_id), "order")
        assert (root.trace == TRACE, root.parent) == (right, SPAN if right else ""), headers


def test_a_trace_names_what_its_order_belongs_to_and_how_it_ended(api: Api, otlp: OtlpReceiver) -> None:
    drone = api.add_drone(concurrency=9)
    for status, exit_status, error in (
        (OrderStatus.SUCCEEDED, "submitted", ""),
        (OrderStatus.FAILED, "model_error", "model_error"),
    ):
        order = api.submit()
        drone.take(order).ends(status)
        root = only(traced(api, otlp, order["id"]), "order")
        attributes = {name.removeprefix("dronefleet."): value for name, value in root.attributes.items()}
        expected = {
            "organization": "default",
            "project": "demo",
            "session.id": order["session"],
            "drones": ["mila"],
            "order.status": status.value,
            "order.exit_status": exit_status,
        }
        assert expected.items() <= attributes.items()
        assert root.error == error


def test_a_lost_run_ends_with_the_silence_of_its_drone_and_what_it_reports_later_is_left_out(
    api: Api, otlp: OtlpReceiver
) -> None:
    drone = api.add_drone(concurrency=9)
    order = api.submit()
    lost = drone.take(order)
    lost.step(Phase(name="working"))
    loss = Loss(lost.id, drone.id, lost.generation, RunLoss(code="drone_silent", drone="mila"))
    api.core.database.transact(lambda db: lose(db, api.core, loss))
    again = drone.take(order)
    lost.says("Still here.")
    again.step(Phase(name="working"))
    again.ends()
    spans = traced(api, otlp, order["id"])
    first, second = sorted((each for each in spans if each.name == "run"), key=lambda each: each.began)
    assert (first.error, first.attributes["dronefleet.run.status"], second.error) == ("lost", "lost", "")
    assert names_below(spans, first) == ["starting", "working", "no heartbeat"]
    assert [each for each in spans if each.name.startswith("chat")] == []


def test_metrics_say_how_many_traces_wait_and_were_given_up(api: Api, otlp: OtlpReceiver) -> None:
    otlp.answers = [400, 503]
    for _ in range(3):
        api.client.call(orders.CANCEL, CancelRequest(), order_id=submitted(api))
    TraceExporter(api.core).round()
    found = scrape(api)
    figures = [figure(found, f"dronefleet_traces_{each}", organization="default") for each in ("given_up", "waiting")]
    assert figures == [1, 2]


@pytest.fixture
def core(core_factory: CoreFactory, database_url: str, clock: HandClock, otlp: OtlpReceiver) -> Core:
    """A control plane that exports traces, with a project."""
    headers = "authorization=Bearer%20sesame, x-scope-orgid = mine"
    core = core_factory(database_url, clock=clock, otlp_endpoint=otlp.endpoint, otlp_headers=headers)
    make_project(core, system_caller(core))
    return core


def ended_order(core: Core) -> str:
    """An order that no drone took until it was canceled."""
    caller = system_caller(core)
    order_id = str(submit(core, caller).id)
    core.clock.sleep(3)
    cancel(core, caller, order_id, CancelRequest())
    return order_id


def waiting(core: Core) -> Sequence[TraceExport]:
    with core.database.read() as db:
        return db.scalars(select(TraceExport).order_by(TraceExport.number)).all()


@pytest.mark.dialects
def test_a_trace_is_sent_once_and_then_forgotten_and_a_long_one_in_several_requests(
    core: Core, otlp: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_id = ended_order(core)
    made = TraceExporter(core)
    made.round()
    made.round()
    root, queued = otlp.received()
    assert waiting(core) == []
    assert (root.name, root.attributes["dronefleet.order.id"], root.ms) == ("order", order_id, 3000)
    assert (queued.name, queued.parent, queued.ms) == ("queued", root.id, 3000)
    [sent] = otlp.sent
    assert (sent.headers["authorization"], sent.headers["x-scope-orgid"]) == ("Bearer sesame", "mine")
    assert "sesame" not in repr(core.settings)
    monkeypatch.setattr("control_plane.telemetry.tracing.exporter._AT_ONCE", 1)
    long = ended_order(core)
    made.round()
    assert len(otlp.sent) == 3
    assert sorted(each.name for each in otlp.trace_of(long)) == ["order", "queued"]


def test_without_an_endpoint_nothing_is_written_or_sent(
    core_factory: CoreFactory, sqlite_url: str, clock: HandClock
) -> None:
    core = core_factory(sqlite_url, clock=clock)
    make_project(core, system_caller(core))
    ended_order(core)
    made = TraceExporter(core)
    made.export_due()
    assert (waiting(core), made._busy.locked()) == ([], False)


def test_what_a_receiver_does_not_take_is_sent_again_with_the_same_ids(core: Core, otlp: OtlpReceiver) -> None:
    otlp.answers = [503, 200]
    ended_order(core)
    made = TraceExporter(core)
    made.round()
    made.round()
    assert len(otlp.sent) == 1, "it has a rest"
    core.clock.sleep(60)
    made.round()
    first, second = (sent.body for sent in otlp.sent)
    assert first == second
    assert waiting(core) == []


def test_the_doctor_asks_the_receiver_with_the_headers_and_without_a_span(core: Core, otlp: OtlpReceiver) -> None:
    otlp.answers = [200, 401]
    took, refused = (
        next(check for check in server_checks(core, system_caller(core).organization_id) if check.code == "D-TRACES")
        for _ in range(2)
    )
    assert (took.state, refused.state) == (OK, WARN)
    assert "401" in refused.found
    assert {(sent.body, sent.headers["authorization"]) for sent in otlp.sent} == {(b"", "Bearer sesame")}
    assert otlp.received() == []


@pytest.mark.dialects
def test_of_two_supervisors_only_one_sends_a_trace(core: Core, otlp: OtlpReceiver) -> None:
    ended_order(core)
    [row] = waiting(core)
    one, other = TraceExporter(core), TraceExporter(core)
    assert (one._lease(row.number), other._lease(row.number)) == (True, False)
    other.round()
    assert otlp.sent == []


def test_a_receiver_that_hangs_delays_nothing_and_is_asked_for_one_trace_at_a_time(
    core: Core, otlp: OtlpReceiver
) -> None:
    otlp.open.clear()
    ended_order(core)
    made = TraceExporter(core, seconds=1.0)
    made.export_due()
    wait_until(lambda: otlp.sent)
    ended_order(core)
    made.round()
    assert len(otlp.sent) == 1
    assert [each.attempts for each in waiting(core)] == [1, 0]


def test_a_receiver_that_drips_is_left_after_the_time_for_a_request(core: Core, otlp: OtlpReceiver) -> None:
    otlp.drips = True
    ended_order(core)
    TraceExporter(core, seconds=0.5).round()
    assert [each.attempts for each in waiting(core)] == [1]


def test_a_trace_is_given_up_after_a_day_or_at_once_if_it_is_refused_and_the_next_ones_are_sent(
    core: Core, otlp: OtlpReceiver, tmp_path: Path
) -> None:
    otlp.answers = [503]
    lost = ended_order(core)
    made = TraceExporter(core)
    made.round()
    core.clock.sleep(PATIENCE.total_seconds() + 1)
    otlp.answers = [400, 200]
    refused, order_id = ended_order(core), ended_order(core)
    with logs_in(tmp_path / "traces.log"):
        made.round()
    assert [(row.order_id, row.given_up_at is not None) for row in waiting(core)] == [(lost, True), (refused, True)]
    assert only(otlp.trace_of(order_id), "order").attributes["dronefleet.order.id"] == order_id
    line = json.loads((tmp_path / "traces.log").read_text().splitlines()[0])
    assert (line["event"], line["order"], line["level"]) == ("a trace was given up", lost, "error")
    assert line["trace"] == trace_id(lost, None).hex()


def test_the_trace_of_a_sender_that_records_none_is_not_exported_nor_that_of_an_order_that_is_gone(
    core: Core, otlp: OtlpReceiver
) -> None:
    gone = ended_order(core)
    with core.database.write() as db:
        _remove_orders(db, [gone])
    with coming_from(RequestOrigin(traceparent=f"00-{TRACE}-{SPAN}-00")):
        ended_order(core)
    with coming_from(RequestOrigin(traceparent=f"00-{TRACE}-{SPAN}-01")):
        order_id = ended_order(core)
    TraceExporter(core).round()
    root = only(otlp.received(), "order")
    assert (root.trace, root.parent, root.attributes["dronefleet.order.id"]) == (TRACE, SPAN, order_id)
    assert (waiting(core), len(otlp.sent)) == ([], 1)


def test_spans_that_a_receiver_rejects_are_named_in_the_log_and_not_sent_again(
    core: Core, otlp: OtlpReceiver, tmp_path: Path
) -> None:
    otlp.reject(2, "no room")
    ended_order(core)
    with logs_in(tmp_path / "traces.log"):
        TraceExporter(core).round()
    line = json.loads((tmp_path / "traces.log").read_text())
    assert (line["event"], line["spans"], line["why"]) == ("the receiver of traces rejected spans", 2, "no room")
    assert waiting(core) == []
