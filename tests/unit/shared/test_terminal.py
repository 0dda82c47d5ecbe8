"""What a command writes: tables that fit every terminal, logs without secrets, and files that are closed to others."""

from __future__ import annotations

import json
import logging
import stat
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from shared.terminal import logs
from shared.terminal.output import fitted, print_table
from shared.terminal.private_files import make_private

COLUMNS = ("ORDER", "STATUS", "TITLE", "PROJECT", "REASON")
ROWS = [
    ("0123456789ab", "awaiting_approval", "Fix the login page so that it works\nagain", "web", "waiting for approval"),
    (
        "ba9876543210",
        "succeeded",
        "古い会話は短い要約に置き換えられます。" * 3,
        None,
        "The model submitted its work. " * 4,
    ),
]


def printed(capsys: pytest.CaptureFixture[str], width: int) -> list[str]:
    print_table(COLUMNS, ROWS, width=width)
    return capsys.readouterr().out.splitlines()


def test_ids_and_states_stay_whole_each_row_is_one_line_and_columns_are_left_out_from_the_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for width, headings in ((40, COLUMNS[:2]), (60, COLUMNS[:3]), (80, COLUMNS[:4]), (120, COLUMNS), (200, COLUMNS)):
        lines = printed(capsys, width)
        assert tuple(lines[0].split()) == headings, width
        assert (len(lines), max(map(cell_len, lines)) <= width) == (1 + len(ROWS), True), width
        assert [line.split()[:2] for line in lines[1:]] == [list(row[:2]) for row in ROWS], width


def test_without_a_terminal_nothing_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, ROWS)
    out = capsys.readouterr().out
    assert "Fix the login page so that it works again" in out
    assert str(ROWS[1][2]) in out
    assert "…" not in out
    print_table(COLUMNS, [], empty="no orders yet")
    assert capsys.readouterr() == ("", "no orders yet\n")


@given(
    widths=st.lists(st.integers(1, 90), min_size=1, max_size=7),
    prose=st.sets(st.integers(0, 6)),
    width=st.integers(10, 200),
)
def test_whatever_fits_is_shown_and_only_prose_is_cut(widths: list[int], prose: set[int], width: int) -> None:
    columns = [f"c{number}" for number in range(len(widths))]
    natural = dict(zip(columns, widths, strict=True))
    cuttable = [name for number, name in enumerate(columns) if number in prose]
    shown = fitted(columns, natural, cuttable, width)
    assert list(shown) == columns[: len(shown)]
    assert all(shown[name] == natural[name] for name in shown if name not in cuttable)
    assert all(min(natural[name], 20) <= shown[name] <= natural[name] for name in shown)
    total = sum(shown.values()) + 2 * (len(shown) - 1)
    assert total <= width or len(shown) <= 2
    if sum(widths) + 2 * (len(widths) - 1) <= width:
        assert shown == natural


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Logging is the process's own: leave it as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    logs.configure(stream=StringIO())  # closes what the test logged to
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    logs._PROCESS.clear()


def test_a_line_is_json_with_the_ids_of_its_process_in_all_threads_and_those_of_its_context_before() -> None:
    stream = StringIO()
    logs.configure(stream=stream)
    logs.bind(drone="d1", run="r1")

    thread = threading.Thread(target=logging.getLogger("library").warning, args=("in a thread",))
    thread.start()
    thread.join()
    with logs.bound(run="r2", order="o1"):
        logs.get("fleet").info("in a context", generation=2)

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(each["event"], each["drone"], each["run"]) for each in lines] == [
        ("in a thread", "d1", "r1"),
        ("in a context", "d1", "r2"),
    ]
    assert (lines[1]["order"], lines[1]["generation"], lines[1]["level"]) == ("o1", 2, "info")
    assert "order" not in lines[0]


def test_no_line_holds_a_password_or_a_token() -> None:
    stream = StringIO()
    logs.configure(stream=stream)

    logs.get("fleet").info("at redis://u:s3cret@h/0", token="fd_0123456789abcdef")
    logging.getLogger("redis").warning("cannot reach %s", "redis://u:s3cret@h/0")

    assert "s3cret" not in stream.getvalue()
    assert "0123456789abcdef" not in stream.getvalue()


def test_a_log_file_is_json_and_is_made_with_its_directory(tmp_path: Path) -> None:
    logs.configure(file=tmp_path / "logs" / "drone.log", level="warning")

    logs.get("drone").info("not this")
    logs.get("drone").warning("but this")

    lines = (tmp_path / "logs" / "drone.log").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["but this"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_files_and_directories_are_closed_and_programs_stay_programs(tmp_path: Path) -> None:
    root = tmp_path / "root"
    inner = root / "inner"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    (inner / "program").touch()
    (root / "elses").touch()
    for path in (root, inner, inner / "program"):
        path.chmod(0o755)
    for path in (inner / "file", root / "elses"):
        path.chmod(0o644)

    assert make_private(root, [inner, root / "missing"]) == ""
    assert [mode(root), mode(inner), mode(inner / "file"), mode(inner / "program")] == [0o700, 0o700, 0o600, 0o700]
    assert mode(root / "elses") == 0o644


def test_links_are_not_followed_and_a_directory_like_tmp_keeps_its_mode(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.touch()
    outside.chmod(0o644)
    root = tmp_path / "root"
    root.mkdir()
    root.chmod(0o1777)
    (root / "ours").mkdir(mode=0o755)
    for link in (root / "link", root / "ours" / "link"):
        link.symlink_to(outside)

    assert make_private(root, [root / "link", root / "ours"]) == ""
    assert (mode(root), mode(outside), mode(root / "ours")) == (0o1777, 0o644, 0o700)


def test_what_cannot_be_changed_is_named_with_the_command_that_changes_it() -> None:
    # The kernel's own files, which even root cannot change.
    left = make_private(Path("/proc/self/missing"), [Path("/proc/self/status"), Path("/proc/self/limits")])

    assert left.startswith("other users may have access to /proc/self/status, /proc/self/limits        next: chmod -R")
