"""The HTTP interface in service: a real server on a free port, a real broker, and played drones."""

from __future__ import annotations

import base64
import json
import logging
import shutil
import sqlite3
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import update
from sqlalchemy.orm import Session

from control_plane.broker.broker import Broker
from control_plane.collector.held_events import Gaps
from control_plane.collector.intake import Intake
from control_plane.collector.intake_outcome import IntakeOutcome
from control_plane.collector.stream_entries import StreamEntry
from control_plane.contract.client import following
from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import projects, providers
from control_plane.contract.declarations.orders import SUBMIT, SubmitRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.tokens import CREATE_JOIN, ApiTokenRequest, JoinTokenRequest
from control_plane.contract.validation.invalid_requests import checked
from control_plane.core import Core
from control_plane.core.background.timings import Timings
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.drones import Drone
from control_plane.db.engine import sqlite_url_of
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.operations.access import tokens
from control_plane.orders.assignment import dispatch
from control_plane.orders.ending import requeue
from control_plane.orders.lost import announce
from control_plane.orders.placement import Placement
from control_plane.web.hub import Hub
from control_plane.web.server import ApiServer, api_server
from control_plane.web.stream import Pace
from control_plane.web.throttle import Throttle
from shared import names
from shared.blobs import digest
from shared.clock import SystemClock
from shared.envelope import Binding, new_private_key, open_envelope, public_key, seal
from shared.events import (
    ABILITIES,
    ApprovalStep,
    AssistantStep,
    DecisionStep,
    Delta,
    Event,
    PlanStep,
    RunEnded,
    RunStarted,
)
from shared.names import new_id
from shared.plans import AgentPlan
from shared.reasons import GivenBack, Placed
from shared.registration import Credentials, JoinTokenString, RegistrationRequest
from shared.states import OrderStatus
from shared.terminal import logs
from tests.support import HeldPort, wait_until
from tests.support.broker import BrokerLender, BrokerServer
from tests.support.database import CoreFactory, core_on
from tests.support.quiet_logs import quiet_logs

Doc = dict[str, Any]
BROWSER_KEY = "k" * 64
KEY_HEADER = "X-Fleet-Browser-Key"
FAST = Pace(heartbeat_s=1.0, allowed_s=1.0, poll_s=0.3, figures_s=0.2)
"""Streams with shorter intervals than in production."""


@dataclass
class Api:
    """A running HTTP interface; it can be stopped and restarted on the same port."""

    core: Core
    port: int
    token: str
    broker: BrokerServer
    pace: Pace = FAST
    followers: list[Follower] = field(default_factory=list)
    stopped: bool = False
    """True if a test stopped it; the next test then gets a new one."""
    client: FleetClient = field(init=False)
    _server: ApiServer | None = None
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.client = FleetClient(self.url, self.token, ca_file=str(self.core.settings.ca_file or ""))

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.core.blobs.root.parent / "api.log"

    @property
    def url(self) -> str:
        return f"{'https' if self.core.settings.tls_files else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        server = api_server(self.core, host="127.0.0.1", port=self.port, pace=self.pace)
        self._server, self._thread = server, threading.Thread(target=server.run, name="api", daemon=True)
        self._thread.start()
        wait_until(lambda: server.started)

    def stop(self) -> None:
        """Stop it as SIGTERM does; fails if requests or streams delay the stop."""
        self.stopped = True
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = True
        self._thread.join(timeout=60)
        assert not self._thread.is_alive(), "the server did not stop"
        self._server = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop it for good, and end its followers."""
        self.stop()
        for follower in self.followers:
            follower.leave()
        self.core.broker.close()
        self.core.database.dispose()

    @property
    def app(self) -> FastAPI:
        """The running application."""
        assert self._server is not None
        app: FastAPI = self._server.config.app  # type: ignore[assignment]
        return app

    @property
    def hub(self) -> Hub:
        """The hub that the running server's streams share."""
        hub: Hub = self.app.state.live.hub
        return hub

    def wait_for_hub(self) -> None:
        """Wait until the server receives changes by pub/sub."""
        wait_until(lambda: self.hub.connected)

    def http(self, token: str | None = "", **headers: str) -> httpx.Client:
        """A plain client: with the admin's token by default, none with None; `headers` by keyword."""
        bearer = self.token if token == "" else token
        if bearer:
            headers["Authorization"] = f"Bearer {bearer}"
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, verify=False, timeout=60)

    @contextmanager
    def browser(self, headers: Mapping[str, str] | None = None, **log_in: str) -> Iterator[httpx.Client]:
        """A logged-in browser, by default the admin's, that sends its key as scripts of the pages do."""
        form = {**(log_in or {"token": self.token}), "browser_key": BROWSER_KEY}
        with self.http(None, **{**(headers or {}), KEY_HEADER: BROWSER_KEY}) as browser:
            assert browser.post("/login", data=form).status_code == 303
            yield browser

    def token_for(self, role: str) -> str:
        """The text of a new API token."""
        caller = system_caller(self.core)
        return str(tokens.create_api_token(self.core, caller, ApiTokenRequest(role=role, name=role)).token)

    def add_work(self, slug: str = "demo") -> None:
        """A provider and a project, as most tests need them."""
        self.client.call(
            providers.ADD, ProviderRequest(name="scripted", model="openai/scripted", api_base="http://127.0.0.1:9/v1")
        )
        self.client.call(
            projects.ADD, ProjectRequest(slug=slug, git_url="https://git.example/demo.git", provider="scripted")
        )

    def add_drone(self, name: str = "mila", join_token: str = "", **said: Any) -> PlayedDrone:
        """Register a drone over the same route as every drone, and send a beat."""
        text = JoinTokenString.parse(join_token or self.client.call(CREATE_JOIN, JoinTokenRequest())["token"])
        assert text is not None
        key = new_private_key()
        request = RegistrationRequest(
            secret=text.secret,
            name=name,
            machine_id=f"machine of {name}",
            public_key=base64.b64encode(public_key(key)).decode(),
            **{"sandbox": "bwrap", "version": "0.1.0", "host": "workstation", "abilities": ABILITIES, **said},
        )
        with self.http(None) as http:
            answer = http.post("/api/v1/registrations", json=request.model_dump()).raise_for_status().json()
        drone = PlayedDrone(self.core, key, answer)
        drone.beat()
        return drone

    def submit(self, prompt: str = "Fix the failing test", **wanted: Any) -> Doc:
        request = checked(SubmitRequest, {"prompt": prompt, "project": "demo", **wanted}, form="")
        return self.client.call(SUBMIT, request)

    def store_blob(self, run: PlayedRun, content: bytes, kind: str = "") -> str:
        """Store a blob of the run, as its drone does; return its name."""
        name = digest(content)
        with self.http(run.drone.token) as http:
            http.put(f"/api/v1/runs/{run.id}/blobs/{name}", content=content, params={"kind": kind}).raise_for_status()
        return name


