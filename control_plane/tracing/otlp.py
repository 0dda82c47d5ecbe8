"""Spans as messages of OTLP, the protocol of OpenTelemetry (protobuf over HTTP)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2 as wire

from control_plane.tracing.spans import Attributes, AttributeValue, TraceSpan
from shared.terminal.command_line import version

AT_ONCE = 500
"""Spans in one request."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS = {"internal": wire.Span.SPAN_KIND_INTERNAL, "client": wire.Span.SPAN_KIND_CLIENT}
_SAMPLED = 0x01
_LOCAL, _REMOTE = 0x100, 0x300
"""Bits of the flags: whether the parent is in another process is known, and it is so."""


def requests_of(trace: bytes, spans: Sequence[TraceSpan]) -> Iterator[bytes]:
    """The bodies of the requests that send all spans, in order."""
    for start in range(0, len(spans), AT_ONCE):
        some = wire.ScopeSpans(
            scope=InstrumentationScope(name="dronefleet", version=version()),
            spans=[_span(trace, each) for each in spans[start : start + AT_ONCE]],
        )
        about = {"service.name": "dronefleet", "service.version": version()}
        resource = Resource(attributes=list(_attributes(about)))
        message = ExportTraceServiceRequest(resource_spans=[wire.ResourceSpans(resource=resource, scope_spans=[some])])
        yield message.SerializeToString()


def rejected(answer: bytes) -> tuple[int, str]:
    """How many spans of an accepted request were not taken, and why. Raises ValueError if this is no answer."""
    try:
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
    except Exception as error:
        # protobuf's own DecodeError, which has no types.
        raise ValueError("the answer is not in protobuf") from error
    return partial.rejected_spans, partial.error_message


def _span(trace: bytes, span: TraceSpan) -> wire.Span:
    attributes = {**span.attributes, "error.type": span.error or None}
    code = wire.Status.STATUS_CODE_ERROR if span.error else wire.Status.STATUS_CODE_UNSET
    return wire.Span(
        trace_id=trace,
        span_id=span.id,
        parent_span_id=span.parent,
        flags=_SAMPLED | (_REMOTE if span.remote_parent else _LOCAL),
        name=_text(span.name),
        kind=_KINDS[span.kind],
        start_time_unix_nano=_nanoseconds(span.began),
        end_time_unix_nano=_nanoseconds(span.ended),
        attributes=list(_attributes(attributes)),
        links=[wire.Span.Link(trace_id=of, span_id=to, flags=_SAMPLED | _LOCAL) for of, to in span.links],
        status=wire.Status(code=code, message=_text(span.error)),
    )


def _attributes(attributes: Attributes) -> Iterator[KeyValue]:
    for name, value in attributes.items():
        if value is not None:
            yield KeyValue(key=name, value=_value(value))


def _value(value: AttributeValue) -> AnyValue:
    match value:
        case str():
            return AnyValue(string_value=_text(value))
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
    return AnyValue(array_value=ArrayValue(values=[AnyValue(string_value=_text(each)) for each in value]))


def _text(text: str) -> str:
    """Models may write half of a surrogate pair, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _nanoseconds(at: datetime) -> int:
    """Since 1970, exactly: as a float it would lose microseconds."""
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000
