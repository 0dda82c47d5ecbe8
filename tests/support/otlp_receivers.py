"""A stand-in for a receiver of OTLP over HTTP: a real server that decodes what it is sent, and finds holes in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support import wait_until
from tests.support.receivers import Receiver

ROUNDING_MS = 5.0


@dataclass(frozen=True)
class Received:
    """A span as it arrived."""

    name: str
    trace: str
    id: str
    parent: str
    began: int
    """Nanoseconds since 1970, as the next one."""
    ended: int
    attributes: Mapping[str, Any]
    error: str
    """The message of its status, if that is an error."""
    kind: int
    links: tuple[tuple[str, str], ...]

    @property
    def ms(self) -> float:
        return (self.ended - self.began) / 1e6


@dataclass
class OtlpReceiver(Receiver):
    """Accepts every request with the answer that the standard asks for."""

    answers: list[int] = field(default_factory=lambda: [200])

    def reject(self, spans: int, why: str) -> None:
        """Claim not to take so many spans of each request."""
        answer = ExportTraceServiceResponse()
        answer.partial_success.rejected_spans = spans
        answer.partial_success.error_message = why
        self.body = answer.SerializeToString()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/otlp"

    def received(self) -> list[Received]:
        """All spans, in order of arrival; copies are there several times."""
        return [span for sent in list(self.sent) for span in _spans(sent.path, sent.headers, sent.body)]

    def trace_of(self, order_id: str, *, seconds: float = 60.0) -> list[Received]:
        """The spans of an order once its last request has arrived, each once."""

        def arrived() -> list[Received]:
            found = {each.id: each for each in self.received()}
            roots = [each for each in found.values() if each.attributes.get("dronefleet.order.id") == order_id]
            return [each for each in found.values() if roots and each.trace == roots[0].trace]

        return wait_until(arrived, seconds=seconds, every=0.1)


def _spans(path: str, headers: Mapping[str, str], body: bytes) -> Iterator[Received]:
    assert (path, headers["content-type"]) == ("/otlp/v1/traces", "application/x-protobuf")
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        about = {each.key: each.value.string_value for each in resource.resource.attributes}
        assert about["service.name"] == "dronefleet"
        for scope in resource.scope_spans:
            yield from map(_read, scope.spans)


def _read(span: Span) -> Received:
    return Received(
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        attributes={each.key: _value(each.value) for each in span.attributes},
        error=span.status.message if span.status.code == Status.STATUS_CODE_ERROR else "",
        kind=span.kind,
        links=tuple((each.trace_id.hex(), each.span_id.hex()) for each in span.links),
    )


def _value(value: AnyValue) -> Any:
    which = value.WhichOneof("value")
    assert which is not None
    found = getattr(value, which)
    return [_value(each) for each in found.values] if which == "array_value" else found


def problems_of(spans: Sequence[Received]) -> list[str]:
    """What is wrong with a whole trace: spans outside of their parents or without one, and holes."""
    by_id = {each.id: each for each in spans}
    roots = [each for each in spans if each.name == "order"]
    found = [] if len(roots) == 1 else [f"{len(roots)} spans of orders"]
    if len({each.trace for each in spans}) != 1:
        found.append("several traces")
    for span in spans:
        parent = by_id.get(span.parent)
        if parent is None:
            found += [] if span in roots else [f"{span.name} has no parent"]
        elif not parent.began <= span.began <= span.ended <= parent.ended:
            found.append(f"{span.name} leaves {parent.name}")
    for whole in (each for each in spans if each.name in {"order", "run"}):
        found += _holes(whole, [each for each in spans if each.parent == whole.id])
    return found


def _holes(whole: Received, children: Sequence[Received]) -> Iterator[str]:
    """Where no child is, and where one begins before the one before it has ended."""
    until, before = whole.began, "its beginning"
    for child in sorted(children, key=lambda each: (each.began, each.ended)):
        if abs(child.began - until) > ROUNDING_MS * 1e6:
            yield f"{(child.began - until) / 1e6:.1f} ms between {before} and {child.name} of {whole.name}"
        until, before = child.ended, child.name
    if abs(whole.ended - until) > ROUNDING_MS * 1e6:
        yield f"{(whole.ended - until) / 1e6:.1f} ms between {before} and the end of {whole.name}"


def names_below(spans: Sequence[Received], parent: Received) -> list[str]:
    """The names of a span's children in order."""
    return [each.name for each in sorted(spans, key=lambda each: (each.began, each.ended)) if each.parent == parent.id]


def only(spans: Sequence[Received], name: str) -> Received:
    """The one span of this name."""
    [found] = [each for each in spans if each.name == name]
    return found


@pytest.fixture
def otlp() -> Iterator[OtlpReceiver]:
    """A receiver that takes everything."""
    made = OtlpReceiver()
    yield made
    made.close()
