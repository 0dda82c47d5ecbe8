"""What each command of `fleet` and `drone` has: help, a refusal of wrong options, and its answer as JSON."""

from __future__ import annotations

import pytest

from control_plane.cli.main import app as fleet
from drone.cli.main import app as drone
from shared.terminal.command_line import run
from tests.support.command_tree import commands, walk

NODES = [(name, app, node) for name, app in (("fleet", fleet), ("drone", drone)) for node in walk(app)]
PLAIN = {
    *("fleet up", "fleet serve", "fleet flower", "fleet logs", "fleet stop", "fleet open", "fleet mcp"),
    *("fleet patch", "fleet audit export", "fleet organization export", "fleet batch results", "drone start"),
    *("fleet completion", "fleet help", "drone completion", "drone help"),
}
"""Commands that run until stopped, or whose result is plain text."""


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {}
    for name, app, node in NODES:
        code, printed = run(app, [*node.words, "--help"]), capsys.readouterr()
        usage = printed.out.startswith(f"Usage: {' '.join([name, *node.words])}")
        first = (node.command.help or "no help").strip().partition("\n")[0]
        if (code, usage, printed.err) != (0, True, "") or first not in " ".join(printed.out.split()):
            wrong[f"{name} {node.name}"] = (code, printed)
    assert wrong == {}


def test_an_option_that_does_not_exist_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {}
    for name, app, node in NODES:
        code, printed = run(app, [*node.words, "--no-such-option"]), capsys.readouterr()
        told = printed.err.startswith("error: ") and "[E-USAGE]" in printed.err
        if (code, printed.out, told) != (2, "", True):
            wrong[f"{name} {node.name}"] = (code, printed)
    assert wrong == {}


def test_every_command_with_an_answer_has_it_as_json() -> None:
    every = [
        (f"{name} {each.name}", each) for name, app in (("fleet", fleet), ("drone", drone)) for each in commands(app)
    ]
    assert {name for name, each in every if "--json" not in each.options} == PLAIN


def test_colours_come_into_a_pipe_only_where_they_are_forced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(**variables: str) -> str:
        for name in ("FORCE_COLOR", "NO_COLOR"):
            monkeypatch.setenv(name, variables[name]) if name in variables else monkeypatch.delenv(name, raising=False)
        run(drone, ["docter"])
        return capsys.readouterr().err

    assert "\x1b[" not in told()
    assert "\x1b[31merror:" in told(FORCE_COLOR="1")
    assert "\x1b[" not in told(FORCE_COLOR="1", NO_COLOR="1")
