"""What `fleet` and `drone` have in common: errors in four parts, exit codes, JSON, guesses, colours."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from io import StringIO
from pathlib import Path
from typing import Annotated

import pytest
import typer
from pydantic_core import SchemaError, SchemaValidator, core_schema

from control_plane.cli.main import app as fleet
from drone.cli.main import app as drone
from shared import errors
from shared.terminal.command_line import JsonFlag, application, examples, group, parse_labels, print_json, put, run
from shared.terminal.output import coloured, iso
from tests.support.command_tree import walk


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def build(error: BaseException | None = None) -> typer.Typer:
    """An application with one command, which raises `error`, and one group."""
    app = application("craft", "Do things with craft.", environment={"CRAFT_HOME": "where it lives"})

    @app.command("make", rich_help_panel="Work", epilog=examples("craft make --size 3"))
    def make(size: Annotated[int, typer.Option("--size")] = 1, as_json: JsonFlag = False) -> None:
        """Make a thing."""
        if error:
            raise error
        print_json({"size": size})

    things = group("thing", "Look after things.")
    app.add_typer(things, rich_help_panel="Work")
    things.command("ls")(lambda: put("listed\n"))
    things.command("rm")(lambda: put("removed\n"))
    things.command("show")(lambda: put("shown\n"))
    return app


def test_an_error_is_told_in_four_parts_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    parts = {"why": "oka has it", "next": "craft make --name x", "help": "craft help"}
    code = run(build(errors.Conflict("the name is taken", code="E-NAME", **parts)), ["make"])

    told = capsys.readouterr()
    assert (code, told.out) == (4, "")
    assert told.err.splitlines() == [
        "error: the name is taken   [E-NAME]",
        "  why   oka has it",
        "  next  craft make --name x",
        "  help  craft help",
    ]


def test_what_a_command_starts_reaches_this_machine_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "", "no_proxy": ""}.items():
        monkeypatch.setenv(name, value)
    assert run(build(), ["thing", "ls"]) == 0
    assert "127.0.0.1" in os.environ["NO_PROXY"].split(",")


def test_each_kind_of_error_has_its_exit_code() -> None:
    codes: dict[type[errors.FleetError], int] = {
        **{errors.FleetError: 1, errors.FleetFault: 1, errors.Invalid: 2, errors.Precondition: 2, errors.NotFound: 3},
        **{errors.Conflict: 4, errors.Unreachable: 5, errors.Forbidden: 6, errors.Unauthenticated: 6},
    }
    assert {kind: run(build(kind("no", code="E-X")), ["make"]) for kind in codes} == codes
    for wrong in (["gpu"], ["=yes"], ["a=1", "a=2"]):
        with pytest.raises(errors.Invalid):
            parse_labels(wrong)


def test_with_json_an_error_is_one_object_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(build(errors.NotFound("no such thing", code="E-X")), ["make", "--json"])

    told = capsys.readouterr()
    assert told.out == ""
    texts = {"code": "E-X", "what": "no such thing", "why": None, "next": None, "help": "fleet help E-X"}
    assert json.loads(told.err) == {**texts, "exit_code": code}
    assert run(build(), ["make", "--json", "--size", "much"]) == 2
    assert json.loads(capsys.readouterr().err)["code"] == "E-USAGE"
    # Behind two dashes, it is a word.
    assert run(build(), ["make", "--", "--json"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_an_unexpected_error_is_one_sentence_and_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    code = run(build(ZeroDivisionError("by zero")), ["make"])

    (file,) = tmp_path.glob("dronefleet/errors/craft-*.log")
    told = capsys.readouterr().err
    assert code == 1
    assert "ZeroDivisionError: by zero" in told
    assert "Traceback" not in told
    assert str(file) in told
    assert "Traceback" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600

    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    assert run(build(ZeroDivisionError("by zero")), ["make"]) == 1
    assert "could not be written" in capsys.readouterr().err


def test_an_unknown_word_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build(), ["thing", "delete"]) == 0
    assert capsys.readouterr().out == "removed\n", "verbs have their usual other names"
    near = {"mkae": "make", "thing shwo": "show", "make --siez 3": "--size"}
    for words, meant in near.items():
        assert run(build(), words.split()) == 2
        assert f"did you mean {meant}?" in capsys.readouterr().err, words


def test_help_lists_commands_under_their_headings_and_knows_examples_exit_codes_and_variables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(build(), ["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  Do things with craft." in lines
    assert lines.index("Work:") < lines.index("  make   Make a thing.") < lines.index("More:")

    topics = {"make": "craft make --size 3", "exit-codes": "130  interrupted", "environment": "CRAFT_HOME"}
    for topic, part in topics.items():
        assert run(build(), ["help", topic]) == 0
        assert part in capsys.readouterr().out
    assert run(build(), ["help", "thing", "nothing"]) == 3
    assert run(build(), []) == 2
    assert capsys.readouterr().err.endswith("\n")


TITLES = {
    "a1": "Fix the [/api/orders] route",
    "a2": "app/[id]/page.tsx has a :bug:",
    "a3": "\\$(touch owned)",
    "a4": f"Break {'no ' * 200}line",
}


def fail() -> list[str]:
    raise ZeroDivisionError


def test_what_completes_a_line_is_shown_whole_and_an_error_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = application("craft", "Do things with craft.")

    @app.command("make")
    def make(order: Annotated[str, typer.Argument(autocompletion=lambda: list(TITLES.items()))]) -> None: ...

    @app.command("mend")
    def mend(order: Annotated[str, typer.Argument(autocompletion=fail)]) -> None: ...

    def completed(instruction: str, typed: str) -> tuple[int, str, str]:
        monkeypatch.setenv("_CRAFT_COMPLETE", instruction)
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", typed)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        return run(app, []), *capsys.readouterr()

    lines = "".join(f"{word}\t{title}\n" for word, title in TITLES.items())
    assert completed("complete_fish", "craft make ") == (0, lines, "")
    assert completed("complete_fish", "craft mend ") == (1, "", "")
    # A script of typer's for zsh evaluates what it gets.
    assert completed("complete_zsh", "craft make ") == (1, "", "")


def test_a_json_document_has_times_in_utc_and_null_for_what_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=timezone(timedelta(hours=2)))

    print_json({"at": noon, "cost": float("nan"), "path": Path("/x"), "none": None, "list": (1, True)})

    assert capsys.readouterr().out == (
        '{"at": "2026-01-02T10:00:00Z", "cost": null, "path": "/x", "none": null, "list": [1, true]}\n'
    )
    assert iso(datetime(2026, 1, 2, 3, 4, 5, 600000, tzinfo=UTC)) == "2026-01-02T03:04:05.600000Z"
    with pytest.raises(TypeError):
        iso(datetime(2026, 1, 2))


def test_colour_follows_the_usual_variables() -> None:
    cases: list[tuple[dict[str, str], StringIO, bool]] = [
        ({}, Terminal(), True),
        ({}, StringIO(), False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, Terminal(), False),
        ({"NO_COLOR": ""}, Terminal(), True),
        ({"FORCE_COLOR": "1", "CLICOLOR": "0"}, StringIO(), True),
        ({"CLICOLOR": "0"}, Terminal(), False),
        ({"CLICOLOR_FORCE": "1"}, StringIO(), True),
        ({"TERM": "dumb"}, Terminal(), False),
    ]
    for environ, stream, expected in cases:
        assert coloured(stream, environ) is expected, environ


def test_on_a_terminal_a_secret_is_asked_for_and_not_shown() -> None:
    code = "from shared.terminal.command_line import read_secret; print('got', read_secret('-', 'API key'))"
    shown = _on_a_terminal(code, b"API key: ", b"sk-secret", b"got sk-secret")
    assert shown.count(b"sk-secret") == 1, "only what the program itself prints"


def test_on_a_terminal_only_a_yes_confirms() -> None:
    code = """
