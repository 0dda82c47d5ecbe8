"""What a sandbox promises: one command to its end, bounded in time and memory, with nothing left running."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, Self

from drone.processes.receipt import Ended

OnOutput = Callable[[str], None]
Check = Callable[[], None]
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class CommandLine:
    """A command ready to start. Its first process is the holder of all that comes of it."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    mark: str


@dataclass(frozen=True)
class CommandResult:
    """How a command ended and what it printed."""

    return_code: int | None
    """None when the command was ended by us: a time limit, or `check` raised."""
    output: str
    """stdout and stderr in order of arrival; over 10,000 characters the head and the tail, with the number elided."""
    output_bytes: int
    """Of the whole output."""
    timed_out: bool = False
    found: int = 0
    """Processes that were there when the command was ended by force."""
    ended: int = 0
    survivors: int = 0
    log: Path | None = None
    """The whole output (at most 50 MB, head and tail), where `output` is not all of it."""


class Tally:
    """Adds up what was ended by force, for the receipt of a cancel; shared by all copies of one sandbox."""

    def __init__(self) -> None:
        self.counts = Ended()
        self.asked_at: float | None = None
        """When the command was broken off with which its run ends, monotonic: from then on all of the run is to end."""
        self.broken_off: CommandResult | None = None
        """The last command that `check` or `on_output` broke off, with its output so far."""

    def add(self, counts: Ended) -> None:
        self.counts += counts


class Sandbox(Protocol):
    """A place to run commands that nobody vouches for."""

    @property
    def kind(self) -> str:
        """`bwrap` or `none`; shown on the board."""
        ...

    @property
    def warning(self) -> str:
        """What this sandbox does not protect from; empty where it is one."""
        ...

    @property
    def tally(self) -> Tally: ...

    def for_session(self, *, scratch: Path, read_only: Sequence[Path] = ()) -> Self:
        """Give the same sandbox with a home and a /tmp that last for a session, and more paths to read."""
        ...

    def run(  # noqa: PLR0913 - each is a fact of one command
        self,
        command: str | Sequence[str],
        *,
        workspace: Path,
        timeout: float,
        log: Path | None = None,
        on_output: OnOutput | None = None,
        check: Check | None = None,
        read_only: Sequence[Path] = (),
    ) -> CommandResult:
        """Run a shell line or an argument list in `workspace`, with stdin closed, until it and its children ended.

        `timeout` in seconds, 0 for none. `check` and `on_output` are called from the caller's own thread, many
        times a second; whatever they raise ends the command (TERM, 10 s later KILL) and comes out unchanged,
        with the output so far in `tally.broken_off`.
        """
        ...

    def line(
        self, command: str | Sequence[str], *, workspace: Path, variables: Mapping[str, str] = NO_VARIABLES
    ) -> CommandLine:
        """Give the line that starts `command` as `run` would, for a caller that talks with it while it runs.

        `variables` come on top of the clean environment. The caller starts the line in a session of its own, and ends
        it and all that it started with `end_command(pid, line.mark, …)`.

        Raises ValueError where the sandbox needs a place for home and /tmp and has none (`for_session`).
        """
        ...
