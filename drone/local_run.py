"""`drone run`: the loop on a copy of a repository, without a control plane.

The same run as on a drone (`drone.run.execute`), with other surroundings: the journal is in a throw-away directory and
is shown as it grows, blobs stay in memory, and nothing is pushed.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from drone import journal, policy
from drone.journal import RunIdentity
from drone.local_document import LocalResult
from drone.local_progress import TerminalLink
from drone.provider_keys import keys_of, litellm_model
from drone.recorder import JournalRecorder
from drone.run import RunContext, execute
from drone.run_controls import Wish
from drone.sandbox import Sandbox, choose
from drone.shutdown import end_below
from drone.workspace import Workspaces, copy_owner_config, git_environment, local_source
from shared.blobs import digest
from shared.clock import SystemClock
from shared.errors import Invalid, NotFound, Precondition, Preempted
from shared.events import Delivered, Event
from shared.names import new_id
from shared.outcome import ExitStatus, Outcome
from shared.redaction import Redactor
from shared.terminal import say
from shared.work_order import Limits, Mode, OrderProject, OrderProvider, OrderSession, WorkOrder

HERE = "local"
"""Stands for the drone, the boot and the names that only a fleet gives."""


@dataclass(frozen=True)
class LocalWishes:
    """What was asked for on the command line."""

    prompt: str
    repo: str
    model: str
    api_base: str | None = None
    mode: Mode = "build"
    max_iterations: int = 50
    cost_limit: float = 3.0
    max_run_seconds: float = 1800
    api_key_variable: str | None = None
    sandbox: str = "auto"


class LocalControls:
    """Implements `drone.run.RunWishes` for one person with a keyboard: Ctrl-C once ends the run, with its work kept."""

    def __init__(self) -> None:
        self._wish: Wish | None = None

    def interrupt(self) -> None:
        """Ask the run to end. Takes no lock, as it is called from a signal handler."""
        self._wish = Wish("cancel", "interrupted with Ctrl-C")

    @property
    def wish(self) -> Wish | None:
        return self._wish

    def check(self) -> None:
        """Return if the run may go on. Raises Preempted."""
        wish = self._wish
        if wish is not None:
            raise Preempted(outcome=Outcome(ExitStatus.CANCELED, wish.reason))

    def check_stale(self) -> None:
        """Nobody else can hold this order."""

    def steering(self) -> list[str]:
        return []

    def follow_ups(self) -> list[str]:
        return []


class MemoryStore:
    """Implements `drone.blobs.Store` for a run whose blobs nobody fetches later."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    def put(self, content: bytes) -> str:
        name = digest(content)
        self._blobs[name] = content
        return name

    def get(self, run_id: str, sha256: str) -> bytes:
        try:
            return self._blobs[sha256]
        except KeyError:
            raise NotFound(f"run {run_id} has no blob {sha256}", code="E-BLOB-404") from None


def run_here(wishes: LocalWishes, environ: Mapping[str, str] | None = None) -> LocalResult:
    """Run the loop to its end and return what came of it.

    Raises Invalid, NotFound or Precondition for what is wrong before it begins; what goes wrong later is in the result.
    """
    env = os.environ if environ is None else environ
    order = _order(wishes, env)
    sandbox = choose(wishes.sandbox)
    if sandbox.warning:
        say(f"WARNING: {sandbox.warning}")
    controls = LocalControls()
    directory = Path(tempfile.mkdtemp(prefix="drone-run-"))
    try:
        with _interrupts_go_to(controls):
            result = _run(order, directory, sandbox, controls)
    except KeyboardInterrupt:
        say(f"\nended at once; the unfinished copy is in {directory}")
        raise
    _clean_up(result, directory)
    return result


