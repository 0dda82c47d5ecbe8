"""Which files are read, in which order, and that a broken one is reported and harmless."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from drone.extensions.sources import LARGEST
from shared.outcome import ExitStatus
from tests.support.extensions import WAITS, ExtendedLoop, write
from tests.support.scripted import calls, says

NOTES = """
    def extend(api):
        api.on("before_agent_start", lambda event, context: event.system_prompt + " {word}")
"""
BLOCKS = """
    from drone.extensions import Verdict

    class Strict:
        name = {name!r}
        policy = {policy}

        def before_call(self, call):
            return Verdict("block", {reason!r})

    guardrail = Strict()
"""
RULE = "class R:\n def before_call(self, call): ..."
SCRIPT = [calls("one"), says("Done.")]


def test_extensions_are_read_by_name_first_the_drones_then_the_projects_and_other_files_are_left_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    write(project, "extensions/a.py", NOTES.format(word="three"))
    write(home, "extensions/b.py", NOTES.format(word="two"))
    first = "from __future__ import annotations\nprint('hello')\n" + dedent(NOTES.format(word="one"))
    write(home, "extensions/a.py", first)
    for name in ("_part.py", ".hidden.py", "notes.md", "old.py~"):
        write(home, f"extensions/{name}", "raise ValueError")
        write(home, f"guardrails/{name}", "raise ValueError")
    before = {*tmp_path.rglob("*")}
    loop = ExtendedLoop(SCRIPT, home=home, project=project)
    modules = {name for name in sys.modules if name.startswith("_dronefleet_extension")}
    loop.run()
    assert loop.agent.transcript[0].content == "You are tested. one two three"
    assert loop.extensions.loaded[0] == "the extension extensions/a.py of the drone"
    assert (len(loop.extensions.loaded), loop.reports) == (3, [])
    assert capfd.readouterr() == ("", "hello\n"), "what it prints does not go to stdout"
    assert {*tmp_path.rglob("*")} == before, "nothing is written beside them"
    assert modules
    assert modules & set(sys.modules) == set()


def test_guardrails_come_after_the_built_in_one_drone_before_project_before_extensions(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    write(project, "guardrails/of_project.py", BLOCKS.format(name="of_project", policy=False, reason="no"))
    write(home, "guardrails/of_drone.py", BLOCKS.format(name="of_drone", policy=False, reason="no"))
    write(home, "extensions/rules.py", f"{RULE}\ndef extend(api): api.guardrail(R())")
    loop = ExtendedLoop(SCRIPT, home=home, project=project)
    assert loop.extensions.guardrails.names == ["loop_detection", "of_drone", "of_project", "rules"]
    write(home, "guardrails/two.py", f"{RULE}\nguardrails = [R(), R()]")
    names = ExtendedLoop(SCRIPT, home=home, project=None).extensions.guardrails.names
    assert names == ["loop_detection", "of_drone", "two", "two-2", "rules"]


def test_a_project_cannot_take_the_place_of_the_owners_rule(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    write(home, "guardrails/strict.py", BLOCKS.format(name="strict", policy=True, reason="the owner's"))
    write(project, "guardrails/strict.py", BLOCKS.format(name="strict", policy=False, reason="the project's"))
    loop = ExtendedLoop(SCRIPT, home=home, project=project)
    loop.run()
    assert loop.told[1][1] == "This call was blocked: the owner's"
    assert loop.reports == [
        "The guardrail strict of the guardrail file guardrails/strict.py of the project is ignored: "
        "the guardrail file guardrails/strict.py of the drone has one with the same name."
    ]


def _text(text: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(text, encoding="utf-8")


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "syntax": (_text("def extend(api:"), "SyntaxError"),
    "exits": (_text("import sys\nsys.exit(1)"), "SystemExit: 1"),
    "no_extend": (_text("x = 1"), "no function extend"),
    "event": (_text("def extend(api): api.on('tool_cal', print)"), "unknown event 'tool_cal'"),
    "tool": (_text("def extend(api): api.tool('a b', '', None, print)"), "letters, digits"),
    "schema": (_text("def extend(api): api.tool('a', '', {'type': 'object', 'required': 5}, print)"), "JSON schema"),
    "array": (_text("def extend(api): api.tool('a', '', {'type': 'array'}, print)"), "JSON schema"),
    "memory": (_text("def extend(api): api.memory(object())"), "a memory must be an object with recall"),
    "command": (_text("def extend(api): api.command('Upper', 'x', print)"), "invalid name of a command"),
    "rule": (_text("def extend(api): api.guardrail(object())"), "a guardrail must be an object with at least one of"),
    "huge": (lambda file: file.write_bytes(b"#" * (LARGEST + 1)), "larger than 1,000,000 bytes"),
    "latin1": (lambda file: file.write_bytes(b"# caf\xe9\n"), "not UTF-8 (byte 5)"),
    "missing": (lambda file: file.symlink_to("nowhere"), "FileNotFoundError"),
    "fifo": (os.mkfifo, "it is not a file"),
}


def test_a_broken_file_is_reported_by_name_and_harmless(tmp_path: Path) -> None:
    for kind, (spoil, complaint) in BROKEN.items():
        home = tmp_path / kind
        write(home, "extensions/z_good.py", NOTES.format(word="still there"))
        spoil(home / "extensions" / "broken.py")
        loop = ExtendedLoop(SCRIPT, home=home)
        assert loop.run().exit_status is ExitStatus.STOPPED, kind
        assert loop.reports[0].startswith("The extension extensions/broken.py of the drone could not be loaded: ")
        assert complaint in loop.reports[0]
        assert (len(loop.reports), len(loop.toolbox.ran)) == (1, 1), kind
        assert loop.agent.transcript[0].content.endswith("still there"), kind
        assert loop.recorder.bodies[0].kind == "error", kind
    # Half of an extension is none.
    write(tmp_path / "half", "extensions/a.py", "def extend(api):\n api.on('input', print)\n raise ValueError('boom')")
    loop = ExtendedLoop(SCRIPT, home=tmp_path / "half")
    (step,) = loop.recorder.bodies
    assert (loop.extensions.hooks.listens(), step.code) == (False, "E-EXTENSION")
    assert ("extensions/a.py" in step.detail, "line 3" in step.detail) == (True, True)


def test_a_policy_that_cannot_be_loaded_or_fails_on_a_call_lets_none_pass(tmp_path: Path) -> None:
    fails = "policy = True\ndef extend(api): api.on('tool_call', lambda e, c: 1 / 0)"
    write(tmp_path / "fails", "extensions/p.py", fails)
    loop = ExtendedLoop(SCRIPT, home=tmp_path / "fails")
    loop.run()
    assert "the extension extensions/p.py of the drone is a policy and failed: ZeroDivisionError" in loop.told[1][1]
    codes = ("policy = True\nraise ValueError", "policy = True\n(", "policy: bool = True\ncaf\xe9")
    for number, (place, code) in enumerate(itertools.product(("guardrails", "extensions"), codes)):
        home = tmp_path / str(number)
        write(home, f"{place}/loop_detection.py", "").write_bytes(code.encode("latin-1"))
        loop = ExtendedLoop(SCRIPT, home=home)
        loop.run()
        assert loop.toolbox.ran == [], (place, code)
        assert "loop_detection.py of the drone is a policy and could not be loaded." in loop.told[1][1]


def test_a_slow_handler_is_reported_and_switched_off_and_a_slow_policy_blocks(tmp_path: Path) -> None:
    waits = WAITS + "\ndef extend(api): api.on({!r}, wait)"
    write(tmp_path, "extensions/slow.py", waits.format("turn_start"))
    write(tmp_path, "extensions/strict.py", "policy = True\n" + waits.format("tool_call"))
    loop = ExtendedLoop([calls("one"), calls("two"), says("Done.")], home=tmp_path, bounds={"call_seconds": 0.1})
    loop.run()
    failed = [("slow", "turn_start"), ("strict", "tool_call")]
    assert loop.reports == [
        f"The extension extensions/{name}.py of the drone failed on {event}: took longer than 0.1 s; "
        "it is disabled for this run."
        for name, event in failed
    ]
    assert (loop.toolbox.ran, len(loop.model.asked)) == ([], 3)


def test_reload_merges_anew(tmp_path: Path) -> None:
    file = write(tmp_path, "extensions/a.py", NOTES.format(word="old"))
    write(tmp_path, "guardrails/gone.py", BLOCKS.format(name="gone", policy=True, reason="no"))
    reloaded: list[str] = []
    loop = ExtendedLoop(SCRIPT, home=tmp_path, bounds={"on_reload": lambda: reloaded.append("once")})
    file.write_text(file.read_text().replace("old", "new"))
    (tmp_path / "guardrails" / "gone.py").unlink()
    write(tmp_path, "guardrails/come.py", f"{RULE}\nguardrail = R()")
    loop.extensions.reload()
    loop.run()
    assert loop.agent.transcript[0].content == "You are tested. new"
    assert loop.extensions.guardrails.names == ["loop_detection", "come"]
    assert (len(loop.toolbox.ran), reloaded) == (1, ["once"])


def test_an_installed_package_brings_extensions_by_its_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "fleet_notes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fleet-notes\nVersion: 1.0\n")
    points = "notes = fleet_notes:extend\nwhole = fleet_notes\nbroken = fleet_notes:nothing\n"
    (info / "entry_points.txt").write_text(f"[dronefleet.extensions]\n{points}")
    (tmp_path / "fleet_notes.py").write_text("def extend(api): api.on('input', lambda event, context: None)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loop = ExtendedLoop(SCRIPT, installed=True)
    assert loop.extensions.hooks.listens("input")
    assert loop.extensions.loaded == tuple(
        f"the installed extension {words}" for words in ("notes (fleet_notes:extend)", "whole (fleet_notes)")
    )
    assert "broken (fleet_notes:nothing) could not be loaded: AttributeError" in loop.reports[0]
