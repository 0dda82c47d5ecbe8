"""The whole fleet in a throw-away directory: one order from prompt to branch, with the commands a user would type.

    python deploy/demo/demo.py

With MODEL (and API_BASE, API_KEY) in the environment a real model does the work; otherwise a scripted stand-in does.
Exit code 0 only if the order succeeded, the branch came back, its tests pass, and no process is left.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import FrameType
from typing import Any

from stage import DRONE, FLEET, DemoFailed, Stage, Started, free_port, say, settings, step, tail, wait_for

from control_plane.server.embedded.demo import PROMPT, SCRIPT, create_repository


def main() -> int:
    """Play the demo and return its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    given = settings(["MODEL", "API_BASE", "API_KEY"])
    if given and "MODEL" not in given:
        say(f"error: {' and '.join(given)} without MODEL; next: make demo MODEL=openai/gpt-5 and the rest as it is")
        return 2
    began = time.monotonic()
    stage = Stage()
    code = 1
    try:
        play(stage)
        code = 0
    except DemoFailed as failure:
        complain(failure)
    except KeyboardInterrupt:
        say("\nInterrupted; stopping everything.")
        code = 130
    finally:
        with step("everything is stopped"):
            left = stage.close(keep=code == 1)
    if left:
        say(f"error: these processes did not end by themselves and were killed: {', '.join(left)}")
        return code or 1
    kept = (
        f"The logs are kept in {stage.directory}" if code == 1 else f"No process is left, {stage.directory} is removed"
    )
    say(f"{kept}; {time.monotonic() - began:.0f} s in all.")
    return code


def play(stage: Stage) -> None:
    """Each line is one thing a user does, in order."""
    say(f"Dronefleet demo, in {stage.directory}")
    with step("a git repository with a failing test"):
        remote = stage.directory / "slugs.git"
        create_repository(remote)
    with step("fleet up: broker, database, HTTP, supervisor, collector, Flower"):
        bring_up(stage)
    with step("drone register, drone start: a workstation joins"):
        drone = join(stage)
    with step(f"fleet provider add: {model_shown()}"):
        introduce_model(stage)
    with step("fleet project add"):
        stage.run(*FLEET, "project", "add", "slugs", "--no-check", "--git-url", remote.as_uri())
    with step("the drone is online"):
        wait_for("the drone", lambda: is_online(stage), seconds=60, part=drone)
    say(f"\n  open    {printed(stage.started[0], 'login link')}")
    say(f"  Flower  {printed(stage.started[0], 'Flower')}\n")
    report(stage, submit(stage), remote)


def bring_up(stage: Stage) -> None:
    """Start the control plane; return once it reports that it is up and its health check answers."""
    ports = ["--port", str(free_port()), "--flower-port", str(free_port())]
    up = stage.start("fleet up", [*FLEET, "up", "--data-dir", stage.directory / "data", *ports, "--drones", "0"])
    wait_for("the control plane", lambda: printed(up, "login link") and ask(stage, "health"), seconds=60, part=up)


def printed(up: Started, what: str) -> str:
    """The login link or Flower's address, as `fleet up` prints it; empty until it is printed."""
    line = {"login link": r"(http\S+/login\?\S+)", "Flower": r"Flower +(http.*)"}[what]
    found = re.search(rf"(?m)^ *{line}$", up.log.read_text(encoding="utf-8", errors="replace"))
    return found[1] if found else ""


def ask(stage: Stage, path: str) -> Any:
    """GET a path from the control plane as `fleet` does, without starting a process; None if there is no answer."""
    server = json.loads((stage.directory / "fleet" / "server.json").read_text(encoding="utf-8"))
    request = urllib.request.Request(f"{server['url']}/api/v1/{path}")  # noqa: S310 - http, loopback
    request.add_header("Authorization", f"Bearer {server['token']}")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return json.load(answer)
    except OSError:
        return None


def join(stage: Stage) -> Started:
    """Register a drone with a join token and start it, as on any workstation."""
    url = json.loads((stage.directory / "fleet" / "server.json").read_text(encoding="utf-8"))["url"]
    token = stage.run(*FLEET, "token", "create").strip()
    stage.run(*DRONE, "register", "--url", url, "--name", "demo", "--label", "demo=yes", DRONE_TOKEN=token)
    # Not SIGTERM, which would wait for an active run to finish.
    return stage.start("drone start", [*DRONE, "start"], stop_signal=signal.SIGQUIT)


def is_online(stage: Stage) -> bool:
    return any(drone["name"] == "demo" and drone["status"] == "online" for drone in ask(stage, "drones") or [])


