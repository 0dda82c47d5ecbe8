"""`fleet up`: start every part in order, report it, keep them running, and end them in reverse order."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

import redis

from control_plane.broker.valkey_config import CONTROL_USER
from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import drones, projects, providers, tokens
from control_plane.contract.declarations.server import WHOAMI
from control_plane.server.embedded import banner, demo, parts
from control_plane.server.embedded.broker_tls import BrokerCertificate
from control_plane.server.embedded.children import Child
from control_plane.server.embedded.data_dir import DataDir, write_private
from control_plane.server.embedded.drones import by_id, id_of, is_ready, register_missing
from control_plane.server.embedded.logs import rotate
from control_plane.server.embedded.options import UpOptions
from control_plane.server.embedded.plan import LOOPBACK, Plan, make_plan
from control_plane.server.embedded.preparation import prepare
from shared.errors import Conflict, FleetError
from shared.signal_event import SignalEvent
from shared.sockets import redis_tls
from shared.terminal.output import put, say
from shared.terminal.private_files import PRIVATE_UMASK

LOOK_EVERY = 0.5


class Stopping(Exception):
    """Ctrl-C or SIGTERM arrived while the parts were starting."""


class EmbeddedFleet:
    """All parts of one `fleet up`."""

    def __init__(self, options: UpOptions) -> None:
        self.options = options
        self.data = DataDir(options.data_dir)
        self.children: list[Child] = []
        self.stop_requests = 0
        self._stop = SignalEvent()
        self._broker_certificate: BrokerCertificate | None = None
        self._must_replace_passwords = False
        self._unrotated: set[Path] = set()

    def run(self) -> int:
        """Start, serve until a signal arrives, stop. Returns the exit code; every child has ended by then."""
        os.umask(PRIVATE_UMASK)
        self.data.open()
        if open_to_others := self.data.make_private():
            say(f"WARNING: {open_to_others}")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGUSR1, self._on_replace_passwords)
        plan: Plan | None = None
        try:
            plan = make_plan(self.options, self.data)
            self.start(plan)
            self.watch(plan)
        except Stopping:
            pass
        finally:
            self.stop()
            self._forget_server(plan)
            self.data.close()
        return 0

    # --- starting ------------------------------------------------------------------

    def start(self, plan: Plan) -> None:
        """Start every part in dependency order, then print where they are and what to do next."""
        say(f"Starting a fleet in {self.data.root}")
        self._start(parts.broker(plan, self.data), lambda: parts.port_answers(LOOPBACK, plan.chosen.broker_port))
        if plan.broker_program and self.options.tls_files:
            self._broker_certificate = BrokerCertificate(self.options.ca_file, *self.options.tls_files)
        token = prepare(plan, self.data)
        client = FleetClient(plan.local_url, token, ca_file=plan.options.ca_file)
        self._start(parts.server(plan, self.data), lambda: _healthy(client))
        self._write_server_file(plan, token)
        if plan.flower_url:
            # Flower takes a few seconds; nothing waits for it.
            self._spawn(parts.flower(plan, self.data))
        if self.options.demo:
            self._start_demo(plan, client)
        states = self._states(plan, client, self._start_drones(plan, client))
        login_url = client.call(tokens.CREATE_LOGIN_LINK)["url"]
        put(banner.summary(plan, self.data, login_url, states, _set_up(client, demo_runs=self.options.demo)) + "\n")
        if text := banner.warning(plan):
            say(text)

    def _start_drones(self, plan: Plan, client: FleetClient) -> list[str]:
        """Start the embedded drones and wait for them; returns their ids."""
        started = []
        for name, home in register_missing(client, self.data, plan):
            child = parts.drone(name, home, self.data, self.options.home)
            self._spawn(child)
            started.append((child, id_of(home)))
        for child, drone_id in started:
            self._wait(child, partial(_is_up, client, drone_id))
        return [drone_id for _child, drone_id in started]

    def _start_demo(self, plan: Plan, client: FleetClient) -> None:
        port = plan.chosen.demo_port
        self._start(parts.scripted_model(plan, self.data), lambda: parts.port_answers(LOOPBACK, port))
        demo.seed(client, self.data.root, port)

    def _start(self, child: Child, ready: Callable[[], bool]) -> None:
        self._spawn(child)
        self._wait(child, ready)

    def _spawn(self, child: Child) -> None:
        self.children.append(child)
        child.start()

    def _wait(self, child: Child, ready: Callable[[], bool]) -> None:
        began = time.monotonic()
        if parts.wait_ready(child, ready, watch=self.children, pause=self._pause):
            say(f"  {child.name:<16} ready after {time.monotonic() - began:.1f} s")
        else:
            say(f"WARNING: {child.name} is not ready yet; the fleet starts without it (log: {child.log})")

    def _pause(self) -> None:
        if self._stop.wait(0.1):
            raise Stopping

    def _states(self, plan: Plan, client: FleetClient, drone_ids: list[str]) -> list[banner.PartState]:
        flower = next((child for child in self.children if child.name == "flower"), None)
        states = [
            banner.PartState("broker", "ready", _broker_state(plan)),
            banner.PartState("database", "ready", self.data.database_url),
            banner.PartState("server", "ready", f"{plan.local_url}  (API, collector, supervisor)"),
        ]
        if flower is not None:
            answers = parts.port_answers(LOOPBACK, plan.chosen.flower_port)
            states.append(banner.PartState("flower", "ready" if answers else "starting", plan.flower_url or ""))
        if self.options.demo:
            where = f"{demo.model_url(plan.chosen.demo_port)}  (plays a script; not a real model)"
            states.append(banner.PartState("scripted model", "ready", where))
        shown = [drone for drone_id, drone in by_id(client).items() if drone_id in drone_ids]
        states += [banner.PartState(f"drone {d['name']}", d["status"], f"sandbox {d['sandbox']}") for d in shown]
        return states

    def _write_server_file(self, plan: Plan, token: str) -> None:
        document: dict[str, object] = {
            "url": plan.local_url,
            "token": token,
            "data_dir": str(self.data.root),
            "pid": os.getpid(),
            "broker_url": plan.local_broker_url,
            "replaces_broker_password": True,
        }
        if plan.options.tls_ca:
            document["ca_file"] = plan.options.ca_file
        write_private(server_file(self.options.home), json.dumps(document, indent=2))

    def _forget_server(self, plan: Plan | None) -> None:
        path = server_file(self.options.home)
        if plan and path.exists() and json.loads(path.read_text()).get("pid") == os.getpid():
            path.unlink()

    # --- running and stopping ---------------------------------------------------------

    def watch(self, plan: Plan) -> None:
        """Restart dead parts and report it, and rotate their logs, until a signal arrives."""
        reported: set[str] = set()
        while not self._stop.wait(LOOK_EVERY):
            if self._broker_certificate:
                self._broker_certificate.renew(plan.broker_url)
            if self._must_replace_passwords:
                plan = self._with_new_passwords(plan)
            for child in self.children:
                self._rotate_log(child)
                if (code := child.died()) is None:
                    continue
                if child.name not in reported:
                    say(f"{child.name} ended with exit code {code}; restarting it (log: {child.log})")
                    reported.add(child.name)
                if child.restart_when_due():
                    reported.discard(child.name)

    def _with_new_passwords(self, plan: Plan) -> Plan:
        """Replace the passwords of broker and Flower, on request of `fleet keys rotate broker`."""
        self._must_replace_passwords = False
        try:
            new = _replace_passwords(plan, self.data, self._restart_control_plane)
        except (FleetError, redis.RedisError) as error:
            # What is running continues: until it is replaced completely, the broker's old password is valid.
            say(f"the passwords of broker and Flower were not replaced: {error}; repeat: fleet keys rotate broker")
            return plan
        say("the passwords of broker and Flower were replaced")
        if new.flower_url:
            put(banner.flower_line(new) + "\n")
        return new

    def _restart_control_plane(self, plan: Plan) -> None:
        """Restart server and Flower with the values of this plan; drones continue meanwhile."""
        token = self.data.admin_token.read_text().strip()
        client = FleetClient(plan.local_url, token, ca_file=plan.options.ca_file)
        made = {"server": parts.server(plan, self.data), "flower": parts.flower(plan, self.data)}
        for child in self.children:
            if child.name in made:
                child.environment = made[child.name].environment
                child.stop()
                child.start()
            if child.name == "server":
                self._wait(child, lambda: _healthy(client))

    def _rotate_log(self, child: Child) -> None:
        """A log that cannot be rotated, on a full disk for example, must not end the fleet; it is reported once."""
        try:
            rotate(child.log)
        except OSError as error:
            if child.log not in self._unrotated:
                self._unrotated.add(child.log)
                say(f"the log {child.log} could not be rotated and keeps growing: {error.strerror}")

    def stop(self) -> None:
        """End the parts: drones first, so that what they hand back is still processed; the broker last."""
        if self.children:
            say("stopping: drones return their orders (Ctrl-C again: stop immediately)")
        for child in self.children:
            if child.stops_first:
                child.ask_to_stop()
        for child in reversed(self.children):
            child.stop(at_once=self.stop_requests > 1)
        if self.children:
            say("stopped")

    def _on_replace_passwords(self, _number: int, _frame: FrameType | None) -> None:
        self._must_replace_passwords = True

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_requests += 1
        self._stop.set()
        if self.stop_requests > 1:
            for child in self.children:
                child.hurry()


def server_file(home: Path) -> Path:
    """Where a running `fleet up` records how to reach it."""
    return home / "server.json"


def _broker_state(plan: Plan) -> str:
    name, tls = (plan.broker_program.name, ", TLS") if plan.broker_program else ("Valkey", "")
    return f"{name} on port {plan.chosen.broker_port}, append-only{tls}"


def _set_up(client: FleetClient, *, demo_runs: bool) -> banner.SetUp:
    """What the default organization has and lacks; `demo_runs`: whether the demo's model runs."""
    models, repositories = client.call(providers.LIST), client.call(projects.LIST)
    seeded = [*filter(demo.is_demo_provider, models), *filter(demo.is_demo_project, repositories)]
    usable = {
        "provider": [each for each in models if demo_runs or each not in seeded],
        "project": [each for each in repositories if demo_runs or each not in seeded],
        "drone": client.call(drones.LIST),
    }
    missing = [what for what, found in usable.items() if not found]
    return banner.SetUp(missing, "running" if demo_runs else "stopped" if seeded else "absent")


