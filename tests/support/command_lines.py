"""Runs `fleet` or `drone` in the process of the test, and keeps what it printed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import typer

import control_plane.contract.client.fleet
from control_plane.contract.client.fleet import FleetClient
from shared.terminal.boundary import run


@dataclass(frozen=True)
class Done:
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """The JSON document on stdout of a command that succeeded or failed."""
        return json.loads(self.stdout)


class Terminal(io.StringIO):
    """A terminal whose user types these lines; `meanwhile` happens before each of them."""

    def __init__(self, typed: str = "", meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__(typed)
        self._meanwhile = meanwhile

    def isatty(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> str:
        self._meanwhile()
        return super().readline(-1 if size is None else size)


class ListedClient(FleetClient):
    """A client that can be closed after the command: a program leaves that to its exit."""

    opened: ClassVar[list[FleetClient]] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.opened.append(self)


@dataclass(frozen=True)
class CommandLine:
    """A command line with a prepared environment."""

    app: typer.Typer
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def __post_init__(self) -> None:
        self.monkeypatch.setattr(control_plane.contract.client.fleet, "FleetClient", ListedClient)

    def __call__(self, *words: str, stdin: str | bytes | Terminal = "") -> Done:
        given = stdin if isinstance(stdin, Terminal) else _pipe(stdin)
        self.monkeypatch.setattr(sys, "stdin", given)
        self.capsys.readouterr()
        code = run(self.app, words)
        while ListedClient.opened:
            ListedClient.opened.pop().close()
        return Done(code, *self.capsys.readouterr())


def _pipe(content: str | bytes) -> io.TextIOWrapper:
    written = content.encode() if isinstance(content, str) else content
    return io.TextIOWrapper(io.BytesIO(written), errors="surrogateescape")


class Unasked:
    """A client that is not asked, since all has ended."""

    def call(self, *_: object, **__: object) -> Any:
        raise AssertionError
