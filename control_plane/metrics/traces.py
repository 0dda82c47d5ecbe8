"""Figures of traces that are not exported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.db.traces import TraceExport
from control_plane.metrics.families import gauge


def trace_metrics(db: Session, names: Mapping[str, str]) -> Iterator[Metric]:
    """`names`: of the organizations, by id."""
    given_up = TraceExport.given_up_at.is_not(None)
    counted = select(TraceExport.organization_id, given_up, func.count()).group_by(
        TraceExport.organization_id, given_up
    )
    found = {(organization, bool(over)): number for organization, over, number in db.execute(counted)}
    for name, help_, over in (
        ("dronefleet_traces_waiting", "Traces that are not exported yet.", False),
        ("dronefleet_traces_given_up", "Traces that were given up in the last 30 days.", True),
    ):
        yield gauge(name, help_, ("organization",), [((names[id_],), found.get((id_, over), 0)) for id_ in names])