def _run(order: WorkOrder, directory: Path, sandbox: Sandbox, controls: LocalControls) -> LocalResult:
    clock, store = SystemClock(), MemoryStore()
    git_config = directory / "gitconfig"
    copy_owner_config(git_config)
    journal_file = directory / journal.FILE
    redactor = Redactor([*keys_of(order.provider, {}), *_passwords(order.project.git_url)])
    with journal.opened(journal_file, RunIdentity(order.run_id, order.order_id, order.generation), clock) as writer:
        execute(
            order,
            RunContext(
                boot_id=HERE,
                recorder=JournalRecorder(writer, TerminalLink(journal_file), redactor),
                controls=controls,
                clock=clock,
                sandbox=sandbox,
                workspaces=lambda: Workspaces(
                    directory / "workspace", git_environment(git_config, allow_file=True), sandbox
                ),
                store=store,
                pushing=None,
                log_dir=directory / "logs",
                make_model=partial(litellm_model, clock=clock, policy=policy.Policy(), environ={}),
                check_url=lambda url: policy.Policy().check_git_url(url, None),
                end_processes=lambda: end_below(clock),
            ),
        )
    events = tuple(line.event for line in journal.walk(journal_file))
    return LocalResult(order, events, _patch(events, store), interrupted=controls.wish is not None)


def _patch(events: tuple[Event, ...], store: MemoryStore) -> bytes | None:
    delivered = next((each.body for each in events if isinstance(each.body, Delivered)), None)
    if delivered is None:
        return None
    if delivered.patch_sha256 is None:
        return b""
    return store.get(HERE, delivered.patch_sha256)


def _clean_up(result: LocalResult, directory: Path) -> None:
    """Remove the copy, but not where it is the only place that the work is in."""
    if result.patch is None and (directory / "workspace").exists():
        say(f"the work could not be turned into a patch; it is kept in {directory}")
    else:
        shutil.rmtree(directory)


@contextmanager
def _interrupts_go_to(controls: LocalControls) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) asks the run to end, so that its work is kept; the second ends this process."""

    def first(number: int, _frame: Any) -> None:
        signal.signal(number, signal.default_int_handler)
        say("\nending the run and keeping its work; once more ends it at once")
        controls.interrupt()

    before = {number: signal.signal(number, first) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _order(wishes: LocalWishes, env: Mapping[str, str]) -> WorkOrder:
    if not wishes.prompt.strip():
        raise Invalid("the prompt is empty", code="E-PROMPT-EMPTY", next='drone run "Make the tests pass" --repo .')
    if not wishes.model.strip():
        raise Invalid("the model has no name", code="E-MODEL-NAME", next="--model openai/gpt-x")
    return WorkOrder(
        order_id=new_id(),
        run_id=new_id(),
        generation=1,
        drone_id=HERE,
        project=OrderProject(id=HERE, name=HERE, slug=HERE, git_url=_git_url(wishes.repo)),
        session=OrderSession(id=new_id(), name=HERE, mode=wishes.mode),
        provider=OrderProvider(
            name=HERE, model=wishes.model, api_base=wishes.api_base, api_key=_key(wishes.api_key_variable, env)
        ),
        limits=Limits(
            max_iterations=wishes.max_iterations,
            cost_limit=wishes.cost_limit,
            max_run_seconds=wishes.max_run_seconds,
        ),
        prompt=wishes.prompt,
        submitted_at=SystemClock().now(),
    )


def _key(variable: str | None, env: Mapping[str, str]) -> str | None:
    if variable is None:
        return None
    key = env.get(variable, "").strip()
    if not key:
        raise Precondition(f"{variable} holds no key", code="E-KEY-VARIABLE", next=f"export {variable}=...")
    return key


def _git_url(repo: str) -> str:
    """What git is to fetch from. Raises NotFound where there is no repository, Forbidden for a helper program."""
    source = local_source(repo)
    policy.Policy().check_git_url(source.url, None)
    if source.notice:
        say(f"note: {source.notice}")
    return source.url


def _passwords(url: str) -> list[str]:
    password = urlsplit(url).password if "://" in url else None
    return [password] if password else []
