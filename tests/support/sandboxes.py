"""Sandboxes for tests, and a search for processes that are still alive."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from drone.sandbox import CommandResult, CommandSpec, Sandbox, choose, explain_missing
from drone.sandbox.direct import Direct
from drone.sandbox.opened import close_all
from drone.sandbox.protocol import CommandLine
from tests.support import needs

NOBODY = 65534


@dataclass(frozen=True)
class EndedFromOutside(Direct):
    """Without a sandbox; a command that fails was ended, as `how` says: `over` or `lost`, and what was `reached`."""

    how: Mapping[str, Any] = field(default_factory=dict)

    def run(self, spec: CommandSpec) -> CommandResult:
        result = super().run(spec)
        return replace(result, return_code=None, **self.how) if result.return_code else result


def ending_from_outside(**how: Any) -> Sandbox:
    """Such a sandbox."""
    direct = choose("none", os.environ)
    return EndedFromOutside(os.environ, direct.gateway, how=how)


def sandbox_of(kind: str) -> Sandbox:
    """The sandbox of a kind; without bubblewrap the test is skipped, or fails in CI.

    That of containers needs the fixture `container_image`, which does the same without podman.
    """
    if kind == "bwrap":
        needs("bwrap")
        if (reason := explain_missing(os.environ)) and os.environ.get("CI") != "true":
            pytest.skip(reason)
    return choose(kind, os.environ, trial=kind != "docker")


def shell(sandbox: Sandbox, workspace: Path, line: str, timeout: float = 60) -> CommandResult:
    """Run a shell line."""
    return sandbox.run(CommandSpec(line, workspace=workspace, timeout=timeout))


def processes_with(word: str) -> list[int]:
    """Live processes that have `word` as one of their arguments."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        alive = process.info["status"] != psutil.STATUS_ZOMBIE
        if alive and word in (process.info["cmdline"] or []):
            found.append(process.info["pid"])
    return found


def raise_when(condition: Callable[[], bool], error: BaseException) -> Callable[[], None]:
    """A check that raises as soon as the condition is true."""

    def check() -> None:
        if condition():
            raise error

    return check


@pytest.fixture
def sandboxes_closed() -> Iterator[None]:
    """Ends what the test's sandboxes opened, as a run does at its end."""
    yield
    close_all()


@pytest.fixture(params=["bwrap", "docker", "none"])
def sandbox(request: pytest.FixtureRequest, sandboxes_closed: None) -> Sandbox:
    """Each kind of sandbox."""
    return _prepared(request)


@pytest.fixture(params=["bwrap", "docker"])
def walled(request: pytest.FixtureRequest, sandboxes_closed: None) -> Sandbox:
    """Each kind that keeps commands from the machine."""
    return _prepared(request)


def _prepared(request: pytest.FixtureRequest) -> Sandbox:
    if request.param == "docker":
        request.getfixturevalue("container_image")
    return sandbox_of(request.param)


@pytest.fixture
def bwrap(sandboxes_closed: None) -> Sandbox:
    return sandbox_of("bwrap")


def as_nobody(line: CommandLine) -> subprocess.CompletedProcess[bytes]:
    """Run a line without the interpreter of the tests, which may be in a directory of root's own."""
    words, interpreter = list(line.arguments), sys.base_prefix
    at = words.index(interpreter) - 1 if interpreter in words else len(words)
    return subprocess.run(
        [*words[:at], *words[at + 3 :]],
        env=dict(line.environment),
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        check=False,
        timeout=60,
    )
