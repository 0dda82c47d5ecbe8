"""Workspaces whose files vanish, are locked, special, huge or no text: a clear answer, and nothing is lost."""

from __future__ import annotations

import os
import socket
import stat
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.toolboxes import Call


@pytest.fixture
def churning(workspace: Path) -> Iterator[None]:
    """Files and directories come and go as long as the test lasts."""
    ended = threading.Event()

    def churn() -> None:
        while not ended.is_set():
            (workspace / "deep").mkdir()
            [(workspace / "deep" / f"{number}").write_text("word\n") for number in range(20)]
            (workspace / "passing").write_text("word\n")
            [(workspace / "deep" / f"{number}").unlink() for number in range(20)]
            (workspace / "deep").rmdir()
            (workspace / "passing").unlink()

    thread = threading.Thread(target=churn)
    thread.start()
    yield
    ended.set()
    thread.join()


def test_what_comes_and_goes_breaks_no_search_and_no_listing(call: Call, workspace: Path, churning: None) -> None:
    (workspace / "stays").write_text("word\n")

    listings = [call("file_read", path=".") for _ in range(40)]
    searches = [call(tool, pattern=pattern) for _ in range(3) for tool, pattern in (("grep", "word"), ("glob", "*"))]

    assert all("stays" in answer.output and not answer.is_error for answer in [*listings, *searches])


def test_a_file_that_is_gone_when_it_is_edited_is_wrong_use(call: Call, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "a").write_text("one")
    call("editor", command="str_replace", path="sub/a", old_str="one", new_str="two")
    (workspace / "sub" / "a").unlink()
    (workspace / "sub").rmdir()

    undone = call("editor", command="undo_edit", path="sub/a")

    assert undone.output.startswith("Error: file 'sub/a' not found")
    assert call("file_read", path="sub/a").output == undone.output
    assert call("file_write", path="sub/a", content="new").output == "wrote 3 bytes to sub/a"


