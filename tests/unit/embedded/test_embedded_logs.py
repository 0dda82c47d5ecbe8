"""Logs of the parts of `fleet up`: last lines, new lines, rotation."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from control_plane.server.embedded.logs import last_lines, new_lines, rotate


def test_the_last_lines_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    lines = [f"line {number} {'x' * (number % 90)}" for number in range(10_000)]
    log.write_text("\n".join(lines) + "\n")
    for count in (0, 1, 5000, 20_000):
        assert last_lines(log, count).splitlines() == (lines[-count:] if count else [])
    log.write_bytes(b"\xff\xfe\nwhole\npart")
    assert last_lines(log, 2).splitlines() == ["whole", "part"]
    log.write_bytes(b"")
    assert last_lines(log, 5) == ""


def test_a_log_over_the_limit_is_rotated_and_its_writer_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("ab", buffering=0) as part:
        for number in range(7):
            part.write(f"round {number}\n".encode() * 100)
            assert rotate(log, largest=500, kept=4)
            assert log.read_bytes() == b""
        part.write(b"now\n")
        assert not rotate(log, largest=500, kept=4)
    kept = {path.name: path.read_text().splitlines()[0] for path in sorted(tmp_path.iterdir())}
    assert kept == {
        "server.log": "now",
        "server.log.1": "round 6",
        "server.log.2": "round 5",
        "server.log.3": "round 4",
    }


def test_a_log_for_whose_copy_there_is_no_room_keeps_all_its_files(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    files = {"server.log": b"now" * 500, "server.log.1": b"1", "server.log.2": b"2", "server.log.3": b"3"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        for _ in range(4):
            with pytest.raises(OSError, match="too large"):
                rotate(log, largest=500, kept=4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_new_lines_come_whole_and_survive_a_rotation(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("old\n")
    coming = new_lines({"server": log})
    with log.open("ab", buffering=0) as part:
        part.write(b"one\ntwo\nthr")
        assert next(coming) == ("server", "one\ntwo")
        part.write(b"ee\n")
        assert next(coming) == ("server", "three")
        rotate(log, largest=1)
        part.write(b"five\n")
        assert next(coming) == ("server", "five")
