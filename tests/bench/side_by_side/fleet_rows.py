"""The rows that need a whole fleet: `fleet up` with one drone, as its user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import drones, orders, projects, providers
from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from tests.bench.side_by_side.clients import Alone, endpoint, make_repository, steps_of, times_of
from tests.bench.side_by_side.report import Aim, BenchRow
from tests.support import wait_until
from tests.support.repositories import large_repository

STEPS = 100
IDLE_S = 30.0
UNCHANGED, CHANGED = "echo hi", "tee file-001.txt <<<"
"""Commands, before the number of the step: the second one changes a file each time."""

ORDER = SubmitRequest.model_validate(
    {"prompt": "Go on.", "project": "bench", "max_iterations": 0, "cost_limit": 0, "max_run_seconds": 0}
)


def fleet_rows() -> Iterator[BenchRow]:
    """The rows in the order of the table."""
    for what, command in (("nothing changed", UNCHANGED), ("a file changed", CHANGED)):
        yield BenchRow(
            f"a step through the fleet, {what}",
            partial(_steps, command),
            "ms",
            (Aim("drone run", 1.2),),
            bound="git's processes of the checkpoint, beside the model's call",
        )
    yield BenchRow(
        "submit to the first request to the model",
        partial(_orders, "first"),
        "ms",
        (Aim("", 150.0),),
        bound="git's processes that make the workspace",
    )
    yield BenchRow(
        "the model's last answer to the end of the order",
        partial(_orders, "end"),
        "ms",
        (Aim("commit, diff, bundle and push by hand", 2.0),),
        bound="git's processes of the last checkpoint, the delivery and the push; three requests over HTTP",
    )
    yield BenchRow(
        "a second order on a repository of 300 MB and 20,000 commits, to its first request",
        _second_order,
        "ms",
        (Aim("git clone", 0.1), Aim("mirror and worktree by hand", 1.3)),
        bound="what a small repository takes, too; checking out 2,000 files",
    )
    yield BenchRow("memory of an idle drone", partial(_idle, "drone"), "MB", (Aim("", 260.0),), bound="LiteLLM")
    yield BenchRow(
        "memory of an idle `fleet up` without its drone",
        partial(_idle, "fleet"),
        "MB",
        (Aim("", 240.0),),
        bound="Celery, FastAPI and SQLAlchemy in two processes",
    )
    yield BenchRow("processor of an idle fleet", partial(_idle, "cpu"), "% of a core", (Aim("", 2.0),))


def _steps(command: str) -> Mapping[str, float]:
    """Steps of one order, and of the same run without a fleet."""
    alone = steps_of(Alone(), STEPS, command)
    with _fleet() as (client, where, _), endpoint("shell", STEPS, command) as address:
        _add_work(client, where, address)
        order = client.call(orders.SUBMIT, ORDER)
        _ended(client, order["id"])
        times = times_of(address)
    gaps = sorted(1e3 * (asked - was) for was, asked in zip(times["answered"], times["asked"][1:], strict=False))
    return {"ours": gaps[len(gaps) // 2], "drone run": sorted(alone.gaps_ms)[STEPS // 2]}


def _orders(part: str, times: int = 5) -> Mapping[str, float]:
    """The median of some orders that change one file, after a first one that makes the mirror."""
    found, by_hand = [], []
    with _fleet() as (client, where, _), endpoint("shell", 1, CHANGED) as address:
        _add_work(client, where, address)
        for number in range(times + 1):
            began = time.monotonic()
            order = client.call(orders.SUBMIT, ORDER)
            _ended(client, order["id"])
            ended, asked = time.monotonic(), times_of(address)
            time.sleep(1)  # until the process of the run is gone, and its slot free
            if number:
                first, last = asked["asked"][2 * number], asked["answered"][-1]
                found.append(1e3 * (first - began if part == "first" else ended - last))
                by_hand += [_by_hand(where, number)] if part == "end" else []
    beside = {"commit, diff, bundle and push by hand": by_hand} if part == "end" else {}
    return {name: sorted(each)[len(each) // 2] for name, each in {"ours": found, **beside}.items()}


def _second_order() -> Mapping[str, float]:
    """The first order makes the mirror; by hand, it is there as well."""
    with _fleet() as (client, where, _), endpoint("shell", 1, CHANGED) as address:
        large = large_repository(where / "repository")
        _add_provider(client, address)
        url = f"file://{large}"
        client.call(projects.ADD, ProjectRequest(slug="bench", git_url=url, provider="instant"))
        _ended(client, client.call(orders.SUBMIT, ORDER)["id"])
        time.sleep(1)
        began = time.monotonic()
        _ended(client, client.call(orders.SUBMIT, ORDER)["id"])
        first = times_of(address)["asked"][2]
        cloned = _git_ms("clone", "-q", url, str(where / "clone"))
        _git_ms("clone", "-q", "--mirror", url, str(where / "mirror"))
        by_hand = _git_ms("-C", str(where / "mirror"), "fetch", "-q")
        by_hand += _git_ms(
            "-C", str(where / "mirror"), "worktree", "add", "-q", str(where / "tree"), "main", "--detach"
        )
    return {"ours": 1e3 * (first - began), "git clone": cloned, "mirror and worktree by hand": by_hand}


def _git_ms(*words: str) -> float:
    began = time.monotonic()
    subprocess.run(["git", *words], check=True, capture_output=True)
    return 1e3 * (time.monotonic() - began)


def _by_hand(where: Path, number: int) -> float:
    """The milliseconds of a delivery in a clone, as its user would make it."""
    clone = where / f"clone {number}"
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    _git_ms("clone", "-q", str(where / "repository"), str(clone))
    (clone / "file-001.txt").write_text(f"{number}\n")
    steps = (
        ("commit", "-q", "-a", "-m", "Change"),
        ("diff", "--binary", "HEAD~1", "HEAD"),
        ("bundle", "create", "-q", "work.bundle", "HEAD~1..HEAD"),
        ("push", "-q", "origin", f"HEAD:refs/heads/by-hand-{number}"),
    )
    return sum(_git_ms("-C", str(clone), *who, *words) for words in steps)


def _idle(what: str) -> Mapping[str, float]:
    """Memory that belongs to the processes, their share of what they have in common included; or processor time."""
    with _fleet() as (client, _, up):
        wait_until(lambda: any(each["status"] == "online" for each in client.call(drones.LIST)), seconds=60)
        time.sleep(10)  # until the model library is warm
        found = [up, *up.children(recursive=True)]
        everything = [each for each in found if each.status() != psutil.STATUS_ZOMBIE]
        parents = [each for each in everything if each.cmdline()[-3:] == ["-m", "drone.cli.main", "start"]]
        of_drone = {process for parent in parents for process in (parent, *parent.children(recursive=True))}
        if what != "cpu":
            counted = of_drone if what == "drone" else set(everything) - of_drone
            return {"ours": sum(process.memory_full_info().pss for process in counted) / 1e6}
        before, began = [sum(each.cpu_times()[:4]) for each in everything], time.monotonic()
        time.sleep(IDLE_S)
        used = sum(sum(each.cpu_times()[:4]) for each in everything) - sum(before)
        return {"ours": 100 * used / (time.monotonic() - began)}


@contextmanager
def _fleet() -> Iterator[tuple[FleetClient, Path, psutil.Process]]:
    """A client of a `fleet up` with one drone, a free directory, and the process."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        where = Path(directory)
        where.chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("FLEET_", "DRONE_"))}
        environment |= {"FLEET_HOME": str(where / "fleet"), "FLEET_SESSION_TITLES": "false"}
        environment |= {"XDG_CONFIG_HOME": str(where / "config"), "XDG_STATE_HOME": str(where / "state")}
        program = Path(sys.executable).with_name("fleet")
        words = [str(program), "up", "--port", "0", "--no-flower", "--drones", "1"]
        with (where / "up.log").open("wb") as log:
            process = subprocess.Popen(words, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            wait_until(lambda: b"Dronefleet is up" in (where / "up.log").read_bytes(), seconds=90)
            found = json.loads((where / "fleet" / "server.json").read_text())
            with FleetClient(found["url"], found["token"], "default") as client:
                yield client, where, psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(60)


def _add_work(client: FleetClient, where: Path, address: str) -> None:
    make_repository(where / "repository")
    _git_ms("-C", str(where / "repository"), "config", "receive.denyCurrentBranch", "ignore")
    _add_provider(client, address)
    url = f"file://{where / 'repository'}"
    client.call(projects.ADD, ProjectRequest(slug="bench", git_url=url, provider="instant"))


def _add_provider(client: FleetClient, address: str) -> None:
    provider = ProviderRequest(name="instant", model="openai/instant", api_base=address, context_window=10_000_000)
    client.call(providers.ADD, provider)


def _ended(client: FleetClient, order_id: str) -> None:
    def status() -> str:
        return str(client.call(orders.SHOW, order_id=order_id)["status"])

    wait_until(lambda: status() in {"succeeded", "failed"}, seconds=300, every=0.02)
    assert status() == "succeeded"
