"""What is in the trace of an order: where it belongs, what it says of its order, and runs that were given up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from control_plane.contract.declarations import orders
from control_plane.contract.declarations.orders import CancelRequest
from control_plane.orders.lost import Loss, lose
from control_plane.telemetry.tracing.exporter import TraceExporter
from shared.events import Phase
from shared.reasons import RunLoss
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.fleet import Api, api_on
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
    named = f"00-{TRACE}-{SPAN}-01"
    for headers, right in (([named], True), (["none"], False), ([named] * 2, False), ([f"{named}-more"], False)):
        order_id = submitted(api, *(("traceparent", value) for value in headers))
        api.client.call(orders.CANCEL, CancelRequest(), order_id=order_id)
        root = only(traced(api, otlp, order_id), "order")
        assert (root.trace == TRACE, root.parent) == (right, SPAN if right else ""), headers


def test_a_trace_names_what_its_order_belongs_to(api: Api, otlp: OtlpReceiver) -> None:
    order = api.submit()
    api.add_drone().take(order).ends()
    root = only(traced(api, otlp, order["id"]), "order")
    attributes = {name.removeprefix("dronefleet."): value for name, value in root.attributes.items()}
    expected = {
        "organization": "default",
        "project": "demo",
        "session.id": order["session"],
        "drones": ["mila"],
        "order.status": "succeeded",
        "order.exit_status": "submitted",
    }
    assert expected.items() <= attributes.items()


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
