"""What a sandbox guarantees: one command to its end, bounded in time and memory, with nothing left running."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, Self

from drone.processes.receipt import Ended
from drone.sandbox.network.gateway import Gateway

OnOutput = Callable[[str], None]
Check = Callable[[], None]
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class CommandSpec:
    """One command: what is run, where, and who follows it.

    `check` and `on_output` are called from the caller's own thread, many times a second; an exception from them ends
    the command (TERM, 10 s later KILL) and propagates unchanged, with the output so far in `Sandbox.tally.broken_off`.
    """

    command: str | Sequence[str]
    """A shell line, or an argument list."""
    _: KW_ONLY
    workspace: Path
    """Where it runs, and what it may change."""
    timeout: float
    """Seconds; 0 for none."""
    log: Path | None = None
    """The file for the whole output, if the result cannot hold it."""
    on_output: OnOutput | None = None
    check: Check | None = None
    read_only: Sequence[Path] = ()
    """More paths that it can read."""


@dataclass(frozen=True)
class Asked:
    """What is to start, where, and with which environment."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: Path


@dataclass(frozen=True)
class CommandLine(Asked):
    """A command ready to start. Its first process is the holder of all its processes."""

    mark: str
    held: bool = True
    """Whether the holder ends what the command leaves behind; if not, only the mark finds it."""


@dataclass(frozen=True)
class CommandResult:
    """How a command ended and what it printed."""

    return_code: int | None
    """None if the command was ended by us (a time limit, too much memory or disk, `check` raised) or lost."""
    output: str
    """stdout and stderr in order of arrival; over 10,000 characters the head and the tail, with the number elided."""
    output_bytes: int
    """Of the whole output."""
    timed_out: bool = False
    found: int = 0
    """Processes that were alive when the command was ended by force."""
    ended: int = 0
    survivors: int = 0
    refused: tuple[str, ...] = ()
    """Connections that the network policy refused meanwhile, each as a sentence."""
    over: str = ""
    """Why the command was ended, if it used too much of the machine."""
    lost: str = ""
    """Why the sandbox itself ended while the command ran."""
    reached: tuple[str, ...] = ()
    """The owner's limits that the kernel enforced meanwhile, each as a sentence."""
    log: Path | None = None
    """The whole output (at most 50 MB, head and tail), if `output` is not all of it."""
    no_log: str = ""
    """Why there is none then: the disk's error."""

    @property
    def how_it_ended(self) -> str:
        """How a failed command ended, as the end of a sentence about it."""
        if self.over:
            return f"was ended by a limit of the drone: {self.over}"
        if self.lost:
            return f"was ended: {self.lost}"
        return "timed out" if self.timed_out else f"failed with exit code {self.return_code}"


class Tally:
    """Counts processes ended by force, for the receipt of a cancel; shared by all copies of one sandbox."""

    def __init__(self) -> None:
        self.counts = Ended()
        self._lock = threading.Lock()
        self.asked_at: float | None = None
        """When the interrupted command ended its whole run, monotonic: from then on all of the run is to end."""
        self.broken_off: CommandResult | None = None
        """The last command that `check` or `on_output` interrupted, with its output so far."""

    def add(self, counts: Ended) -> None:
        with self._lock:  # of several commands at the same time
            self.counts += counts


class Sandbox(Protocol):
    """A place to run untrusted commands."""

    @property
    def kind(self) -> str:
        """`bwrap`, `docker` or `none`; shown on the page Fleet."""
        ...

    @property
    def warning(self) -> str:
        """What this sandbox does not protect from; empty if it does protect."""
        ...

    @property
    def network_rule(self) -> str:
        """What commands can reach, in a sentence for the model."""
        ...

    @property
    def hidden(self) -> tuple[Path, ...]:
        """Private places among the system's directories, which commands see empty."""
        ...

    @property
    def gateway(self) -> Gateway:
        """Connects a tool of the run itself, which is not a command, where the owner's policy allows it."""
        ...

    @property
    def user(self) -> int | None:
        """The account that must own the workspace, on a drone that root runs; None on others."""
        ...

    @property
    def python(self) -> str:
        """A Python of at least version 3.11, for scripts of our own that use only its library."""
        ...

    @property
    def tally(self) -> Tally: ...

    def for_session(self, *, scratch: Path, read_only: Sequence[Path] = ()) -> Self:
        """Return the same sandbox with a home and a /tmp that last for a session, and more readable paths."""
        ...

    def run(self, spec: CommandSpec) -> CommandResult:
        """Run a command with stdin closed, until it and its children have ended."""
        ...

    def line(
        self, command: str | Sequence[str], *, workspace: Path, variables: Mapping[str, str] = NO_VARIABLES
    ) -> CommandLine:
        """Return the line that starts `command` as `run` would, for a caller that communicates with it while it runs.

        `variables` are added to the clean environment. The caller starts the line in a new session, and ends it and
        all its processes with `end_command(pid, line.mark, …)`.

        Raises ValueError if the sandbox needs a place for home and /tmp and has none (`for_session`).
        """
        ...