def model_shown() -> str:
    given = settings(["MODEL"])
    return f"{given['MODEL']}, a real model" if given else "a SCRIPTED stand-in, no real model"


def introduce_model(stage: Stage) -> None:
    """Add the provider: the caller's model, or a scripted one that is started here."""
    given = settings(["MODEL", "API_BASE", "API_KEY"])
    model = given.get("MODEL", "openai/scripted")
    base = given.get("API_BASE", "") if given else scripted_model(stage)
    key = ["--api-key-env", "API_KEY"] if "API_KEY" in given else ["--no-key"]
    secret = {"API_KEY": given["API_KEY"]} if "API_KEY" in given else {}
    where = ["--api-base", base] if base else []
    stage.run(*FLEET, "provider", "add", "demo", "--no-check", "--model", model, *where, *key, timeout=60, **secret)


def scripted_model(stage: Stage) -> str:
    """Start the stand-in and return its address."""
    command = [sys.executable, "-P", "-m", "drone.model.scripted.server", "--script", SCRIPT, "--chunk-delay", "0.02"]
    model = stage.start("scripted model", command)
    wait_for("the scripted model", lambda: model.log.read_text().endswith("\n"), seconds=20, part=model)
    return model.log.read_text().split()[0]


def submit(stage: Stage) -> dict[str, Any]:
    """Submit the order, show it live, and return its document."""
    limit = 1200.0 if settings(["MODEL"]) else 60.0
    say(f'$ fleet submit "{PROMPT}" --project slugs --drone demo --follow')
    command = [*FLEET, "submit", PROMPT, "--project", "slugs", "--drone", "demo", "--provider", "demo", "--follow"]
    code = stage.watch(*command, timeout=limit)
    orders = ask(stage, "orders")
    if not orders:
        raise DemoFailed(f"fleet submit ended with exit code {code} and left no order", stage.started[0].log)
    order: dict[str, Any] = ask(stage, f"orders/{orders[0]['id']}")
    if code or order["status"] != "succeeded":
        said = f"the order is {order['status']} ({order['reason']}), fleet submit ended with exit code {code}"
        raise DemoFailed(said, stage.started[1].log)
    return order


def report(stage: Stage, order: dict[str, Any], remote: Path) -> None:
    """Print the result, and check it against the repository itself."""
    if not order["pushed"]:
        raise DemoFailed(f"the branch was not pushed: {order['push_error']}")
    branch, stats = order["branch"], order["stats"]
    say(f"\n$ fleet patch {order['id']}")
    say(stage.run(*FLEET, "patch", order["id"]).rstrip())
    say(f"\n$ git log --oneline main..{branch}        in the project's repository")
    say(stage.run("git", "-C", remote, "log", "--oneline", f"main..{branch}").rstrip())
    say()
    with step(f"the test fails on main and passes on {branch}"):
        if tests_pass(stage, remote, "main") or not tests_pass(stage, remote, branch):
            raise DemoFailed(f"the test on {branch} does not show that the bug is fixed")
    cost = "price unknown" if stats["cost_usd"] is None else f"USD {stats['cost_usd']:.4f}"
    say(f"\n  order   {order['id']} {order['status']}: {order['reason']}")
    say(f"  branch  {branch} at {order['head_commit']}")
    tokens = f"{stats['input_tokens']} in, {stats['output_tokens']} out"
    say(f"  tokens  {tokens}; {stats['tool_calls']} tool calls; {cost}")
    if settings(["MODEL"]):
        say(f"  model   {order['model']}")
    else:
        say(f"  model   SCRIPTED: its answers come from the demo's {SCRIPT.name}. Everything else was real.")
        say("          With a real one: API_KEY=... make demo MODEL=openai/gpt-5 API_BASE=https://api.openai.com/v1")


def tests_pass(stage: Stage, remote: Path, branch: str) -> bool:
    """Run the repository's test on a branch, in a separate clone."""
    clone = stage.directory / f"check-{branch.replace('/', '-')}"
    stage.run("git", "clone", "--quiet", "--branch", branch, remote, clone)
    done = subprocess.run(["sh", "test.sh"], cwd=clone, capture_output=True, timeout=20, check=False)
    return done.returncode == 0


def complain(failure: DemoFailed) -> None:
    say(f"\nerror: {failure}")
    if failure.log:
        say(f"  the end of {failure.log.name}:")
        say(tail(failure.log))


def _stop(_number: int, _frame: FrameType | None) -> None:
    # Only once: a second Ctrl-C must not interrupt the shutdown and leave half of the processes running.
    for either in (signal.SIGINT, signal.SIGTERM):
        signal.signal(either, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
