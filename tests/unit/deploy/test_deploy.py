"""What a team deploys: each command and setting exists, and each part has no more rights than it needs.

The programs that read these files check them, where they are installed: systemd, Caddy, promtool. The schemas of
Kubernetes come from `kubernetes-validate`.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

from control_plane.core.settings import FleetSettings
from tests.support import needs
from tests.support.documents import ROOT, parse

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
KUBERNETES = ("1.29", "1.37")
"""The oldest and the newest version for which the manifests are checked."""
EXPOSURE = {"dronefleet-control-plane.service": 1.5, "dronefleet-drone.service": 4.2}
"""By `systemd-analyze security`, 0 to 10. A drone's must stay able to make namespaces: bubblewrap confines more."""


def documents() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every object of the manifests that Kubernetes itself knows."""
    for path in MANIFESTS:
        for each in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if not each["apiVersion"].startswith(("kustomize.", "keda.")):
                yield path, each


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    """The specification of each kind of pod, by the name of what makes them."""
    for path in MANIFESTS:
        for each in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            spec = each.get("spec", {})
            made = spec.get("jobTargetRef", spec)
            if "template" in made:
                yield each["metadata"]["name"], made["template"]["spec"]


def containers() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, pod in pods():
        for each in (*pod.get("initContainers", ()), *pod["containers"]):
            yield f"{name}/{each['name']}", each


def commands() -> Iterator[list[str]]:
    """Every `fleet` and `drone` command that the files start."""
    yield from (service["command"] for service in COMPOSE["services"].values() if "command" in service)
    yield from (each["command"] for _, each in containers())
    for unit in UNITS:
        for line in re.findall(r"(?m)^Exec\w+=/opt/dronefleet/bin/(.+)$", unit.read_text(encoding="utf-8")):
            yield line.split()
    for image in sorted(DEPLOY.glob("Dockerfile.*")):
        yield from map(
            yaml.safe_load, re.findall(r"(?m)^(?:HEALTHCHECK .+ )?CMD (.+)$", image.read_text(encoding="utf-8"))
        )


def test_every_command_that_is_started_exists() -> None:
    ours = [words for words in commands() if words[0] in {"fleet", "drone"}]
    assert len(ours) > 10
    for words in ours:
        parse(words)


def test_every_setting_that_is_given_exists() -> None:
    known = {f"FLEET_{name.upper()}" for name in FleetSettings.model_fields}
    given = {name for service in COMPOSE["services"].values() for name in service.get("environment", ())}
    configured = [each["data"] for _, each in documents() if each["kind"] == "ConfigMap"]
    given |= {name for data in configured for name in data}
    ours = {name for name in given if name.startswith("FLEET_")}
    assert ours - known == {"FLEET_HOSTNAME", "FLEET_UPSTREAM"}
    assert {"FLEET_DATABASE_URL", "FLEET_PUBLIC_URL", "FLEET_FLOWER_UPSTREAM"} <= ours


def test_compose_starts_each_role_of_the_control_plane_so_that_one_may_fail() -> None:
    services = COMPOSE["services"]
    roles = [
        role
        for service in services.values()
        if "--role" in (command := service.get("command", ""))
        for role in [command[-1]] * service.get("deploy", {}).get("replicas", 1)
    ]
    assert sorted(roles) == ["api", "api", "collector", "collector", "supervisor", "supervisor"]
    assert {"postgres", "redis", "caddy", "prometheus", "grafana", "flower", "flower-2"} <= set(services)
    named = set(COMPOSE["volumes"])
    used = {str(each).partition(":")[0] for service in services.values() for each in service.get("volumes", ())}
    assert {each for each in used if not each.startswith(".")} == named
    assert [each for each in used if each.startswith(".") and not (DEPLOY / each).exists()] == []


def test_kubernetes_knows_every_field_of_the_manifests() -> None:
    checked = [
        kubernetes_validate.validate(each, version, strict=True) for version in KUBERNETES for _, each in documents()
    ]
    assert len(checked) >= 2 * 8


def test_the_job_of_a_pool_is_one_that_kubernetes_knows() -> None:
    (scaled,) = yaml.safe_load_all((DEPLOY / "kubernetes" / "pool.yaml").read_text(encoding="utf-8"))
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": scaled["metadata"],
        "spec": scaled["spec"]["jobTargetRef"],
    }
    for version in KUBERNETES:
        kubernetes_validate.validate(job, version, strict=True)
    assert re.search(r"dronefleet_pool_wanted\b", scaled["spec"]["triggers"][0]["metadata"]["query"])


def test_no_pod_runs_as_root_or_may_become_it() -> None:
    for name, pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["runAsUser"] > 0, name
        assert pod["automountServiceAccountToken"] is False, name
    found = dict(containers())
    assert len(found) >= 5
    for name, each in found.items():
        rights = each["securityContext"]
        assert (rights["allowPrivilegeEscalation"], rights["capabilities"]) == (False, {"drop": ["ALL"]}), name
        assert rights["readOnlyRootFilesystem"] is True, name
        assert set(each["resources"]) == {"requests", "limits"}, name
        assert "memory" in each["resources"]["limits"], name


def test_systemd_finds_little_exposed() -> None:
    needs("systemd-analyze")
    command = ("systemd-analyze", "security", "--offline=true", "--no-pager")
    for unit in UNITS:
        shown = subprocess.run([*command, unit], capture_output=True, text=True, check=True).stdout
        level = re.search(r"Overall exposure level for .+: ([\d.]+)", shown)
        assert level is not None, shown
        assert float(level[1]) <= EXPOSURE[unit.name]


def test_caddy_accepts_its_file_for_one_and_for_two_api_processes() -> None:
    needs("caddy")
    for upstream in ("127.0.0.1:8420", "api:8420 api-2:8420"):
        environment = {**os.environ, "FLEET_HOSTNAME": "fleet.example.org", "FLEET_UPSTREAM": upstream}
        checked = subprocess.run(
            ["caddy", "validate", "--adapter", "caddyfile", "--config", DEPLOY / "Caddyfile"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stderr


def test_prometheus_accepts_the_configuration_of_compose() -> None:
    needs("promtool")
    file = DEPLOY / "prometheus" / "compose.yaml"
    subprocess.run(["promtool", "check", "config", "--syntax-only", file], check=True, capture_output=True)


def test_the_image_of_the_control_plane_has_all_that_its_code_imports_and_not_what_only_drones_use() -> None:
    dockerfile = (DEPLOY / "Dockerfile.control-plane").read_text(encoding="utf-8")
    [lock] = set(re.findall(r"requirements-[\w-]+\.lock", dockerfile))
    installed = set(re.findall(r"(?m)^([\w.-]+)==", (ROOT / lock).read_text(encoding="utf-8")))
    modules = [path for root in ("control_plane", "shared") for path in (ROOT / root).rglob("*.py")]
    needed = {name for path in modules for name in imports(path)} - {"control_plane", "shared", "drone"}

    brings = packages_distributions()
    found = {name: {each.lower().replace("_", "-") for each in brings[name]} for name in needed & brings.keys()}
    assert "litellm" not in installed
    assert {"celery", "fastapi", "redis"} <= found.keys()
    assert {name for name, distributions in found.items() if installed.isdisjoint(distributions)} == set()


def imports(path: Path) -> Iterator[str]:
    """The top-level names that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
