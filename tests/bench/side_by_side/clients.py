"""Agents that make steps against the instant endpoint, each as its user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.eval.mini import PROGRAM as MINI_PROGRAM
from tests.eval.mini import SETTINGS as MINI_SETTINGS

HERE = Path(__file__).parent
DRONE = Path(sys.executable).with_name("drone")
FILES = 300
NO_LIMIT = ("--max-iterations", "0", "--cost-limit", "0", "--max-run-seconds", "0")


@dataclass(frozen=True)
class StepTimes:
    """What a client's steps took; the endpoint measured them."""

    gaps_ms: tuple[float, ...]
    """From each answer to the next request."""
    to_first_s: float
    """From the start of the program to its first request."""

    @property
    def late_ms(self) -> float:
        """The median of the last fifth, where the history is longest."""
        last = sorted(self.gaps_ms[-max(len(self.gaps_ms) // 5, 1) :])
        return last[len(last) // 2]


class StepClient:
    """Something that makes steps."""

    name: str
    tool: str = "shell"
    """The name of its tool for commands."""

    def words(self, address: str, where: Path) -> list[str]:
        """Return the command line; `where/repository` is a git repository, the rest of `where` is free."""
        raise NotImplementedError

    def given(self, address: str, where: Path) -> str:
        """Return what the program reads from stdin."""
        del address, where
        return ""

    def environment(self, where: Path) -> dict[str, str]:
        del where
        return {}


class Floor(StepClient):
    name = "floor"

    def words(self, address: str, where: Path) -> list[str]:
        return [sys.executable, "-m", "tests.bench.side_by_side.floor_program", address]


class Alone(StepClient):
    """`drone run`: loop, sandbox and journal, without a fleet."""

    name = "drone run"

    def words(self, address: str, where: Path) -> list[str]:
        model = ("--model", "openai/instant", "--api-base", address, "--context-window", "10000000")
        return [str(DRONE), "run", "Go on.", "--json", "--repo", str(where / "repository"), *model, *NO_LIMIT]

    def environment(self, where: Path) -> dict[str, str]:
        return {"DRONE_HOME": str(where / "home")}


class MiniSteps(StepClient):
    """mini-swe-agent as its users have it: with a shell of the machine, or in its own bubblewrap environment."""

    tool = "bash"

    def __init__(self, python: Path, sandbox: str = "none") -> None:
        self._python, self._sandbox = python, sandbox
        self.name = "mini-swe-agent" if sandbox == "none" else f"mini-swe-agent ({sandbox})"

    def words(self, address: str, where: Path) -> list[str]:
        return [str(self._python), str(MINI_PROGRAM)]

    def given(self, address: str, where: Path) -> str:
        request = {
            "task": "Go on.",
            "directory": str(where / "repository"),
            "model": "openai/instant",
            "model_kwargs": {"api_base": address, "api_key": "none"},
            "steps": 0,
            "seconds": 0,
            "cost_usd": 0,
            "sandbox": self._sandbox,
        }
        return json.dumps(request)

    def environment(self, where: Path) -> dict[str, str]:
        return {**MINI_SETTINGS, "MSWEA_GLOBAL_CONFIG_DIR": str(where)}


class OpenHandsSteps(StepClient):
    name = "OpenHands"
    tool = "terminal"

    def __init__(self, python: Path) -> None:
        self._python = python

    def words(self, address: str, where: Path) -> list[str]:
        program = HERE / "openhands_program.py"
        return [str(self._python), str(program), address, str(where / "repository"), str(where / "record")]

    def environment(self, where: Path) -> dict[str, str]:
        return {"OPENHANDS_SUPPRESS_BANNER": "1", "HOME": str(where)}


def steps_of(client: StepClient, steps: int, command: str = "echo hi") -> StepTimes:
    """Let the client make this many steps in a repository of 300 files.

    Raises CalledProcessError with what it printed if it fails, ValueError if it made another number of steps.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as directory, endpoint(client.tool, steps, command) as address:
        where = Path(directory)
        make_repository(where / "repository")
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", **client.environment(where)}
        began = time.monotonic()
        words, given = client.words(address, where), client.given(address, where)
        ran = subprocess.run(words, input=given, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise subprocess.CalledProcessError(ran.returncode, words, ran.stdout[-2000:], ran.stderr[-2000:])
        times = times_of(address)
    if len(times["asked"]) != steps + 1:
        raise ValueError(f"{client.name} asked {len(times['asked'])} times and not {steps + 1}: {ran.stderr[-2000:]}")
    gaps = [1e3 * (asked - answered) for answered, asked in zip(times["answered"], times["asked"][1:], strict=False)]
    return StepTimes(tuple(gaps), times["asked"][0] - began)


@contextmanager
def endpoint(tool: str, steps: int, command: str = "echo hi") -> Iterator[str]:
    """The address of an instant endpoint in a process of its own."""
    words = [sys.executable, "-m", "tests.bench.side_by_side.instant_endpoint", "--tool", tool]
    with subprocess.Popen(
        [*words, "--steps", str(steps), "--command", command], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def make_repository(where: Path, files: int = FILES) -> None:
    """A repository of that many small files in one commit."""
    where.mkdir(parents=True)
    for number in range(files):
        (where / f"file-{number:03}.txt").write_text(f"line {number}\n" * 20)
    git = ["git", "-C", str(where), "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for words in (["init", "-q", "-b", "main"], ["add", "--all"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)


def times_of(address: str) -> dict[str, list[float]]:
    """When the endpoint was asked, and when it had answered."""
    with urllib.request.urlopen(f"{address}/times") as answer:
        found: dict[str, list[float]] = json.load(answer)
    return found
