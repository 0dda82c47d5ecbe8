"""Runs `fleet` or `drone` in the process of the test, and keeps what it printed."""

from __future__ import annotations

import io
import json
import sys
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

    def __call__(self, *words: str, stdin: str | bytes = "") -> Done:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), errors="surrogateescape"))
        self.capsys.readouterr()
        code = run(self.app, words)
        while ListedClient.opened:
            ListedClient.opened.pop().close()
        return Done(code, *self.capsys.readouterr())


class Unasked:
    """A client that is not asked, since all has ended."""

    def call(self, *_: object, **__: object) -> Any:
        raise AssertionError
