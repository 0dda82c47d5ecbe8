"""The file tools beside a process that exchanges directories for symlinks: nothing outside is read or written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.racers import exchanging
from tests.support.toolboxes import Call

ROUNDS = 400
SECRET = "decoy-of-the-owner"


@pytest.fixture
def outside(workspace: Path) -> Path:
    """A directory with one file, to which no path in the workspace may lead."""
    path = workspace.parent / "outside"
    path.mkdir()
    (path / "file").write_text(SECRET)
    return path


@pytest.fixture
def racer(workspace: Path, outside: Path) -> Iterator[None]:
    """A process that exchanges the directory `sub`, which has a file, and a symlink to `outside`, without a pause."""
    (workspace / "sub").mkdir()
    (workspace / "sub" / "file").write_text("inside")
    (workspace / "link").symlink_to(outside)
    with exchanging(workspace / "sub", workspace / "link"):
        yield


@pytest.mark.usefixtures("racer")
def test_no_read_is_led_outside(call: Call, outside: Path) -> None:
    (outside / SECRET).touch()
    answers = [call("file_read", path=path).output for _ in range(ROUNDS) for path in ("sub/file", "sub")]
    assert {SECRET in answer for answer in answers} == {False}
    for inside in ("inside", "file  (6 bytes)"):
        assert any(inside in answer for answer in answers), inside


@pytest.mark.usefixtures("racer")
def test_no_write_is_led_outside(call: Call, outside: Path) -> None:
    edit = {"command": "insert", "path": "sub/file", "insert_line": 1, "new_str": "edited"}
    answers: list[str] = []
    for _ in range(ROUNDS):
        for name in ("file", "new", "deep/new"):
            answers.append(call("file_write", path=f"sub/{name}", content="written").output)
        answers.append(call("editor", **edit).output)
    assert found_in(outside) == {"file": SECRET}
    assert {SECRET in answer for answer in answers} == {False}
    for done in ("wrote 7 bytes", "edited sub/file"):
        assert any(answer.startswith(done) for answer in answers), done


def found_in(directory: Path) -> dict[str, str]:
    """The files of a directory with their content, and the names of others."""
    return {path.name: path.read_text() if path.is_file() else "" for path in directory.iterdir()}


OUTSIDE = (
    "{outside}/file",
    "{outside}/new",
    "{outside}",
    "../outside/file",
    "sub/../../outside/new",
    "sub/../../outside/new/",
    "{work}/../outside/file",
    "{work}-beside/new",
    "to-file",
    "to-file/",
    "to-parent/file",
    "to-parent/new",
    "to-parent/deep/new",
    "sub/relative/outside/new",
    "dangling",
    "dangling/",
    "dangling/new",
    "chain/new",
    "/proc/self/root{outside}/file",
    "/proc/self/cwd/../../outside/new",
    "/dev/fd/{descriptor}",
    "/proc/self/fd/{directory}/new",
    "to-root{outside}/new",
    "//{outside}/new",
)


def test_no_form_of_a_path_leads_outside(
    call: Call, workspace: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "sub").mkdir()
    (workspace / "to-file").symlink_to(outside / "file")
    (workspace / "to-parent").symlink_to("../outside")
    (workspace / "sub" / "relative").symlink_to("../..")
    (workspace / "dangling").symlink_to(outside / "missing")
    (workspace / "chain").symlink_to("to-parent")
    (workspace / "to-root").symlink_to("/proc/self/root")
    monkeypatch.chdir(workspace / "sub")
    directory, file = os.open(outside, os.O_RDONLY), os.open(outside / "file", os.O_RDONLY)
    for form in OUTSIDE:
        path = form.format(outside=outside, work=workspace, descriptor=file, directory=directory)
        answers = [
            call("file_write", path=path, content="written"),
            call("editor", command="insert", path=path, insert_line=1, new_str="written"),
            call("file_read", path=path),
        ]
        assert all(answer.is_error and SECRET not in answer.output for answer in answers), form
        assert found_in(outside) == {"file": SECRET}, form
        assert sorted(path.name for path in workspace.parent.iterdir()) == ["outside", "work"], form
    os.close(directory)
    os.close(file)


def test_symlinks_and_absolute_paths_inside_still_lead_to_the_file(call: Call, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "link").symlink_to("sub")
    (workspace / "to-file").symlink_to(workspace / "sub" / "file")
    (workspace / "chain").symlink_to("link/../to-file")
    for form in ("sub/file", "{work}/sub/file", "link/file", "to-file", "chain", "{work}/link/../sub/file"):
        (workspace / "sub" / "file").write_text("one\n")
        given = form.format(work=workspace)

        call("editor", command="str_replace", path=given, old_str="one", new_str="two")
        call("file_write", path=given, content=f"{call('file_read', path=given).output.split()[-1]} three")

        assert (workspace / "sub" / "file").read_text() == "two three", form
        assert {path.name for path in workspace.iterdir() if path.is_symlink()} == {"link", "to-file", "chain"}, form
