"""A real Prometheus server, and `promtool`, as Debian's package `prometheus` has them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.support import free_port, needs, wait_until


def promtool(*words: str | Path, within: Path) -> subprocess.CompletedProcess[str]:
    """The result of a command of promtool; skips the test where it is missing."""
    needs("promtool")
    command = ["promtool", *map(str, words)]
    return subprocess.run(command, cwd=within, capture_output=True, text=True, timeout=120, check=False)


@dataclass(frozen=True)
class PrometheusServer:
    """A running server."""

    url: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query. Fails if the server does not accept it."""
        answer = self._get("/api/v1/query", query=expression)
        assert answer["status"] == "success", (expression, answer)
        return list(answer["data"]["result"])

    def names(self) -> set[str]:
        """The names of all metrics that it has read."""
        return set(self._get("/api/v1/label/__name__/values")["data"])

    def problems(self) -> list[str]:
        """What went wrong with the last scrape of each target."""
        targets = self._get("/api/v1/targets")["data"]["activeTargets"]
        return [each["lastError"] for each in targets if each["lastError"]]

    def _get(self, path: str, **query: str) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{self.url}{path}", params=query, trust_env=False, timeout=60).json()
        return found


@contextmanager
def prometheus(directory: Path, jobs: list[dict[str, Any]]) -> Iterator[PrometheusServer]:
    """A server that scrapes these jobs every three seconds and keeps its data in `directory`."""
    needs("prometheus")
    port, config = free_port(), directory / "prometheus.yaml"
    config.write_text(yaml.safe_dump({"global": {"scrape_interval": "3s"}, "scrape_configs": jobs}))
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory)
    try:
        server = PrometheusServer(f"http://127.0.0.1:{port}")
        wait_until(lambda: _is_ready(server.url), seconds=60)
        yield server
    finally:
        process.terminate()
        process.wait(60)


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
