"""A recorded run as replay needs it: what the model said, what each call came to, and what people said between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Expected:
    """What a call came to when it was recorded."""

    output: str
    """All of it; with a `tail`, its beginning."""
    return_code: int | None = None
    """None: the tool has none, or the command was ended by its time limit."""
    timed_out: bool = False
    tail: str | None = None
    elided: int = 0
    """Characters between `output` and `tail` that were not recorded."""
    submits: bool = False
    """The output is that of the command which submitted, put together again from the submission."""


@dataclass(frozen=True)
class RecordedCall:
    """One call of a tool; `tool` is one of ours, for a recorded `bash` it is `shell`."""

    tool: str
    arguments: str
    """As the model gave them, JSON where it kept to it."""
    expected: Expected | None = None
    """None: not recorded, or in a form that cannot be read."""
    executed: bool = True
    """False: it was not run then, and so is not run now."""
    command: str = ""
    """What it was, for people."""


@dataclass(frozen=True)
class RecordedTurn:
    """One answer of the model, or one command that a person typed, with what followed."""

    content: str
    calls: tuple[RecordedCall, ...] = ()
    thinking: str = ""
    said: tuple[str, ...] = ()
    """User messages after its results: format errors, interruptions, steering."""


@dataclass(frozen=True)
class Recording:
    """A whole run."""

    opening: tuple[str, ...]
    """User messages before the first answer; the last one opens the run."""
    turns: tuple[RecordedTurn, ...]
    cwd: str = ""
    """The directory that commands ran in; empty where it was not recorded."""
    timeout: float | None = None
    """Seconds for one command; None: not recorded."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that were set for each command."""
    shell: tuple[str, ...] | None = None
    """What commands were given to, where that is not our own shell."""
    mode: str = "build"
    base_commit: str | None = None
    own: bool = False
    """It was exported by this software."""
