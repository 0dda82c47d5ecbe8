"""Single runs for tests: an order, one run in the test's own process, or journals without a process."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from redis import Redis

from drone.agent.values import DeltaKind, ModelResponse, WaitsFor
from drone.installation.home import DroneHome
from drone.installation.policy import Policy
from drone.processes.receipt import Ended
from drone.reporting import journal
from drone.reporting.journal import JournalLine, RunIdentity
from drone.reporting.reporter import Reporter
from drone.reporting.stream import Stream
from drone.reporting.uplink import Sealer, connect
from drone.runs.context import CheckpointStore, MakeModel, RunContext
from drone.runs.controls import RunControls
from drone.runs.directory import Meta, RunDirectory
from drone.runs.provider_keys import litellm_model
from drone.runs.recorder import JournalRecorder
from drone.runs.run import execute
from drone.sandbox import choose
from drone.workspace import Workspaces, copy_owner_config, git_environment
from shared import names
from shared.blobs import digest
from shared.clock import SystemClock
from shared.control import Say
from shared.events import CheckpointStep, CommentStep, Delta, Event, Prepared, RunEnded
from shared.redaction import Redactor
from shared.transcripts import messages_of
from shared.work_order import Limits, OrderProject, OrderProvider, OrderSession, Resumed, WorkOrder
from tests.support.control_stand_in import ControlPlaneStandIn


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


def said(text: str, **how: bool) -> Say:
    """A user message as a run receives it."""
    return Say(run_id="run000000000", text=text, **how)


class KeptLink:
    """A run's link (`drone.runs.pipe.Link`) that keeps all messages, and lets a test act on `doing`."""

    def __init__(self, on_doing: Callable[[str], None] = lambda _: None) -> None:
        self.said: list[tuple[str, str]] = []
        self.on_doing = on_doing

    def recorded(self) -> None:
        self.said.append(("recorded", ""))

    def delta(self, kind: DeltaKind, text: str, after_seq: int = 0, offset: int | None = None) -> None:
        self.said.append((kind, text))

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        self.said.append(("doing", text))
        self.on_doing(text)

    def progress(self) -> None:
        self.said.append(("progress", ""))


class RaisingModel:
    """A model (`drone.agent.protocols.Model`) that raises."""

    window = 131_072

    def __init__(self, error: Exception) -> None:
        self._error = error

    def answer(self, *_: Any) -> ModelResponse:
        raise self._error


class Bench:
    """One run in this process, with its own journal and store."""

    def __init__(self, directory: Path, repository: Path) -> None:
        self.directory = directory
        self.order = order_for(names.new_id(), repository, "")
        self.controls = RunControls(SystemClock(), SystemClock().boottime() + 3600)
        self.refuse_url: Exception | None = None
        self.refuse_blobs: Exception | None = None
        self.while_storing: Callable[[], None] = lambda: None
        self.policy = Policy()
        self.while_verifying: Callable[[], None] = lambda: None
        self.on_doing: Callable[[str], object] = lambda _: None
        self.blobs: dict[str, bytes] = {}
        self.checkpoint_store: CheckpointStore | None = None
        self.secrets: Redactor | None = None
        self.keeps_logs = False
        """Whether logs are stored as blobs."""
        self.redactor = Redactor()
        """Of the recorder."""
        self.workspaces = directory / "workspace"

    def run(self, model_url: str) -> RunEnded:
        """Run the order with the scripted model at this address."""
        provider = self.order.provider.model_copy(update={"api_base": model_url})
        self.order = self.order.model_copy(update={"provider": provider})
        return self._run(partial(litellm_model, clock=SystemClock(), policy=Policy(), environ={}))

    def run_trusting(self, model_url: str, variable: str) -> RunEnded:
        """Run the order on a drone whose owner allows this variable as the key of the endpoint."""
        address = model_url.removesuffix("/v1")
        policy = Policy(keys={variable: (address,)})
        return self._run(partial(litellm_model, clock=SystemClock(), policy=policy, environ=os.environ))

    def run_with_model(self, error: Exception) -> RunEnded:
        """Run the order with a model that raises `error`."""
        return self._run(lambda *_: RaisingModel(error))

    @property
    def events(self) -> list[Event]:
        return [line.event for line in journal.walk(self.directory / "journal")]

    def last(self, kind: type[Any]) -> Any:
        return next(event.body for event in reversed(self.events) if isinstance(event.body, kind))

    def put(self, content: bytes) -> str:
        self.while_storing()
        if self.refuse_blobs:
            raise self.refuse_blobs
        self.blobs[digest(content)] = content
        return digest(content)

    def get(self, run_id: str, sha256: str) -> bytes:
        return self.blobs[sha256]

    def _run(self, make_model: MakeModel) -> RunEnded:
        clock, sandbox = SystemClock(), choose("none", os.environ)
        config = self.directory / "gitconfig"
        copy_owner_config(config, os.environ)
        environment = git_environment(config, os.environ, allow_file=True)
        identity = RunIdentity(self.order.run_id, self.order.order_id, 1)
        with journal.opened(self.directory / "journal", identity, clock) as writer:
            context = RunContext(
                boot_id="b" * 12,
                recorder=JournalRecorder(writer, KeptLink(self._does), self.redactor),
                controls=self.controls,
                clock=clock,
                sandbox=sandbox,
                workspaces=lambda: Workspaces(self.workspaces, environment, sandbox),
                store=self,
                pushing=None,
                log_dir=self.directory / "logs",
                make_model=make_model,
                check_url=self._check_url,
                end_processes=Ended,
                home=self.directory / "home",
                environ=os.environ,
                policy=self.policy,
                checkpoint_store=self.checkpoint_store,
                secrets=self.secrets,
                store_log=(lambda path: self.put(path.read_bytes())) if self.keeps_logs else None,
            )
            return execute(self.order, context)

    def _does(self, text: str) -> None:
        if text.startswith("verifying"):
            act, self.while_verifying = self.while_verifying, lambda: None
            act()
        self.on_doing(text)

    def _check_url(self, _: str) -> None:
        if self.refuse_url:
            raise self.refuse_url


