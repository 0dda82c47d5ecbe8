"""The alert rules and the dashboard in `deploy`: what raises each alert, and that they name metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support import needs
from tests.support.documents import ROOT, parse
from tests.support.metrics import PAGE, documented


def promtool(*words: str | Path, within: Path) -> subprocess.CompletedProcess[str]:
    """The result of a command of promtool; skips the test where it is missing."""
    needs("promtool")
    command = ["promtool", *map(str, words)]
    return subprocess.run(command, cwd=within, capture_output=True, text=True, timeout=120, check=False)


DIRECTORY = ROOT / "deploy" / "prometheus"
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((DIRECTORY / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]


@dataclass(frozen=True)
class Case:
    """Figures, one a minute, for one hour."""

    bad: dict[str, str]
    """Series with the values that raise the alert."""
    good: dict[str, str]
    """Series with values that do not."""


WAITING = 'dronefleet_order_waiting_seconds{organization="default",code="%s"}'
ORDERS = 'dronefleet_orders{organization="default",status="queued"}'
ENDED = 'dronefleet_runs_ended_total{organization="default",exit_status="%s"}'
DRONES = 'dronefleet_drones{organization="default",status="%s"}'
BUDGET = '{organization="default",kind="project",target="web",per="day"}'
DISK = '{organization="default",drone="anna"}'
CALLS = 'drone_model_calls_total{instance="anna",outcome="%s"}'
POOL = 'dronefleet_pool_%s{organization="default",pool="builders"}'
TRACES = 'dronefleet_traces_given_up{organization="default"}'
CASES = {
    "DronefleetControlPlaneDown": Case({'up{job="dronefleet"}': "0x60"}, {'up{job="dronefleet"}': "1x60"}),
    "DronefleetPartDown": Case(
        {'dronefleet_up{part="broker"}': "0x60", 'dronefleet_up{part="database"}': "1x60"},
        {'dronefleet_up{part="broker"}': "1x60"},
    ),
    "DronefleetNoLeader": Case(
        {'dronefleet_leases{lease="leader"}': "0x60"},
        {'dronefleet_leases{lease="leader"}': "1x60", 'dronefleet_leases{lease="collector"}': "0x60"},
    ),
    "DronefleetNoDroneOnline": Case(
        {ORDERS: "3x60", DRONES % "online": "0x60", DRONES % "busy": "0x60", DRONES % "offline": "2x60"},
        {ORDERS: "3x60", DRONES % "online": "0x60", DRONES % "busy": "1x60"},
    ),
    "DronefleetOrderWaits": Case(
        {WAITING % "no_drone": "0+60x60"}, {WAITING % "for_person": "0+60x60", WAITING % "no_drone": "800x60"}
    ),
    "DronefleetPoolDoesNotGrow": Case(
        {POOL % "wanted": "5x60", POOL % "drones": "4x60"},
        {POOL % "wanted": "5x9 4x51", POOL % "drones": "0x9 4x51"},
    ),
    "DronefleetTracesGivenUp": Case({TRACES: "0x50 1x10"}, {TRACES: "7x60"}),
    "DronefleetQueueGrows": Case({ORDERS: "0+1x60"}, {ORDERS: "50x60"}),
    "DronefleetRunLost": Case({ENDED % "lost": "0x55 1x5"}, {ENDED % "lost": "3x60", ENDED % "failed": "0+1x60"}),
    "DronefleetEventsLate": Case(
        {f"dronefleet_event_lag_seconds{DISK}": "0.1x60", f"dronefleet_stream_oldest_seconds{DISK}": "0+60x60"},
        {f"dronefleet_event_lag_seconds{DISK}": "0.1x60", f"dronefleet_stream_oldest_seconds{DISK}": "4x60"},
    ),
    "DronefleetBudgetNearlySpent": Case(
        {f"dronefleet_budget_limit_usd{BUDGET}": "10x60", f"dronefleet_budget_spent_usd{BUDGET}": "9.1x60"},
        {f"dronefleet_budget_limit_usd{BUDGET}": "10x60", f"dronefleet_budget_spent_usd{BUDGET}": "8.9x60"},
    ),
    "DronefleetModelErrors": Case(
        {CALLS % "answered": "0+7x60", CALLS % "failed": "0+3x60"},
        {CALLS % "answered": "0+9x60", CALLS % "failed": "0+1x60"},
    ),
    "DronefleetRunsEndWithModelErrors": Case(
        {ENDED % "submitted": "0+7x60", ENDED % "model_error": "0+3x60"},
        {ENDED % "submitted": "0+9x60", ENDED % "model_error": "0+1x60"},
    ),
    "DronefleetDiskAlmostFull": Case(
        {f"dronefleet_drone_disk_free_bytes{DISK}": "4e9x60", f"dronefleet_drone_disk_bytes{DISK}": "1e11x60"},
        {f"dronefleet_drone_disk_free_bytes{DISK}": "6e9x60", f"dronefleet_drone_disk_bytes{DISK}": "1e11x60"},
    ),
}


def test_every_rule_has_a_case_its_line_in_the_documents_and_a_next_command() -> None:
    names = [rule["alert"] for rule in RULES]
    assert sorted(names) == sorted(CASES)
    assert {rule["labels"]["severity"] for rule in RULES} == {"critical", "warning"}
    for rule in RULES:
        parse(rule["annotations"]["next"].split())
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in names if f"| `{name}` |" not in page] == []


def test_an_alert_is_raised_by_what_it_is_about_and_by_nothing_else(tmp_path: Path) -> None:
    shutil.copy(DIRECTORY / "alerts.yaml", tmp_path)
    tests = [firing(name, case.bad, {name}) for name, case in CASES.items()]
    tests += [firing(name, case.good, set()) for name, case in CASES.items()]
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["alerts.yaml"], "tests": tests}))
    done = promtool("test", "rules", "test.yaml", within=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def firing(name: str, series: dict[str, str], expected: set[str]) -> dict[str, Any]:
    """A test of promtool: at the end of the hour, these alerts are firing and no others."""
    samples = [{"labels": f'{{alertname="{each}"}}', "value": 1} for each in sorted(expected)]
    query = 'count by (alertname) (ALERTS{alertstate="firing"})'
    return {
        "name": f"{name}, raised by {len(expected)}",
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "promql_expr_test": [{"expr": query, "eval_time": "1h", "exp_samples": samples}],
    }


def test_rules_configuration_and_queries_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    for file in DIRECTORY.iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / "metrics-token").write_text("m" * 32)
    done = promtool("check", "config", "prometheus.yaml", within=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{len(RULES)} rules found" in done.stdout
    queries = [query.replace("$__rate_interval", "5m").replace("$__range", "1h") for query in QUERIES]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    (tmp_path / "queries.yaml").write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    done = promtool("check", "rules", "queries.yaml", within=tmp_path)
    assert done.returncode == 0, done.stderr


DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana" / "dronefleet.json").read_text(encoding="utf-8"))
QUERIES = [
    target["expr"].replace("$organization", ".*") for panel in DASHBOARD["panels"] for target in panel["targets"]
]
NAME = re.compile(r"\bdrone(?:fleet)?_\w+")


def test_the_dashboard_shows_every_metric_and_rules_name_only_those_that_there_are() -> None:
    known = {*documented("dronefleet"), *documented("drone")}
    shown = {re.sub(r"_bucket$", "", name) for query in QUERIES for name in NAME.findall(query)}
    ruled = {name for rule in RULES for name in NAME.findall(rule["expr"])}
    assert (shown, ruled - known) == (known, set())
