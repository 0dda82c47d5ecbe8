"""Real drones for tests: a worker process on a real Valkey, and a stand-in for the control plane to look through.

The control plane here is a stand-in: it publishes sealed orders, opens what comes back, and serves blobs over real
HTTP. What the real one does with all that is tested elsewhere.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from control_plane.broker import Broker
from control_plane.valkey_config import program
from drone import journal
from drone.agent.protocols import Answer, DeltaKind
from drone.home import DroneConfig, DroneHome
from drone.journal import RunIdentity
from drone.policy import Policy
from drone.provider_keys import litellm_model
from drone.recorder import JournalRecorder
from drone.reporting.reporter import Reporter
from drone.reporting.stream import Stream
from drone.run import MakeModel, RunContext, execute
from drone.run_controls import RunControls
from drone.run_directory import Meta, RunDirectory
from drone.sandbox import choose
from drone.uplink import Sealer, connect
from drone.workspace import Workspaces, claim_root, copy_owner_config, git_environment
from shared import names
from shared.blobs import digest
from shared.clock import SystemClock
from shared.control import ControlMessage
from shared.envelope import Binding, key_id, new_private_key, open_envelope, public_key, seal
from shared.events import Beat, CommentStep, Delta, Event, Hello, Receipt, RunEnded
from shared.redaction import Redactor
from shared.registration import Credentials
from shared.work_order import Limits, OrderProject, OrderProvider, OrderSession, WorkOrder
from tests.support import wait_until
from tests.support.broker import BrokerServer

HOST = "testhost"
API_TOKEN = "fd_0123456789abcdef0123456789abcdef"


class BlobServer:
    """Blobs and push grants over real HTTP, as the control plane's interface answers them."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.grants: dict[str, int] = {}
        """HTTP status with which a run's question for a push is answered; 200 where nothing is said."""
        self.seen = 0
        """Requests so far."""
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _exchange(self))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def start(self) -> BlobServer:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> BlobServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _exchange(server: BlobServer) -> type[BaseHTTPRequestHandler]:
    class Exchange(BaseHTTPRequestHandler):
        """One request."""

        def do_PUT(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            name = self.path.rpartition("/")[2]
            right = self.headers["Authorization"] == f"Bearer {API_TOKEN}" and digest(content) == name
            if right:
                server.blobs[name] = content
            self._answer(204 if right else 403, b"")

        def do_GET(self) -> None:
            content = server.blobs.get(self.path.rpartition("/")[2])
            self._answer(404 if content is None else 200, content or b"")

        def do_POST(self) -> None:
            status = server.grants.get(self.path.split("/")[-2], 200)
            granted = {"granted": True, "expires_in": 60, "known": None}
            self._answer(status, json.dumps(granted if status == 200 else {"detail": "no", "code": "E-GRANT"}).encode())

        def _answer(self, status: int, content: bytes) -> None:
            server.seen += 1
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    return Exchange


@dataclass
class Dispatch:
    """One order as it was given to a drone."""

    order: WorkOrder
    envelope: str

    @property
    def run_id(self) -> str:
        return self.order.run_id


class StandIn:
    """A control plane's place: its keys, its broker, its blobs."""

    def __init__(self, server: BrokerServer) -> None:
        self.server = server
        self.broker = Broker(server.url)
        self.key = new_private_key()
        self._drone_keys: dict[str, bytes] = {}
        self._heard: list[tuple[str, dict[str, str]]] = []
        self._beats: list[tuple[str, str]] = []
        self._http = BlobServer().start()
        self.blobs, self.grants = self._http.blobs, self._http.grants
        self._stop = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def url(self) -> str:
        return self._http.url

    def register(self, home: DroneHome, *, concurrency: int = 1, sandbox: str = "none") -> DroneConfig:
        """What `drone register` leaves in a home, and the drone's user in the broker."""
        drone_id, password = names.new_id(), "drone-password"
        key = home.make_private_key()
        self._drone_keys[drone_id] = public_key(key)
        self.broker.ensure_user(drone_id, sha256(password.encode()).hexdigest())
        workspace = home.default_workspace
        claim_root(workspace)
        config = DroneConfig(
            drone_id=drone_id,
            name=f"drone-{drone_id[:4]}",
            server_url=self.url,
            control_plane_public_key=base64.b64encode(public_key(self.key)).decode(),
            concurrency=concurrency,
            sandbox=sandbox,
            workspace=str(workspace),
            host=HOST,
            machine_id=home.machine_id(),
        )
        credentials = Credentials(broker_url=self.broker.drone_url(drone_id, password), api_token=API_TOKEN)
        home.save(config, credentials)
        copy_owner_config(home.git_config_file)
        return config

    def dispatch_without_key(self, order: WorkOrder) -> Dispatch:
        """The message alone, as it is left when Redis lost the run's key."""
        sent = Dispatch(order, self.sealed(order))
        self.publish(sent)
        return sent

    def dispatch(self, order: WorkOrder, *, envelope: str = "") -> Dispatch:
        """Offer a run and put its sealed order onto the drone's queue."""
        sent = Dispatch(order, envelope or self.sealed(order))
        assert self.broker.offer_run(order.drone_id, order.run_id, order.generation)
        self.publish(sent)
        return sent

    def publish(self, sent: Dispatch) -> None:
        """Put the message onto the queue, once more perhaps."""
        order = sent.order
        self.broker.publish_order(
            drone_id=order.drone_id,
            order_id=order.order_id,
            run_id=order.run_id,
            generation=order.generation,
            envelope=sent.envelope,
        )

    def sealed(self, order: WorkOrder) -> str:
        binding = Binding(
            direction="order",
            drone=order.drone_id,
            order=order.order_id,
            run=order.run_id,
            generation=order.generation,
        )
        return self._seal(order.model_dump_json(), binding)

    def tell(self, drone_id: str, message: ControlMessage) -> None:
        """Put a control message into the drone's inbox, and say it aloud."""
        envelope = self._seal(message.model_dump_json(), Binding(direction="control", drone=drone_id))
        self.broker.redis.hset(names.inbox_key(drone_id), message.id, envelope)
        self.broker.redis.publish(names.control_channel(drone_id), envelope)

    def stream(self, drone_id: str) -> list[Event | Hello]:
        """Everything in the drone's stream, opened, in order."""
        entries = self.broker.redis.xrange(names.events_stream(drone_id))
        return [self._open(drone_id, fields) for _, fields in entries]

    def events(self, drone_id: str, run_id: str) -> list[Event]:
        """A run's events, each once, by number."""
        found = [each for each in self.stream(drone_id) if isinstance(each, Event) and each.run_id == run_id]
        return [event for _, event in sorted({event.seq: event for event in found}.items())]

    def hellos(self, drone_id: str) -> list[Hello]:
        return [each for each in self.stream(drone_id) if isinstance(each, Hello)]

    def ended(self, sent: Dispatch, *, seconds: float = 40) -> RunEnded:
        """Wait for a run's last event."""

        def last() -> RunEnded | None:
            events = self.events(sent.order.drone_id, sent.run_id)
            return events[-1].body if events and isinstance(events[-1].body, RunEnded) else None

        found = wait_until(last, seconds=seconds)
        assert found is not None
        return found

    def kinds(self, sent: Dispatch) -> list[str]:
        return [event.body.kind for event in self.events(sent.order.drone_id, sent.run_id)]

    def beats(self, drone_id: str) -> list[Beat]:
        """Heartbeats heard so far."""
        return [
            Beat.model_validate_json(self._opened(drone_id, "beat", envelope))
            for drone, envelope in list(self._beats)
            if drone == drone_id
        ]

    def deltas(self, drone_id: str) -> list[Delta]:
        """Text in flight heard so far."""
        return [
            Delta.model_validate_json(self._opened(drone_id, "live", fields["e"]))
            for drone, fields in list(self._heard)
            if drone == drone_id and fields["t"] == "delta"
        ]

    def live_kinds(self, drone_id: str) -> list[str]:
        """What came by the live channel, by kind and in order."""
        return [fields["t"] for drone, fields in list(self._heard) if drone == drone_id]

    def restart_broker(self) -> None:
        """End the broker and start it again, and forget connections of our own that broke with it."""
        self.server.restart()
        self.broker.close()
        self.broker = Broker(self.server.url)

    def close(self) -> None:
        self._stop.set()
        self._listener.join(5)
        self._http.stop()
        self.broker.close()

    def _open(self, drone_id: str, fields: dict[str, str]) -> Event | Hello:
        if fields["t"] == "hello":
            return Hello.model_validate_json(self._opened(drone_id, "hello", fields["e"]))
        return Event.model_validate_json(self._opened(drone_id, "event", fields["e"]))

    def _opened(self, drone_id: str, direction: Any, envelope: str) -> str:
        return open_envelope(
            envelope,
            recipients={key_id(public_key(self.key)): self.key},
            sender=self._drone_keys[drone_id],
            expect=Binding(direction=direction, drone=drone_id),
        ).body

    def _seal(self, body: str, binding: Binding) -> str:
        recipient = self._drone_keys[binding.drone]
        return seal(body, binding, sender=self.key, recipient=recipient, issued_at=datetime.now(UTC))

    def _listen(self) -> None:
        while not self._stop.is_set():
            with suppress(Exception), self.server.redis.pubsub(ignore_subscribe_messages=True) as heard:
                heard.psubscribe(names.LIVE_PATTERN, names.BEAT_PATTERN)
                while not self._stop.is_set():
                    message = heard.get_message(timeout=0.2)
                    if message:
                        self._hear(message["channel"], message["data"])
            self._stop.wait(0.1)

    def _hear(self, channel: str, data: str) -> None:
        drone = names.drone_of(channel)
        if channel.endswith(":beat"):
            self._beats.append((drone, data))
        else:
            self._heard.append((drone, json.loads(data)))


@dataclass
class DroneUnderTest:
    """A registered drone and, while it runs, its processes."""

    fleet: StandIn
    home: DroneHome
    config: DroneConfig
    process: subprocess.Popen[bytes] | None = None
    errors: list[Path] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.config.drone_id

    def start_worker(self) -> None:
        """The worker process alone, without the parent that restarts it."""
        self._start([sys.executable, "-m", "drone.worker", "--home", str(self.home.path)])

    def start(self) -> None:
        """As `drone start`."""
        self._start([sys.executable, "-c", "import sys; from drone.cli.main import main; main()", "start"])

    def wait_consuming(self, *, seconds: float = 20) -> None:
        """Return once the drone takes messages."""
        wait_until(self.consumes, seconds=seconds)

    def wait_subscribed(self, *, seconds: float = 20) -> None:
        """Return once the drone's worker listens for remote control, which is where it looks whether to take more."""
        wait_until(lambda: any(int(client["psub"]) for client in self._clients()), seconds=seconds)

    def wait_warm(self, *, seconds: float = 40) -> None:
        wait_until(lambda: any(beat.warm for beat in self.fleet.beats(self.id)), seconds=seconds)

    def terminate(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)

    def wait(self, *, seconds: float = 20) -> int:
        """Wait for its own end; its exit code."""
        assert self.process is not None
        return self.process.wait(seconds)

    def stderr(self) -> str:
        return (self.home.path / "stderr.log").read_text()

    @contextmanager
    def copied_to(self, path: Path) -> Iterator[DroneUnderTest]:
        """The same drone on what looks like a second machine: its home was copied."""
        shutil.copytree(self.home.path, path, ignore=shutil.ignore_patterns("runs", "boot", "lock"))
        copy = DroneUnderTest(self.fleet, DroneHome(path), self.config)
        yield copy
        copy.close()

    @contextmanager
    def in_same_home(self) -> Iterator[DroneUnderTest]:
        """A second attempt to run the same drone."""
        second = DroneUnderTest(self.fleet, self.home, self.config)
        yield second
        second._let_go()

    def stop(self, *, seconds: float = 40) -> int:
        """End it in good order; its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        """End the started process at once, as a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def run_process(self, run_id: str) -> psutil.Process:
        """The process of a run."""
        meta = RunDirectory(self.home.run_dir(run_id)).meta()
        assert meta is not None
        assert meta.pid is not None
        return psutil.Process(meta.pid)

    def processes(self) -> list[psutil.Process]:
        """Every living process that has this drone's home in its command line or environment, the fork server's too."""
        return [process for process in psutil.process_iter() if _belongs(process, str(self.home.path))]

    def log(self) -> str:
        return self.home.log_file.read_text() if self.home.log_file.exists() else ""

    def _start(self, command: list[str]) -> None:
        environment = {**os.environ, "DRONE_HOME": str(self.home.path), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        # Without compiled modules the model library takes three times as long to load.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._let_go()
        errors = self.home.path / "stderr.log"
        with errors.open("ab") as stderr:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=stderr, env=environment
            )

    def _let_go(self) -> None:
        """End what was started before, if anything."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
            if self.process.stdin is not None:
                self.process.stdin.close()

    def consumes(self) -> bool:
        """Whether one of the drone's connections waits, blocked, for a message."""
        return any(client["cmd"] == "brpop" and "b" in client["flags"] for client in self._clients())

    def _clients(self) -> list[dict[str, str]]:
        return [client for client in self.fleet.broker.redis.client_list() if client["user"] == self.id]

    def close(self) -> None:
        self._let_go()
        for process in self.processes():
            with suppress(psutil.Error):
                process.kill()


@pytest.fixture
def stand_in(valkey: BrokerServer) -> Iterator[StandIn]:
    """A control plane's stand-in on a real Valkey."""
    made = StandIn(valkey)
    yield made
    made.close()


@pytest.fixture
def make_drone(stand_in: StandIn, tmp_path: Path) -> Iterator[Callable[..., DroneUnderTest]]:
    """Give a function that registers a drone; whatever it started ends with the test."""
    with ExitStack() as stack:

        def make(**settings: Any) -> DroneUnderTest:
            home = DroneHome(tmp_path / f"drone-{names.new_id()}")
            drone = DroneUnderTest(stand_in, home, stand_in.register(home, **settings))
            stack.callback(drone.close)
            return drone

        yield make


@pytest.fixture(scope="session")
def busy_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """One warm drone with two slots, shared by the tests that leave it as it was."""
    directory = tmp_path_factory.mktemp("workshop")
    with ExitStack() as stack:
        server = BrokerServer(directory / "valkey", program())
        server.start()
        stack.callback(server.close)
        fleet = StandIn(server)
        stack.callback(fleet.close)
        home = DroneHome(directory / "drone")
        drone = DroneUnderTest(fleet, home, fleet.register(home, concurrency=2))
        stack.callback(drone.close)
        drone.start_worker()
        drone.wait_warm()
        yield Workshop(fleet, drone, small_repository(directory / "repository.git"))


@contextmanager
def window(fleet: StandIn) -> Iterator[Any]:
    """Celery's own picture of workers and tasks, put together from their events: what Flower shows."""
    app = fleet.broker.celery
    state, over = app.events.State(), threading.Event()

    def look() -> None:
        with app.connection_for_read() as connection:
            receiver = app.events.Receiver(connection, handlers={"*": state.event})
            while not over.is_set():
                with suppress(TimeoutError):
                    receiver.capture(limit=None, timeout=0.5, wakeup=False)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    wait_until(lambda: state.workers, seconds=15)
    yield state
    over.set()
    thread.join(5)


class KeptLink:
    """A run's link (`drone.run_link.Link`) that keeps what is said."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def recorded(self) -> None:
        self.said.append(("recorded", ""))

    def delta(self, kind: DeltaKind, text: str, after_seq: int = 0) -> None:
        self.said.append((kind, text))

    def doing(self, text: str) -> None:
        self.said.append(("doing", text))


@dataclass
class Workshop:
    """A fleet with one drone at work, and a repository."""

    fleet: StandIn
    drone: DroneUnderTest
    repository: Path

    def order(self, model_url: str, **changes: Any) -> WorkOrder:
        return order_for(self.drone.id, self.repository, model_url, **changes)

    def submit(self, model_url: str, **changes: Any) -> Dispatch:
        return self.fleet.dispatch(self.order(model_url, **changes))

    def printed(self, sent: Dispatch, text: str) -> bool:
        """Whether a command of the run printed `text` by now."""
        return any(
            delta.run_id == sent.run_id and delta.kind == "output" and text in delta.text
            for delta in self.fleet.deltas(self.drone.id)
        )

    def run_in_beat(self, sent: Dispatch, *, ended: bool | None = None) -> bool:
        """Whether the last beat names the run, as ended or not where that is asked."""
        beats = self.fleet.beats(self.drone.id)
        named = [run for run in beats[-1].runs if run.run_id == sent.run_id] if beats else []
        return bool(named) and (ended is None or named[0].ended == ended)


def order_for(drone_id: str, repository: Path, model_url: str, **changes: Any) -> WorkOrder:
    """An order for the scripted model on a repository of the test."""
    order = WorkOrder(
        order_id=names.new_id(),
        run_id=names.new_id(),
        generation=1,
        drone_id=drone_id,
        project=OrderProject(id=names.new_id(), name="test", slug="test", git_url=f"file://{repository}"),
        session=OrderSession(id=names.new_id(), name="test"),
        provider=OrderProvider(name="scripted", model="openai/scripted", api_base=model_url, api_key="sk-order-secret"),
        limits=Limits(max_run_seconds=120, base_delay=0.1),
        prompt="Write a file",
        submitted_at=datetime.now(UTC),
    )
    return order.model_copy(update=changes)


def shell(command: str) -> dict[str, Any]:
    """A scripted reply that runs one command."""
    return {"text": "I run a command.", "tool_calls": [{"name": "shell", "arguments": {"command": command}}]}


def small_repository(path: Path) -> Path:
    """A bare repository with one commit."""
    work = path.with_suffix(".work")
    work.mkdir(parents=True)
    git = [str(shutil.which("git")), "-C", str(work), "-c", "user.name=t", "-c", "user.email=t@localhost"]
    (work / "README").write_text("hello\n")
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *arguments], check=True)
    subprocess.run([*git, "clone", "-q", "--bare", ".", str(path)], check=True)
    return path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A bare repository with one commit on main."""
    return small_repository(tmp_path / "repository.git")


def _belongs(process: psutil.Process, home: str) -> bool:
    with suppress(psutil.Error):
        if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
            return False
        return process.environ().get("DRONE_HOME") == home
    return False


@dataclass
class Reports:
    """Journals of a drone without runs, and the reporter that sends them."""

    fleet: StandIn
    directory: Path

    def __post_init__(self) -> None:
        self.home = DroneHome(self.directory / "home")
        self.config = self.fleet.register(self.home)

    @contextmanager
    def reporter(self) -> Iterator[Reporter]:
        clock = SystemClock()
        redis = connect(self.home.credentials().broker_url)
        sealer = Sealer(self.config.drone_id, self.home.private_key(), self.config.control_plane_key, clock)
        reporter = Reporter(Stream(redis, sealer), clock)
        reporter.start()
        yield reporter
        reporter.stop()
        redis.close()

    def run(self, reporter: Reporter) -> RunDirectory:
        """A run with an empty journal, that is followed."""
        made = RunDirectory(self.home.run_dir(names.new_id()))
        made.create(Meta("o" * 12, 1, "b" * 12, datetime.now(UTC).isoformat()))
        reporter.follow(made)
        return made

    def texts(self, run: RunDirectory) -> list[str]:
        """What arrived of a run, each event once."""
        return [_text(event) for event in self.fleet.events(self.config.drone_id, run.run_id)]

    def raw_texts(self, run: RunDirectory) -> list[str]:
        """What arrived of a run, as often and in the order in which it came."""
        stream = self.fleet.stream(self.config.drone_id)
        return [_text(each) for each in stream if isinstance(each, Event) and each.run_id == run.run_id]

    def live_kinds(self) -> list[str]:
        return self.fleet.live_kinds(self.config.drone_id)


def record(run: RunDirectory, text: str) -> None:
    """Write an event into a run's journal, as its process does."""
    identity = run.identity()
    assert identity is not None
    with journal.opened(run.journal, identity, SystemClock()) as writer:
        writer.append(CommentStep(text=text))


def _text(event: Event) -> str:
    return event.body.text if isinstance(event.body, CommentStep) else ""


class RaisingModel:
    """A model (`drone.agent.protocols.Model`) that raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def answer(self, *_: Any) -> Answer:
        raise self._error


class Bench:
    """One run in this very process, with a journal and a store of its own."""

    def __init__(self, directory: Path, repository: Path) -> None:
        self.directory = directory
        self.order = order_for(names.new_id(), repository, "")
        self.controls = RunControls(SystemClock(), SystemClock().boottime() + 3600)
        self.refuse_url: Exception | None = None
        self.refuse_blobs: Exception | None = None
        self.blobs: dict[str, bytes] = {}

    def run(self, model_url: str) -> RunEnded:
        """Run the order with the scripted model at this address."""
        provider = self.order.provider.model_copy(update={"api_base": model_url})
        self.order = self.order.model_copy(update={"provider": provider})
        return self._run(partial(litellm_model, clock=SystemClock(), policy=Policy(), environ={}))

    def run_with_model(self, error: Exception) -> RunEnded:
        """Run the order with a model that raises `error`."""
        return self._run(lambda *_: RaisingModel(error))

    @property
    def events(self) -> list[Event]:
        return [line.event for line in journal.walk(self.directory / "journal")]

    def last(self, kind: type[Any]) -> Any:
        return next(event.body for event in reversed(self.events) if isinstance(event.body, kind))

    def put(self, content: bytes) -> str:
        if self.refuse_blobs:
            raise self.refuse_blobs
        self.blobs[digest(content)] = content
        return digest(content)

    def get(self, run_id: str, sha256: str) -> bytes:
        return self.blobs[sha256]

    def _run(self, make_model: MakeModel) -> RunEnded:
        clock, sandbox = SystemClock(), choose("none")
        config = self.directory / "gitconfig"
        copy_owner_config(config)
        environment = git_environment(config, allow_file=True)
        identity = RunIdentity(self.order.run_id, self.order.order_id, 1)
        with journal.opened(self.directory / "journal", identity, clock) as writer:
            context = RunContext(
                boot_id="b" * 12,
                recorder=JournalRecorder(writer, KeptLink(), Redactor()),
                controls=self.controls,
                clock=clock,
                sandbox=sandbox,
                workspaces=lambda: Workspaces(self.directory / "workspace", environment, sandbox),
                store=self,
                pushing=None,
                log_dir=self.directory / "logs",
                make_model=make_model,
                check_url=self._check_url,
                end_processes=lambda: Receipt(at=clock.now()),
            )
            return execute(self.order, context)

    def _check_url(self, _: str) -> None:
        if self.refuse_url:
            raise self.refuse_url