def test_a_read_only_file_or_directory_is_not_written_and_says_so(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("one")
    (workspace / "a").chmod(0o444)
    (workspace / "sub").mkdir()
    (workspace / "sub" / "a").write_text("one")
    (workspace / "sub").chmod(0o555)

    for path in ("a", "sub/a"):
        results = [
            call("file_write", path=path, content="two"),
            call("editor", command="str_replace", path=path, old_str="one", new_str="two"),
        ]
        assert ["is read-only" in result.output and result.is_error for result in results] == [True, True], path
        assert (workspace / path).read_text() == "one"
    assert call("file_write", path="sub/new", content="two").is_error
    assert [path.name for path in (workspace / "sub").iterdir()] == ["a"]


def test_a_file_that_cannot_be_written_stays_with_nothing_beside_it(
    call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "a").write_text("one")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    result = call("file_write", path="a", content="two")

    assert result.output == "Error: 'a' cannot be written: No space left on device; it is unchanged"
    assert [(path.name, path.read_text()) for path in workspace.iterdir()] == [("a", "one")]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_devices_are_refused_at_once(call: Call, workspace: Path) -> None:
    device = workspace / "device"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    results = [
        call("file_read", path="device"),
        call("file_write", path="device", content="x"),
        call("editor", command="insert", path="device", insert_line=1, new_str="x"),
        call("grep", pattern="x", path="device"),
    ]
    assert all(result.is_error and "a device" in result.output for result in results)
    assert call("grep", pattern="x").output == "(no line matches)"
    assert stat.S_ISCHR(device.stat().st_mode)


def test_fifos_and_sockets_are_refused_at_once(call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(workspace / "fifo")
    monkeypatch.chdir(workspace)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        refused = [
            call("editor", command="undo_edit", path="fifo"),
            call("editor", command="insert", path="socket", insert_line=1, new_str="x"),
            call("file_read", mode="search", search_pattern="x", path="fifo"),
            call("file_write", path="fifo/below", content="x"),
            call("file_write", path="fifo", content="x"),
            call("file_read", path="fifo"),
            call("file_read", path="socket"),
        ]
        listing = call("file_read", path=".").output

    assert all(result.is_error for result in refused)
    assert listing == "fifo  (not a file)\nsocket  (not a file)"


def test_a_file_of_5_gb_can_be_read_replaced_and_found_and_is_not_loaded(call: Call, workspace: Path) -> None:
    with (workspace / "huge").open("wb") as file:
        file.truncate(5_000_000_000)
    with (workspace / "text").open("wb") as file:
        file.write(b"first\nsecond\n" + b"x" * 20_000)
        file.truncate(5_000_000_000)

    tracemalloc.start()
    assert "binary file of 5,000,000,000 bytes" in call("file_read", path="huge").output
    some = call("file_read", mode="lines", path="text", start_line=1, end_line=2).output
    assert some.startswith("     1\tfirst\n     2\tsecond")
    assert "larger than" in call("editor", command="insert", path="huge", insert_line=1, new_str="x").output
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000
    assert call("file_write", path="huge", content="small").output == "wrote 5 bytes to huge"
    assert call("file_read", path=".").output == "huge  (5 bytes)\ntext  (5,000,000,000 bytes)"


def test_a_link_to_a_file_whose_name_is_not_utf8_is_edited_and_answered_in_utf8(call: Call, workspace: Path) -> None:
    (workspace / "menu").symlink_to(os.fsdecode(b"caf\xe9"))
    answers = [
        call("file_write", path="menu", content="one"),
        call("editor", command="str_replace", path="menu", old_str="one", new_str="two"),
        call("editor", command="undo_edit", path="menu"),
    ]
    assert [answer.output.encode().decode().count("caf\N{REPLACEMENT CHARACTER}") for answer in answers] == [1] * 3
    assert (workspace / "menu").read_text() == "one"


ENDS = [
    b"\n",
    b"\r\n",
    b"\r",
    b"\n\r",
    b"\x0c",
    b"\x85",
    b"\xe2\x80\xa8",
    b"\xff",
    b"\0",
    b"\xef\xbb\xbf",
    b"line",
    b"",
]
MIXED = st.lists(st.sampled_from(ENDS), max_size=12).map(b"".join)


@given(MIXED, MIXED, st.sampled_from(["", "new", "naïve", "a\tb"]))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_replaced_text_leaves_every_other_byte_as_it_was(
    call: Call, workspace: Path, head: bytes, tail: bytes, new: str
) -> None:
    (workspace / "a").write_bytes(head + b"<here>" + tail)

    result = call("editor", command="str_replace", path="a", old_str="<here>", new_str=new)
    edited = (workspace / "a").read_bytes()
    call("editor", command="undo_edit", path="a")

    # A file is never written in two encodings.
    assert result.is_error is (not new.isascii() and not _is_utf8(head + tail))
    assert edited == head + (b"<here>" if result.is_error else new.encode()) + tail
    assert (workspace / "a").read_bytes() == head + b"<here>" + tail


LINES = st.lists(st.sampled_from(["a\n", "b\r\n", "b\n", "c\r\n", "\n", "\r\n", "d\re\n"]), max_size=5).map("".join)


@given(st.tuples(LINES, LINES, LINES, LINES))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_replaced_lines_leave_every_other_byte_and_their_ends(
    call: Call, workspace: Path, texts: tuple[str, str, str, str]
) -> None:
    head, old, new, tail = texts
    before, given = f"{head}<here>\n{old}{tail}".encode(), f"<here>\n{old}".replace("\r\n", "\n")
    (workspace / "a").write_bytes(before)

    call("editor", command="str_replace", path="a", old_str=given, new_str=new + given)
    longer = (workspace / "a").read_bytes()
    call("editor", command="str_replace", path="a", old_str=given, new_str=new)
    replaced = (workspace / "a").read_bytes().decode()

    assert longer.endswith(f"<here>\n{old}{tail}".encode()), "equal lines keep their ends"
    assert longer.startswith(head.encode())
    flat = new.replace("\r\n", "\n")
    assert longer.decode().replace("\r\n", "\n") == f"{head}{flat}{given}{tail}".replace("\r\n", "\n")
    assert (replaced.startswith(head), replaced.endswith(tail)) == (True, True)


def _is_utf8(content: bytes) -> bool:
    return content.decode(errors="replace").encode() == content


@given(MIXED, st.integers(1, 6))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_inserted_line_leaves_every_other_byte_as_it_was(
    call: Call, workspace: Path, content: bytes, line: int
) -> None:
    (workspace / "a").write_bytes(content)

    result = call("editor", command="insert", path="a", insert_line=line, new_str="<new>")
    head, _, tail = (workspace / "a").read_bytes().partition(b"<new>")

    # Where it is needed, a line's end is added: after the last line before it, or after itself.
    ends = [b"", b"\n", b"\r\n"]
    assert content in [head.removesuffix(one) + tail.removeprefix(other) for one in ends for other in ends]
    assert result.is_error or head.count(b"\n") == line - 1
