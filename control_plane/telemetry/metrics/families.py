"""Metric families of Prometheus, filled from rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

Sample: TypeAlias = tuple[Sequence[str], float]
"""The values of the labels, in their order, and the figure."""


def gauge(name: str, help_: str, labels: Sequence[str], samples: Iterable[Sample]) -> Metric:
    """A figure that goes up and down."""
    family = GaugeMetricFamily(name, help_, labels=labels)
    for values, figure in samples:
        family.add_metric(values, figure)
    return family


def counter(name: str, help_: str, labels: Sequence[str], samples: Iterable[Sample]) -> Metric:
    """A figure that only goes up; `name` is without the `_total` with which it is printed."""
    family = CounterMetricFamily(name, help_, labels=labels)
    for values, figure in samples:
        family.add_metric(values, figure)
    return family
