"""Whatever a server, a model or a repository put into a text: nothing of it acts on a terminal or is hidden."""

from __future__ import annotations

import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from control_plane.cli import checks
from control_plane.cli.main import app
from shared.terminal.boundary import run
from tests.support.command_tree import commands
from tests.support.hostile_server import EVIL, hostile_server
from tests.support.terminals import acting, terminal

ELSEWHERE = ("help", "completion", "up", "serve", "flower", "logs", "stop", "mcp", "install-skill", "db", "open")
"""Commands that print nothing of a server."""
EXAMPLES = [
    shlex.split(re.split(r" [|<>] ", line.strip())[0])[1:]
    for node in commands(app)
    for line in (node.command.epilog or "").split("\n")
    if node.words[0] not in ELSEWHERE and line.strip().startswith("fleet ")
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with hostile_server() as address:
        yield address


@pytest.fixture
def as_user(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "lead.md").write_text("Lead.")
    (tmp_path / "payments.jsonl").write_text("{}\n")
    monkeypatch.chdir(tmp_path)
    # The server's checks never end.
    monkeypatch.setattr(checks, "TEST_SECONDS", 0.5)
    monkeypatch.setattr(checks, "ADD_SECONDS", 0.5)
    places = dict.fromkeys(("XDG_STATE_HOME", "FLEET_HOME"), str(tmp_path))
    keys = {"FLEET_API_TOKEN": "fa_x", "OPENAI_API_KEY": "sk-x"}
    for name, value in {"FLEET_URL": url, "PAGER": "cat", **places, **keys}.items():
        monkeypatch.setenv(name, value)


def printed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What the command writes to a terminal."""
    with terminal(columns=200, rows=10_000) as (screen, stream), monkeypatch.context() as here:
        here.setattr(sys, "stdout", stream)
        here.setattr(sys, "stderr", stream)
        here.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"words")))
        run(app, words)
        stream.flush()
    return screen.raw.decode()


@pytest.mark.usefixtures("as_user")
def test_no_text_of_a_server_acts_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {" ".join(words): printed(words, monkeypatch) for words in EXAMPLES}
    assert len(shown) > 200
    assert {command: found for command, text in shown.items() if (found := acting(text))} == {}
    assert [command for command, text in shown.items() if re.search("E-UNEXPECTED|E-SERVER", text)] == []


@pytest.mark.usefixtures("as_user")
def test_no_refusal_acts_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    with hostile_server(refuses=True) as address:
        monkeypatch.setenv("FLEET_URL", address)
        for words in ("show ORDER", "orders --json", "follow ORDER", "patch ORDER"):
            shown = printed(words.split(), monkeypatch)
            assert (acting(shown), "concealed" in shown) == ([], True), words


@pytest.mark.usefixtures("as_user")
def test_a_patch_is_exact_in_a_pipe_and_readable_on_a_terminal(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "␛]52;c;ZWNobw==" in printed(["patch", "ORDER"], monkeypatch)
    run(app, ["patch", "ORDER"])
    assert capfdbinary.readouterr().out == EVIL.encode()
