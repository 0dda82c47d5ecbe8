"""Asks the receiver of traces whether it would take some, without sending any."""

from __future__ import annotations

from control_plane.automation.webhook_delivery import OutgoingRequest, send
from control_plane.core import Core
from control_plane.core.trace_receiver import CONTENT_TYPE, receiver_headers, traces_url

NO_SPANS = b""
"""An ExportTraceServiceRequest without spans, as protobuf writes it; the standard lets a receiver accept it."""
SECONDS = 3.0


def problem_of(core: Core, endpoint: str) -> str:
    """Why the receiver does not take a request with these headers; empty if it does."""
    headers = {"Content-Type": CONTENT_TYPE, **receiver_headers(core.settings.otlp_headers)}
    return send(OutgoingRequest(traces_url(endpoint), headers, NO_SPANS), inside_allowed=True, seconds=SECONDS).error