class Left(Exception):
    """Raised in a follower that was asked to stop."""


class LeavingClock(SystemClock):
    """A clock whose `sleep`, the wait before a new connection, raises `Left` once `leaving` is set."""

    def __init__(self) -> None:
        self.leaving = threading.Event()

    def sleep(self, seconds: float) -> None:
        if self.leaving.wait(seconds):
            raise Left


class Follower:
    """Follows an order in a separate thread, and records all events."""

    def __init__(self, api: Api, order_id: str, *, raw: bool = False, token: str = "", **options: Any) -> None:
        self.events: list[tuple[str, Doc]] = []
        self.error: BaseException | None = None
        self._client = FleetClient(api.url, token or api.token)
        self._clock = LeavingClock()
        self._stream = self._raw(order_id) if raw else self._client.follow(order_id, clock=self._clock, **options)
        api.followers.append(self)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def of(self, kind: str) -> list[Doc]:
        """The data of all events of this kind so far."""
        return [data for event, data in list(self.events) if event == kind]

    @property
    def seqs(self) -> list[int]:
        return [step["seq"] for step in self.of("step")]

    @property
    def follows(self) -> bool:
        """Whether it still waits for events."""
        return self._thread.is_alive()

    def ended(self, *, seconds: float = 60.0) -> Doc:
        """Wait for the end, and return its document."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"no end came; last: {self.events[-1:]}"
        assert self.error is None, self.error
        return self.events[-1][1]

    def leave(self) -> None:
        """Stop following; the connection must be closed by now."""
        self._clock.leaving.set()
        self._thread.join(60)
        self._client.close()

    def _raw(self, order_id: str) -> Iterator[tuple[str, Doc]]:
        """The events of one connection, before the client removes duplicates."""
        path = f"/api/v1/orders/{order_id}/events"
        with following.open_stream(self._client._connection(), path, 0, self._client.organization) as events:
            for message in events:
                yield message.event, json.loads(message.data)

    def _follow(self) -> None:
        try:
            self.events.extend(self._stream)
        except Left:
            return
        except Exception as error:  # noqa: BLE001 - kept for the caller of `ended`
            self.error = error


@dataclass
class PlayedDrone:
    """A drone as the rest of the control plane sees it: its messages go through the collector's intake.

    It is for tests of how drones and runs are shown; the drone and the collector have their own tests.
    """

    core: Core
    key: bytes
    answer: Doc

    @property
    def id(self) -> str:
        return str(self.answer["drone_id"])

    @property
    def token(self) -> str:
        """Its bearer token, from the sealed credentials."""
        sender = base64.b64decode(self.answer["public_key"])
        opened = open_envelope(
            self.answer["credentials"],
            recipients={self.answer["credentials"].partition(".")[0]: self.key},
            sender=sender,
            expect=Binding(direction="credentials", drone=self.id),
        )
        return Credentials.model_validate_json(opened.body).api_token

    def sealed(self, body: str, binding: Binding) -> str:
        """The body, sealed for the control plane."""
        recipient = base64.b64decode(self.answer["public_key"])
        return seal(body, binding, sender=self.key, recipient=recipient, issued_at=self.core.clock.now())

    def beat(self) -> None:
        with self.core.database.write() as db:
            db.execute(update(Drone).where(Drone.id == self.id).values(last_seen_at=self.core.clock.now()))

    def take(self, order: Doc) -> PlayedRun:
        """Start a run of the order, regardless of its earlier placement."""
        core = self.core
        with core.database.write() as db:
            row, drone = db.get_one(Order, order["id"]), db.get_one(Drone, self.id)
            if row.status != OrderStatus.QUEUED:
                requeue(db, core, row, GivenBack(drone=drone.name, detail="another run takes it"))
            made = dispatch(db, core, row, Placement(drone, Placed(code="free_slot", drone=drone.name)))
            made.published_at = core.clock.now()
            run = PlayedRun(self, order["id"], made.id, made.generation)
        run.step(RunStarted(boot_id="boot", sandbox="bwrap"))
        return run


@dataclass
class PlayedRun:
    """One run of a played drone."""

    drone: PlayedDrone
    order_id: str
    id: str
    generation: int
    last: int = 0
    """The number of its last event."""

    def step(self, body: Any) -> None:
        """Pass the run's next event, sealed as a drone seals it, to the collector's intake, and notify followers."""
        core, self.last = self.drone.core, self.last + 1
        now = core.clock.now()
        event = Event(
            run_id=self.id, order_id=self.order_id, generation=self.generation, seq=self.last, at=now, body=body
        )
        binding = Binding(
            direction="event", drone=self.drone.id, order=self.order_id, run=self.id, generation=self.generation
        )
        entry = StreamEntry(f"{self.last}-0", {"t": "event", "e": self.drone.sealed(event.model_dump_json(), binding)})
        outcome = core.database.transact(lambda db: self._take_in(db, entry))
        core.broker.stepped(outcome.stepped - outcome.changed)
        announce(core, outcome.changed, outcome.ended)

    def _take_in(self, db: Session, entry: StreamEntry) -> IntakeOutcome:
        intake = Intake(db, self.drone.core, db.get_one(Drone, self.drone.id), Gaps(), Timings())
        intake.store([entry])
        assert db.get_one(Run, self.id).last_seq == self.last, "the event was not taken in"
        return intake.outcome

    def says(self, text: str) -> None:
        """One more whole message of the model."""
        self.step(AssistantStep(text=text))

    def asks(self, call_id: str, tool: str, why: str, command: str = "") -> None:
        """A call of the run, and with it the order, waits for approval."""
        self.step(ApprovalStep(call_id=call_id, tool=tool, why=why, command=command))

    def presents(self, plan: AgentPlan, number: int = 1) -> None:
        """The agent presents a plan, and with it the order waits."""
        self.says("I know enough.")
        self.step(PlanStep(plan=plan))
        self.waits_with(plan, number)

    def waits_with(self, plan: AgentPlan, number: int = 1) -> None:
        """The order waits with a plan that was presented before."""
        subject = f"plan-{number}"
        self.step(ApprovalStep(about="plan", call_id=subject, tool="present_plan", why=plan.title, plan=plan))

    def decides_plan(self, plan: AgentPlan | None, number: int = 1, **more: Any) -> None:
        """The run reports that its plan was approved, or sent back (None)."""
        approved = plan is not None
        self.step(DecisionStep(about="plan", call_id=f"plan-{number}", approved=approved, plan=plan, **more))

    def streams(
        self,
        text: str,
        kind: str = "text",
        *,
        after_seq: int | None = None,
        offset: int | None = None,
        drone: PlayedDrone | None = None,
    ) -> None:
        """Text in flight, sealed and published as a drone does; `drone`: another sender that claims this run.

        `after_seq`: the last event by then; None for the run's last one.
        """
        sender = drone or self.drone
        delta = Delta(
            run_id=self.id,
            order_id=self.order_id,
            kind=kind,
            text=text,
            after_seq=self.last if after_seq is None else after_seq,
            offset=offset,
        )
        binding = Binding(direction="live", drone=sender.id, order=self.order_id, run=self.id)
        envelope = sender.sealed(delta.model_dump_json(), binding)
        channel = names.live_channel(sender.id)
        self.drone.core.broker.redis.publish(channel, json.dumps({"t": "delta", "e": envelope}))

    def ends(self, status: OrderStatus = OrderStatus.SUCCEEDED, **said: Any) -> None:
        """The run's last event, which gives the order this status; `said`: more fields of the event."""
        good = status == OrderStatus.SUCCEEDED
        end = (
            {"status": "success", "exit_status": "submitted"} if good else {"status": "failed", "order_at_fault": True}
        )
        self.step(RunEnded.model_validate({"exit_status": "model_error", "reason": "done", **end, **said}))


