"""Completion in real shells: what a user sees after TAB, with a running server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import needs, wait_until
from tests.support.command_tree import BIN, clean_environment
from tests.support.terminals import Terminal
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(280)
PROMPT = "ready>"
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(fleet completion bash)"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "mkdir functions && fleet completion zsh > functions/_fleet && fpath+=$PWD/functions && "
        "autoload -Uz compinit && compinit -u -d dump",
    ),
    "fish": (
        ["fish", "--private"],
        "mkdir -p ~/.config/fish/completions && fleet completion fish > ~/.config/fish/completions/fleet.fish",
    ),
}
TYPED = [
    ("fleet keys rot", "fleet keys rotate"),
    ("fleet submit --prof", "fleet submit --profile"),
    ("fleet show @l", "fleet show @last"),
    ("fleet submit 'Fix it' --project com", "fleet submit 'Fix it' --project completed"),
]
TITLES = ("\\$(touch owned): `touch owned`", "Fix the [/api/orders] route")
# Fish has only whole words of the program.
WITH_EQUALS = [("fleet submit --project=com", "fleet submit --project=completed")]


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet) -> WholeFleet:
    """The shared fleet with the project `completed`, and an organization with tasks of these titles."""
    add = ("project", "add", "completed", "--git-url", "https://git.example/x.git", "--no-check")
    shared_fleet.json(*add)
    shared_fleet.json("organization", "add", "titles")
    shared_fleet.json(*add, "--org", "titles")
    for title in TITLES:
        shared_fleet.json("task", "create", title, "--assignee", "user", "--org", "titles")
    return shared_fleet


@contextmanager
def started(words: Sequence[str], environment: dict[str, str], home: Path) -> Iterator[Terminal]:
    """An interactive shell on a terminal of its own."""
    shown = Terminal(columns=160)
    shell = subprocess.Popen(
        ["setsid", "--ctty", *words],
        cwd=home,
        env={**environment, "TERM": "xterm"},
        stdin=shown.slave,
        stdout=shown.slave,
        stderr=shown.slave,
    )
    try:
        yield shown
    finally:
        shell.kill()
        shell.wait()
        shown.close()


@contextmanager
def completing(shell: str, fleet: WholeFleet, home: Path) -> Iterator[Terminal]:
    """A shell of a user whose home this is, with completion switched on."""
    needs(shell)
    words, switched_on = SHELLS[shell]
    environment = {
        **{name: value for name, value in clean_environment().items() if not name.startswith("XDG_")},
        "HOME": str(home),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "FLEET_URL": fleet.url,
        "FLEET_API_TOKEN": fleet.token,
    }
    with started(words, environment, home) as shown:
        shown.types(f"{switched_on}; echo sw''itched on\r")
        wait_until(lambda: "\nswitched on" in shown.text)
        yield shown


@pytest.mark.parametrize("shell", ["bash", *(pytest.param(each, marks=pytest.mark.long) for each in ("zsh", "fish"))])
def test_the_shell_completes_names_from_the_server_at_the_first_tab(
    shell: str, fleet: WholeFleet, tmp_path: Path
) -> None:
    with completing(shell, fleet, tmp_path) as shown:
        for typed, completed in (*TYPED, *([] if shell == "fish" else WITH_EQUALS)):
            shown.types(f"{typed}\t")
            wait_until(lambda completed=completed: shown.lines[-1].endswith(completed))
            # A new line, and nothing is run.
            shown.types("\x01echo nothing \x05 > /dev/null\r")
            wait_until(lambda typed=typed: typed not in shown.lines[-1])


@pytest.mark.parametrize("shell", ["zsh", pytest.param("fish", marks=pytest.mark.long)])
def test_the_shell_shows_a_title_as_text_and_does_not_evaluate_it(
    shell: str, fleet: WholeFleet, tmp_path: Path
) -> None:
    with completing(shell, fleet, tmp_path) as shown:
        shown.types("fleet task show --org titles TITL-000\t")
        wait_until(lambda: all(title in shown.text for title in TITLES))
    assert not (tmp_path / "owned").exists()
