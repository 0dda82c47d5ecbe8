"""Figures of the broker: what lies in each drone's queue and stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import Metric

from control_plane.broker.broker import Broker
from control_plane.metrics.drones import LABELS, ListedDrone
from control_plane.metrics.families import gauge


def queue_metrics(broker: Broker, drones: Sequence[ListedDrone]) -> Iterator[Metric]:
    """Raises Unreachable, or FleetFault if the broker refuses the control plane's log-in."""
    found = broker.backlogs([drone.id for drone in drones])
    queued = [(drone.labels, found[drone.id].queued) for drone in drones]
    yield gauge("dronefleet_queue_messages", "Orders in its queue that it has not taken.", LABELS, queued)
    unstored = [(drone.labels, found[drone.id].unstored) for drone in drones]
    yield gauge("dronefleet_stream_entries", "Its events that are not stored.", LABELS, unstored)
    ages = [(drone.labels, found[drone.id].oldest_s) for drone in drones]
    help_ = "Seconds since the oldest event that is not stored was sent; 0: all are."
    yield gauge("dronefleet_stream_oldest_seconds", help_, LABELS, ages)
