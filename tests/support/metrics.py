"""Reads metrics as Prometheus does, and their table in the documents."""

from __future__ import annotations

import re

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.support.documents import ROOT
from tests.support.fleet import Api

TOKEN = "m" * 32
PAGE = ROOT / "docs" / "metrics.md"
Series = tuple[str, tuple[tuple[str, str], ...]]


def scrape(api: Api, token: str = TOKEN) -> dict[Series, float]:
    """All series of the control plane, by name and labels."""
    with api.http(token) as http:
        return series_in(http.get("/metrics").raise_for_status().text)


def read_port(port: int) -> str:
    """What a drone's port answers; empty while nothing listens."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False, timeout=60).raise_for_status().text
    except httpx.TransportError:
        return ""


def series_in(text: str) -> dict[Series, float]:
    """Every sample of a text, by name and labels. Fails if a series is there twice."""
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    found = {(each.name, tuple(sorted(each.labels.items()))): each.value for each in samples}
    assert len(found) == len(samples)
    return found


def figure(found: dict[Series, float], name: str, **labels: str) -> float:
    """The value of one series."""
    return found[name, tuple(sorted(labels.items()))]


def of(found: dict[Series, float], name: str) -> dict[str, float]:
    """The values of one metric in the organization `default`, by its other label; zeros are left out."""
    return {
        next(value for key, value in labels if key != "organization"): number
        for (each, labels), number in found.items()
        if each == name and number and ("organization", "default") in labels
    }


def printed(text: str) -> dict[str, str]:
    """The type of each metric that has one in a text."""
    return {name: kind for name, kind in re.findall(r"(?m)^# TYPE (\S+) (\S+)$", text) if not name.endswith("_created")}


def documented(prefix: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Type and labels of each metric in the table of the documents."""
    rows = re.findall(rf"(?m)^\| `({prefix}_\w+)` \| (\w+) \|([^|]*)\|", PAGE.read_text(encoding="utf-8"))
    return {name: (kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def labels_in(text: str) -> dict[str, frozenset[str]]:
    """The labels of each metric with a sample in a text; `le` of a histogram is left out."""
    names: dict[str, frozenset[str]] = {}
    for name, labels in series_in(text):
        if name.endswith("_created"):
            continue
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        names[base] = names.get(base, frozenset()) | {key for key, _ in labels} - {"le"}
    return names