def _is_up(client: FleetClient, drone_id: str) -> bool:
    return is_ready(by_id(client).get(drone_id))


def _healthy(client: FleetClient) -> bool:
    """Whether our server answers. One of another fleet, which took the port meanwhile, does not know our token."""
    try:
        return bool(client.health() and client.call(WHOAMI))
    except FleetError:
        return False


def up(options: UpOptions) -> int:
    """Run an embedded fleet until it is stopped."""
    if sys.platform == "win32":
        raise Conflict("fleet up needs Linux or macOS", code="E-UP-PLATFORM")
    return EmbeddedFleet(options).run()


def _replace_passwords(plan: Plan, data: DataDir, restart: Callable[[Plan], None]) -> Plan:
    """A plan with new passwords, after `restart` has put them into use; the old one of the broker is valid until then.

    Flower knows one password: the old one ends with its process, which `restart` replaces. If this is interrupted, the
    next `fleet up` gives the user the remembered password alone.
    """
    new = replace(plan, chosen=data.remembered().with_new_passwords())
    with redis.Redis.from_url(plan.broker_url, **redis_tls(plan.broker_url, plan.options.ca_file)) as broker:
        _change(broker, f">{new.chosen.broker_password}")
        data.remember(new.chosen)
        restart(new)
        _change(broker, f"<{plan.chosen.broker_password}")
        # A connection does not end with its password. The control plane's own ones come back at once.
        broker.client_kill_filter(user=CONTROL_USER, skipme=True)
    return new


def _change(broker: redis.Redis, password: str) -> None:
    broker.execute_command("ACL SETUSER", CONTROL_USER, password)  # type: ignore[no-untyped-call]
    broker.acl_save()