class KeptCheckpoints:
    """Implements `drone.runs.context.CheckpointStore`: bundles are kept in memory under their digests."""

    def __init__(self, secret: bytes = b"hunter2-secret") -> None:
        self.secret = secret
        self.bundles: dict[str, bytes] = {}

    def has_secret(self, content: bytes) -> bool:
        return self.secret in content

    def add_checkpoint(self, bundle: bytes) -> str:
        self.bundles[digest(bundle)] = bundle
        return digest(bundle)

    def settle(self, seconds: float) -> None:
        """Everything is stored immediately."""


def bundles(bench: Bench) -> dict[str, bytes]:
    assert isinstance(bench.checkpoint_store, KeptCheckpoints)
    return bench.checkpoint_store.bundles


def going_on(first: Bench, second: Bench, seq: int, **more: Any) -> None:
    """Let the second bench run the first one's order from its checkpoint `seq`, as the control plane would have it."""
    at = next(event for event in first.events if event.seq == seq)
    assert isinstance(at.body, CheckpointStep)
    known = {
        "run_id": first.order.run_id,
        "seq": seq,
        "base": first.last(Prepared).base_commit,
        "commit": at.body.commit,
        "head": at.body.head,
        "bundle": at.body.bundle_sha256,
        "bundle_run": first.order.run_id,
        "left_out": at.body.left_out,
        "spent": at.body.spent,
        "cut_off": True,
        "why": "the drone restarted",
    }
    path = [event.body for event in first.events if event.seq <= seq]
    changes = {
        "run_id": second.order.run_id,
        "generation": 2,
        "context": tuple(messages_of(path)),
        "resume": True,
        "resumed": Resumed.model_validate({**known, **more}),
    }
    second.order = first.order.model_copy(update=changes)
    second.blobs.update(bundles(first))


class InterruptedStream(Stream):
    """The real stream, with an action between the arrival of a batch and the sender's learning of it."""

    def __init__(self, redis: Redis, sealer: Sealer) -> None:
        super().__init__(redis, sealer)
        object.__setattr__(self, "waiting", [])

    waiting: list[Callable[[], object]]

    def send(self, deltas: Sequence[Delta], lines: Sequence[JournalLine]) -> None:
        super().send(deltas, lines)
        if lines and self.waiting:
            self.waiting.pop()()


@dataclass
class Reports:
    """Journals of a drone without runs, and the reporter that sends them."""

    fleet: ControlPlaneStandIn
    directory: Path

    def __post_init__(self) -> None:
        self.home = DroneHome(self.directory / "home")
        self.config = self.fleet.register(self.home)

    @contextmanager
    def reporter(self, while_sending: Callable[[Reporter], None] | None = None) -> Iterator[Reporter]:
        """A reporter; `while_sending` is called once, when a batch has arrived but is not confirmed yet."""
        clock = SystemClock()
        redis = connect(self.home.credentials().broker_url)
        sealer = Sealer(self.config.drone_id, self.home.private_key(), self.config.control_plane_key, clock)
        stream = InterruptedStream(redis, sealer)
        reporter = Reporter(stream, clock)
        if while_sending is not None:
            stream.waiting.append(lambda: while_sending(reporter))
        yield reporter
        reporter.stop()
        redis.close()

    def run(self, reporter: Reporter, texts: str = "") -> RunDirectory:
        """A run that the reporter follows; its journal already has `texts`, one event per letter."""
        made = RunDirectory(self.home.run_dir(names.new_id()))
        made.create(Meta("o" * 12, 1, "b" * 12, datetime.now(UTC).isoformat()))
        for text in texts:
            record(made, text)
        reporter.follow(made)
        return made

    def texts(self, run: RunDirectory) -> list[str]:
        """The texts that arrived from a run, each event once."""
        return [_text(event) for event in self.fleet.events(self.config.drone_id, run.run_id)]

    def raw_texts(self, run: RunDirectory) -> list[str]:
        """The texts that arrived from a run, in order of arrival, with duplicates."""
        stream = self.fleet.stream(self.config.drone_id)
        return [_text(each) for each in stream if isinstance(each, Event) and each.run_id == run.run_id]

    def live_kinds(self) -> list[str]:
        return self.fleet.live_kinds(self.config.drone_id)


def record(run: RunDirectory, text: str) -> None:
    """Append an event to a run's journal, as the run's process does."""
    identity = run.identity()
    assert identity is not None
    with journal.opened(run.journal, identity, SystemClock()) as writer:
        writer.append(CommentStep(text=text))


def _text(event: Event) -> str:
    return event.body.text if isinstance(event.body, CommentStep) else ""