@dataclass
class ApiLender:
    """Lends one running server to test after test, with the database restored in between.

    The server is replaced if a test stopped it, disturbed its broker, or left a stream open.
    """

    template: Path
    directory: Path
    lent: Api | None = None
    _held: HeldPort | None = None

    def lend(self, valkey: BrokerServer) -> Api:
        if self.lent is not None and self.lent.broker is not valkey:
            self.close()
        if self.lent is None:
            self.lent = self._start(valkey)
        api = self.lent
        # New for each test: a client keeps connections, followers are threads, and the throttle counts failures.
        api.client, api.followers = FleetClient(api.url, api.token), []
        api.app.state.throttle = Throttle()
        return api

    def take_back(self, api: Api) -> None:
        api.client.close()
        if api.stopped or api.broker.disturbed or any(follower.follows for follower in api.followers):
            self.close()
            return
        for follower in api.followers:
            follower.leave()
        # Refusals of many tests within a minute would count as one sender's flood.
        api.app.state.tally.flush(api.core, everything=True)
        shutil.rmtree(api.core.blobs.root, ignore_errors=True)
        with closing(sqlite3.connect(self._snapshot)) as source, closing(sqlite3.connect(self._database)) as database:
            source.backup(database)

    def close(self) -> None:
        """Stop the server as SIGTERM does; fails if that takes long."""
        if self.lent is not None:
            self.lent.close()
            self.lent = None
        if self._held is not None:
            self._held.release()

    def _start(self, valkey: BrokerServer) -> Api:
        self._home = self.directory / new_id()
        self._home.mkdir()
        shutil.copy(self.template, self._database)
        self._held, broker = HeldPort(), Broker(valkey.url)
        port = self._held.number
        core = core_on(sqlite_url_of(self._database), self._home, broker=broker, broker_url=valkey.url, port=port)
        api = Api(core, port, tokens.bootstrap_admin(core), valkey)
        with closing(sqlite3.connect(self._database)) as source, closing(sqlite3.connect(self._snapshot)) as snapshot:
            source.backup(snapshot)
        api.start()
        return api

    @property
    def _database(self) -> Path:
        return self._home / "fleet.db"

    @property
    def _snapshot(self) -> Path:
        return self._home / "snapshot.db"


