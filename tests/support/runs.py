"""Single runs for tests: an order, and one run in the test's own process."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from drone.agent.protocols import Model
from drone.agent.values import DeltaKind, WaitsFor
from drone.installation.policy import Policy
from drone.processes.receipt import Ended
from drone.reporting import journal
from drone.reporting.journal import RunIdentity
from drone.runs.context import CheckpointPart, CheckpointStore, MakeModel, RunContext
from drone.runs.controls import RunControls
from drone.runs.delivery import Pushing
from drone.runs.provider_keys import litellm_model
from drone.runs.recorder import JournalRecorder
from drone.runs.run import execute
from drone.sandbox import choose
from drone.workspace import Workspaces, copy_owner_config, git_environment
from shared import names
from shared.blobs import digest
from shared.clock import SystemClock
from shared.control import Say
from shared.events import CheckpointStep, Event, Prepared, RunEnded
from shared.redaction import Redactor
from shared.transcripts import messages_of
from shared.work_order import Limits, OrderProject, OrderProvider, OrderSession, Resumed, WorkOrder
from tests.support.repositories import git, work_tree


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
    work = work_tree(path.with_suffix(".work"), {"README": "hello\n"})
    git(work, "clone", "-q", "--bare", ".", str(path))
    return path


def said(text: str, **how: bool) -> Say:
    """A user message as a run receives it."""
    return Say(run_id="run000000000", text=text, **how)


class KeptLink:
    """A run's link (`drone.runs.pipe.Link`) that keeps all messages, and lets a test act on `doing`."""

    def __init__(self, on_doing: Callable[[str], object] = lambda _: None) -> None:
        self.said: list[tuple[str, str]] = []
        self.offsets: list[int | None] = []
        """Of the live text."""
        self.on_doing = on_doing

    def recorded(self) -> None:
        self.said.append(("recorded", ""))

    def delta(self, kind: DeltaKind, text: str, after_seq: int = 0, offset: int | None = None) -> None:
        self.said.append((kind, text))
        self.offsets.append(offset)

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        self.said.append(("doing", text))
        self.on_doing(text)

    def progress(self) -> None:
        self.said.append(("progress", ""))


class Bench:
    """One run in this process, with its own journal and store."""

    def __init__(self, directory: Path, repository: Path) -> None:
        self.directory = directory
        self.order = order_for(names.new_id(), repository, "")
        self.controls = RunControls(SystemClock(), SystemClock().boottime() + 3600)
        self.refuse_url: Exception | None = None
        self.refuse_blobs: Exception | None = None
        self.while_storing: Callable[[], None] = lambda: None
        self.pushing: Pushing | None = None
        self.policy = Policy()
        self.sandbox = choose("none", os.environ)
        self.on_doing: Callable[[str], object] = lambda _: None
        self.link = KeptLink(self._does)
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
        self.change(provider=self.order.provider.model_copy(update={"api_base": model_url}))
        return self._run(partial(litellm_model, clock=SystemClock(), policy=Policy(), environ={}))

    def run_trusting(self, model_url: str, variable: str) -> RunEnded:
        """Run the order on a drone whose owner allows this variable as the key of the endpoint."""
        address = model_url.removesuffix("/v1")
        policy = Policy(keys={variable: (address,)})
        return self._run(partial(litellm_model, clock=SystemClock(), policy=policy, environ=os.environ))

    def run_with_model(self, model: Model) -> RunEnded:
        """Run the order with this model, without an endpoint."""
        return self._run(lambda *_: model)

    def change(self, **fields: Any) -> None:
        """Change fields of the order."""
        self.order = self.order.model_copy(update=fields)

    def change_project(self, **fields: Any) -> None:
        self.change(project=self.order.project.model_copy(update=fields))

    def limit(self, **limits: Any) -> None:
        self.change(limits=self.order.limits.model_copy(update=limits))

    @property
    def events(self) -> list[Event]:
        return [line.event for line in journal.walk(self.directory / "journal")]

    def of(self, *kinds: type[Any]) -> list[Any]:
        """The bodies of these kinds that were recorded, in order."""
        return [event.body for event in self.events if isinstance(event.body, kinds)]

    def last(self, kind: type[Any]) -> Any:
        return self.of(kind)[-1]

    def put(self, content: bytes) -> str:
        self.while_storing()
        if self.refuse_blobs:
            raise self.refuse_blobs
        self.blobs[digest(content)] = content
        return digest(content)

    def get(self, run_id: str, sha256: str) -> bytes:
        return self.blobs[sha256]

    def _run(self, make_model: MakeModel) -> RunEnded:
        clock, sandbox = SystemClock(), self.sandbox
        config = self.directory / "gitconfig"
        copy_owner_config(config, os.environ)
        environment = git_environment(config, os.environ, allow_file=True)
        identity = RunIdentity(self.order.run_id, self.order.order_id, 1)
        with journal.opened(self.directory / "journal", identity, clock) as writer:
            context = RunContext(
                boot_id="b" * 12,
                recorder=JournalRecorder(writer, self.link, self.redactor),
                controls=self.controls,
                clock=clock,
                sandbox=sandbox,
                workspaces=lambda: Workspaces(self.workspaces, environment, sandbox),
                store=self,
                pushing=self.pushing,
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
        self.on_doing(text)

    def _check_url(self, _: str) -> None:
        if self.refuse_url:
            raise self.refuse_url


class KeptCheckpoints:
    """Implements `drone.runs.context.CheckpointStore`: bundles are kept in memory under their digests."""

    def __init__(self) -> None:
        self.bundles: dict[str, bytes] = {}
        self.patches: dict[str, bytes] = {}

    def has_secret(self, content: bytes) -> bool:
        return b"hunter2-secret" in content

    def add_checkpoint(self, content: bytes, part: CheckpointPart = "bundle") -> str:
        (self.bundles if part == "bundle" else self.patches)[digest(content)] = content
        return digest(content)

    def settle(self, seconds: float) -> None:
        """Everything is stored immediately."""


def going_on(first: Bench, second: Bench, seq: int, **more: Any) -> None:
    """Let the second bench run the first one's order from its checkpoint `seq`, as the control plane would have it."""
    at = next(event for event in first.events if event.seq == seq)
    assert isinstance(at.body, CheckpointStep)
    assert isinstance(first.checkpoint_store, KeptCheckpoints)
    known = {
        "run_id": first.order.run_id,
        "seq": seq,
        "base": first.last(Prepared).base_commit,
        "commit": at.body.commit,
        "head": at.body.head,
        "bundle": at.body.bundle_sha256,
        "bundle_run": first.order.run_id,
        "left_out": at.body.left_out,
        "kept_on_disk": at.body.kept_on_disk,
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
    second.blobs.update(first.checkpoint_store.bundles)
