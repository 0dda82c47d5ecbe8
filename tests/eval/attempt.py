"""What an agent left behind in one attempt at a task, and the limits of an attempt."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRACE_SECONDS = 60
"""To start and to end, above an attempt's own time limit; then it is killed."""


@dataclass(frozen=True)
class Endpoint:
    """The model that both agents use."""

    model: str
    """LiteLLM's name."""
    api_base: str | None = None
    key_variable: str | None = None
    """The environment variable that has the key."""
    params: Mapping[str, Any] | None = None
    """Sent with every question: temperature, seed and so on."""


@dataclass(frozen=True)
class Bounds:
    """The limits of one attempt, the same for both agents."""

    steps: int
    seconds: float
    cost_usd: float


@dataclass(frozen=True)
class Attempt:
    """One attempt. None: the agent did not report it."""

    patch: str
    answer: str
    ended: str
    """The agent's own word for how it ended."""
    steps: int | None = None
    """Answers of the model."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    problem: str = ""
    """Why there is no more, if the agent's program failed."""


class ProgramFailed(Exception):
    """The agent's program did not end as it should; its text says how, with the end of what it printed."""


def output_of(
    words: Sequence[str], *, where: Path, environment: Mapping[str, str], given: str, seconds: float
) -> tuple[int, str]:
    """Run an agent's program to its end; return its exit code and its standard output. Raises ProgramFailed."""
    process = subprocess.Popen(
        words,
        cwd=where,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="surrogateescape",
    )
    try:
        out, err = process.communicate(given, timeout=seconds + GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        _end(process)
        raise ProgramFailed(f"did not end within {seconds + GRACE_SECONDS:g} s") from None
    except BaseException:
        _end(process)
        raise
    if not out.strip():
        raise ProgramFailed(f"exit code {process.returncode}: {err.strip()[-400:]}")
    return process.returncode, out


def _end(process: subprocess.Popen[str]) -> None:
    """End the program: asked first, as it has processes of its own to end."""
    process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