@pytest.fixture(scope="session")
def api_lender(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory, valkey_lender: BrokerLender
) -> Iterator[ApiLender]:
    """A lender that is closed before the broker that it uses."""
    lender = ApiLender(sqlite_template, tmp_path_factory.mktemp("apis"))
    yield lender
    lender.close()


@pytest.fixture
def api(api_lender: ApiLender, valkey: BrokerServer) -> Iterator[Api]:
    """The HTTP interface on empty SQLite and Valkey, with an admin's client; the test may stop and start it."""
    running = api_lender.lend(valkey)
    running.log.unlink(missing_ok=True)
    with logs_in(running.log):
        yield running
        api_lender.take_back(running)


@contextmanager
def api_on(database_url: str, valkey: BrokerServer, core_factory: CoreFactory, **settings: Any) -> Iterator[Api]:
    """The HTTP interface on any database, with more settings; it logs to `api.log`."""
    with HeldPort() as port:
        core = core_factory(database_url, broker=Broker(valkey.url), broker_url=valkey.url, port=port, **settings)
        running = Api(core, port, tokens.bootstrap_admin(core), valkey)
        with logs_in(running.log):
            running.start()
            try:
                yield running
            finally:
                running.client.close()
                running.close()


@contextmanager
def logs_in(file: Path) -> Iterator[None]:
    """Send logs to `file` with the production configuration, and restore the previous one afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    for handler in handlers:
        # Removed first: reconfiguring the logs closes all existing handlers.
        root.removeHandler(handler)
    logs.configure(file=file)
    try:
        yield
    finally:
        logs.configure(stream=sys.stderr)
        quiet_logs()
        root.handlers[:] = handlers
        root.setLevel(level)
