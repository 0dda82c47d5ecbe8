"""Figures of the worker that are read when Prometheus asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from drone.installation.disk import existing


@dataclass(frozen=True)
class WorkerState:
    """What a worker is doing."""

    runs: int
    slots: int
    beat_age_s: float | None
    """None: the broker has accepted no heartbeat yet."""
    unsent_bytes: int


class StateCollector(Collector):
    """The figures of one worker. `restarts`: how many workers of this drone ended before it."""

    def __init__(self, state: Callable[[], WorkerState], workspace: Path, restarts: int) -> None:
        self._state = state
        self._workspace = workspace
        self._restarts = restarts

    def collect(self) -> Iterator[Metric]:
        state = self._state()
        disk = psutil.disk_usage(str(existing(self._workspace)))
        yield GaugeMetricFamily("drone_runs_active", "Runs that have not ended.", state.runs)
        yield GaugeMetricFamily("drone_slots", "Orders that it runs at a time.", state.slots)
        yield GaugeMetricFamily(
            "drone_journal_unsent_bytes", "Recorded events that the broker does not have.", state.unsent_bytes
        )
        yield GaugeMetricFamily("drone_disk_free_bytes", "Free where it keeps its workspaces.", disk.free)
        yield GaugeMetricFamily("drone_disk_bytes", "Size of that disk.", disk.total)
        yield CounterMetricFamily("drone_worker_restarts", "Restarts of the worker.", self._restarts)
        if state.beat_age_s is not None:
            help_ = "Seconds since the broker accepted a heartbeat."
            yield GaugeMetricFamily("drone_beat_age_seconds", help_, state.beat_age_s)
