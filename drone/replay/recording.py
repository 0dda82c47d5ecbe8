"""A recorded run in the form needed for replay: the model's answers, the results of calls, and user messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Expected:
    """The recorded result of a call."""

    output: str
    """The whole output; with a `tail`, its beginning."""
    return_code: int | None = None
    """None: the tool has none, or the command was ended by its time limit."""
    timed_out: bool = False
    tail: str | None = None
    elided: int = 0
    """Characters between `output` and `tail` that were not recorded."""
    submits: bool = False
    """The output is that of the submitting command, reconstructed from the submission."""


@dataclass(frozen=True)
class RecordedCall:
    """One tool call; `tool` is one of our names: a recorded `bash` is `shell`."""

    tool: str
    arguments: str
    """As written by the model: JSON, if it is valid."""
    expected: Expected | None = None
    """None: not recorded, or in an unreadable format."""
    executed: bool = True
    """False: it was not run in the recording, so it is not run in the replay."""
    command: str = ""
    """The call, as shown to people."""


@dataclass(frozen=True)
class RecordedTurn:
    """One answer of the model, or one command typed by a person, with the messages that followed."""

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
    """The directory in which commands ran; empty if it was not recorded."""
    timeout: float | None = None
    """Seconds for one command; None: not recorded."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables set for each command."""
    shell: tuple[str, ...] | None = None
    """The program that ran commands, if it was not our shell."""
    mode: str = "build"
    base_commit: str | None = None
    own: bool = False
    """It was exported by this software."""
