"""What `fleet` and `drone` have in common: errors in four parts, exit codes, JSON, guesses, colours."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from io import StringIO
from pathlib import Path
from typing import Annotated

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import (
    Conflict,
    FleetError,
    FleetFault,
    Forbidden,
    Invalid,
    NotFound,
    Precondition,
    Unauthenticated,
    Unreachable,
)
from shared.terminal.command_line import (
    JsonFlag,
    application,
    examples,
    group,
    parse_labels,
    print_json,
    print_table,
    put,
    read_secret,
    run,
)
from shared.terminal.output import coloured, iso, plain, printable


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
    things.command("create")(lambda: put("created\n"))
    return app


def test_an_error_is_told_in_four_parts_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    error = Conflict(
        "the name is taken", code="E-NAME", why="oka has it", next="craft make --name x", help="craft help"
    )

    code = run(build(error), ["make"])

    told = capsys.readouterr()
    assert code == 4
    assert told.out == ""
    assert told.err.splitlines() == [
        "error: the name is taken   [E-NAME]",
        "  why   oka has it",
        "  next  craft make --name x",
        "  help  craft help",
    ]


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (FleetError, 1),
        (FleetFault, 1),
        (Invalid, 2),
        (Precondition, 2),
        (NotFound, 3),
        (Conflict, 4),
        (Unreachable, 5),
        (Forbidden, 6),
        (Unauthenticated, 6),
    ],
)
def test_each_kind_of_error_has_its_exit_code(kind: type[FleetError], code: int) -> None:
    assert run(build(kind("no", code="E-X")), ["make"]) == code


def test_with_json_an_error_is_one_object_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(build(NotFound("no such thing", code="E-X")), ["make", "--json"])

    told = capsys.readouterr()
    assert told.out == ""
    assert json.loads(told.err) == {
        "code": "E-X",
        "what": "no such thing",
        "why": None,
        "next": None,
        "help": "fleet help E-X",
        "exit_code": code,
    }


def test_wrong_use_is_told_in_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build(), ["make", "--json", "--size", "much"]) == 2
    assert json.loads(capsys.readouterr().err)["code"] == "E-USAGE"


def test_json_after_a_double_dash_is_a_word_and_not_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build(), ["make", "--", "--json"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_an_error_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    run(build(NotFound("no \x1b[2Jsuch\x07 thing\x9b1m", code="E-X")), ["make"])

    assert "error: no ␛[2Jsuch␇ thing⟨U+009B⟩1m " in capsys.readouterr().err


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


def test_an_unexpected_error_that_cannot_be_written_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))

    assert run(build(ZeroDivisionError("by zero")), ["make"]) == 1
    assert "could not be written" in capsys.readouterr().err


def test_ctrl_c_is_130_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build(KeyboardInterrupt()), ["make"]) == 130
    assert capsys.readouterr().err == "\ninterrupted\n"


def test_an_unknown_command_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build(), ["mkae"]) == 2

    assert "did you mean make?" in capsys.readouterr().err


def test_an_unknown_command_of_a_group_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build(), ["thing", "shwo"]) == 2

    told = capsys.readouterr().err
    assert "unknown command 'shwo' for 'craft thing'" in told
    assert "did you mean show?" in told


def test_an_unknown_option_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build(), ["make", "--siez", "3"]) == 2

    told = capsys.readouterr().err
    assert "did you mean --size?" in told
    assert "craft make --help" in told


@pytest.mark.parametrize(
    ("word", "done"),
    [
        ("list", "listed"),
        ("delete", "removed"),
        ("remove", "removed"),
        ("view", "shown"),
        ("add", "created"),
        ("create", "created"),
    ],
)
def test_verbs_have_their_usual_other_names(word: str, done: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build(), ["thing", word]) == 0
    assert capsys.readouterr().out == f"{done}\n"


def test_help_lists_commands_under_their_headings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build(), ["--help"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert "  Do things with craft." in lines
    assert lines.index("Work:") < lines.index("  make   Make a thing.") < lines.index("More:")


def test_help_of_a_command_ends_with_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build(), ["help", "make"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("Examples:\n    craft make --size 3")


def test_help_knows_the_exit_codes_and_the_variables(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build(), ["help", "exit-codes"]) == 0
    assert run(build(), ["help", "environment"]) == 0

    told = capsys.readouterr().out
    assert "  130  interrupted" in told
    assert "  CRAFT_HOME         where it lives" in told


def test_help_on_what_does_not_exist_is_not_found() -> None:
    assert run(build(), ["help", "thing", "nothing"]) == 3


def test_nothing_to_do_is_wrong_use_and_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build(), []) == 2
    assert capsys.readouterr().err.startswith("Usage: craft")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(build(), ["completion", shell]) == 0
    assert "_CRAFT_COMPLETE" in capsys.readouterr().out


def test_a_json_document_has_times_in_utc_and_null_for_what_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=timezone(timedelta(hours=2)))

    print_json({"at": noon, "cost": float("nan"), "path": Path("/x"), "none": None, "list": (1, True)})

    assert capsys.readouterr().out == (
        '{"at": "2026-01-02T10:00:00Z", "cost": null, "path": "/x", "none": null, "list": [1, true]}\n'
    )


def test_a_time_without_a_zone_has_no_form_in_json() -> None:
    with pytest.raises(TypeError, match="no time zone"):
        iso(datetime(2026, 1, 2))


@given(
    st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.tuples(inner))
)
def test_whatever_has_a_form_in_json_survives_the_way(value: object) -> None:
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == plain(value)


@given(st.text())
def test_printable_text_has_no_control_characters(text: str) -> None:
    assert [c for c in printable(text) if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) <= 0x9F] == []


def test_a_table_is_aligned_and_cut_nowhere_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "status"), [("oka", None), ("a" * 300, "online")])

    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["oka", "-"]
    assert lines[2].split() == ["a" * 300, "online"]


def test_an_empty_table_is_a_sentence_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name",), [], empty="no drones yet: fleet token add")

    assert capsys.readouterr() == ("", "no drones yet: fleet token add\n")


@pytest.mark.parametrize(
    ("environ", "stream", "expected"),
    [
        ({}, Terminal(), True),
        ({}, StringIO(), False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, Terminal(), False),
        ({"NO_COLOR": ""}, Terminal(), True),
        ({"FORCE_COLOR": "1", "CLICOLOR": "0"}, StringIO(), True),
        ({"CLICOLOR": "0"}, Terminal(), False),
        ({"CLICOLOR_FORCE": "1"}, StringIO(), True),
        ({"TERM": "dumb"}, Terminal(), False),
    ],
)
def test_colour_follows_the_usual_variables(environ: dict[str, str], stream: StringIO, expected: bool) -> None:
    assert coloured(stream, environ) is expected


def test_labels_are_pairs() -> None:
    assert parse_labels(["gpu=yes", " os = linux ", "note=a=b"]) == {"gpu": "yes", "os": "linux", "note": "a=b"}


@pytest.mark.parametrize("pairs", [["gpu"], ["=yes"], ["a=1", "a=2"]])
def test_what_is_no_label_is_refused(pairs: list[str]) -> None:
    with pytest.raises(Invalid):
        parse_labels(pairs)


def test_a_secret_of_a_dash_is_read_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("fj_secret\nmore\n"))

    assert read_secret("-", "token") == "fj_secret"


def test_an_empty_stdin_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(""))

    with pytest.raises(Invalid, match="no token on stdin"):
        read_secret("-", "token")


def test_on_a_terminal_a_secret_is_asked_for_and_not_shown() -> None:
    ours, theirs = pty.openpty()
    code = "from shared.terminal.command_line import read_secret; print('got', read_secret('-', 'API key'))"
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with subprocess.Popen([sys.executable, "-c", code], **streams, start_new_session=True) as process:
        os.close(theirs)
        shown = _read_until(ours, b"API key: ")
        os.write(ours, b"sk-secret\n")
        shown += _read_until(ours, b"got sk-secret")
        assert process.wait(60) == 0
    os.close(ours)
    assert shown.count(b"sk-secret") == 1, "only what the program itself prints"


def _read_until(terminal: int, wanted: bytes) -> bytes:
    found = b""
    while wanted not in found:
        found += os.read(terminal, 1)
    return found


def test_the_moment_is_told_in_utc() -> None:
    assert iso(datetime(2026, 1, 2, 3, 4, 5, 600000, tzinfo=UTC)) == "2026-01-02T03:04:05.600000Z"