import typer
from shared.terminal.command_line import confirmed
try:
    confirmed("Remove it?", yes=False)
    print("[removed]")
except typer.Exit as error:
    print(f"[kept, {error.exit_code}]")
"""
    for answer, end in ((b"y", b"[removed]"), (b"n", b"[kept, 1]"), (b"", b"[kept, 1]")):
        _on_a_terminal(code, b"[y/N]: ", answer, end)


def _on_a_terminal(code: str, question: bytes, answer: bytes, end: bytes) -> bytes:
    """What is shown until the program's last words, `end`."""
    ours, theirs = pty.openpty()
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with subprocess.Popen([sys.executable, "-c", code], **streams, start_new_session=True) as process:
        os.close(theirs)
        shown = _read_until(ours, question)
        os.write(ours, answer + b"\n")
        shown += _read_until(ours, end)
        assert process.wait(60) == 0
    os.close(ours)
    return shown


def _read_until(terminal: int, wanted: bytes) -> bytes:
    found = b""
    while wanted not in found:
        found += os.read(terminal, 1)
    return found


NODES = [(name, app, node) for name, app in (("fleet", fleet), ("drone", drone)) for node in walk(app)]
PLAIN = {
    *("fleet up", "fleet serve", "fleet flower", "fleet logs", "fleet stop", "fleet open", "fleet mcp"),
    *("fleet patch", "fleet audit export", "fleet organization export", "fleet batch results", "drone start"),
    *("fleet top", "fleet completion", "fleet help", "drone completion", "drone help"),
}
"""Commands that run until stopped, or whose result is plain text."""


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert [f"{name} {node.name}" for name, _, node in NODES if not node.command.help] == []
    # How click puts the same together is the same for all.
    for name, app, node in [each for each in NODES if len(each[2].words) < 2][::4]:
        code, printed = run(app, [*node.words, "--help"]), capsys.readouterr()
        assert (code, printed.err) == (0, "")
        assert printed.out.startswith(f"Usage: {' '.join([name, *node.words])}")
        assert node.command.help.strip().partition("\n")[0] in " ".join(printed.out.split())


def test_every_command_with_an_answer_has_it_as_json() -> None:
    every = {f"{name} {node.name}": node for name, _, node in NODES if not node.is_group}
    assert {name for name, node in every.items() if "--json" not in node.options} == PLAIN


_INTERRUPTED = """
import importlib.abc, os, signal, sys

class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, *_):
        if name == {at!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["program", "--help"]
from {package}.program import main
main()
"""


def interrupted(package: str, at: str) -> subprocess.CompletedProcess[str]:
    """The program's `--help`, with Ctrl-C when it imports the module `at`."""
    code = _INTERRUPTED.format(package=package, at=at)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("package", ["control_plane.cli", "drone.cli"])
def test_ctrl_c_ends_a_program_quietly_while_it_is_imported(package: str) -> None:
    done = interrupted(package, "shared.terminal.boundary")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_is_answered_by_the_program_once_it_runs() -> None:
    done = interrupted("drone.cli", "typer._click._textwrap")  # imported to print the help
    assert (done.returncode, done.stderr.strip()) == (130, "interrupted")


def test_ctrl_c_is_answered_also_while_pydantic_builds_a_validator(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(re, "compile", interrupt)
    with pytest.raises(SchemaError) as raised:
        SchemaValidator(core_schema.str_schema(pattern="a", regex_engine="python-re"))
    monkeypatch.undo()
    assert (run(build(raised.value), ["make"]), capsys.readouterr().err.strip()) == (130, "interrupted")
