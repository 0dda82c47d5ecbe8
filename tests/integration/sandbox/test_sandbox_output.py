"""What a command prints arrives in order, in bounded memory, and whatever bytes it is made of."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

from drone.sandbox import CommandSpec, Sandbox, choose
from drone.sandbox.output import LIVE_CHARACTERS, HeadAndTail, LogFile
from tests.support.command_time import LONG
from tests.support.disks import Disk
from tests.support.sandboxes import shell

DIRECT = choose("none", os.environ)
"""The drone reads the output of every kind of sandbox in the same way."""


def test_stdout_and_stderr_come_as_one_text_in_order(sandbox: Sandbox, tmp_path: Path) -> None:
    result = shell(sandbox, tmp_path, "echo 1; echo 2 >&2; echo 3; echo 4 >&2; cat; exit 7")

    assert (result.output, result.return_code) == ("1\n2\n3\n4\n", 7)


def test_a_command_of_any_length_runs_like_a_short_one(sandbox: Sandbox, tmp_path: Path) -> None:
    workspace, scratch = tmp_path / "work", tmp_path / "scratch"
    workspace.mkdir()
    scratch.mkdir()
    big, in_session = "x" * 140_000, sandbox.for_session(scratch=scratch)
    wrong = {}
    for name, line, expected in (
        ("heredoc", f"cat > b <<'E'\n{big}\nE\nwc -c < b; pwd", ("140001\n" + f"{workspace}\n", 0)),
        ("just below the system's limit", f": {big[:131_000]}\necho done", ("done\n", 0)),
        ("bytes, not characters", f": {'ä' * 70_000}\necho done", ("done\n", 0)),
        ("no stdin, and an exit code", f": {big}\ncat; echo end; exit 7", ("end\n", 7)),
        ("bytes that are not UTF-8", f": {big}\nprintf '\udcff' | wc -c", ("1\n", 0)),
        ("removes its own file", f': {big}\nrm -f "$0"; mkdir "$0"; echo {"y" * 140_000} | wc -c', ("140001\n", 0)),
        ("megabytes", f"cat <<'E' | wc -c\n{big * 20}\nE", ("2800001\n", 0)),
    ):
        for place in (sandbox, in_session) if name == "heredoc" else (in_session,):
            result = shell(place, workspace, line)
            if (result.output, result.return_code) != expected:
                wrong[name] = (result.output[:200], result.return_code)
    left = [each.name for each in (scratch / "tmp").iterdir() if each.is_file()]
    assert (wrong, left) == ({}, [])


def test_bytes_that_are_no_text_become_visible_signs_that_can_be_stored(tmp_path: Path) -> None:
    lines = (r"a\000b\377\376c\300\257", r"\355\240\200", r"\360\237\232", r"\033[31mred\033[0m\r\007")

    result = shell(
        DIRECT, tmp_path, "".join(f"printf '{line}\\n'; " for line in lines) + r"printf '\303'; printf '\274'"
    )

    shown = ["a␀b\ufffd\ufffdc\ufffd\ufffd", "\ufffd\ufffd\ufffd", "\ufffd", "\x1b[31mred\x1b[0m\r\x07", "ü"]
    assert result.output.split("\n") == shown
    assert json.loads(json.dumps(result.output)).encode()


def test_a_long_output_is_shown_as_head_and_tail_with_the_whole_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "1.log"

    result = DIRECT.run(CommandSpec("seq 1 5000", workspace=tmp_path, timeout=60, log=log))

    assert result.output.startswith("1\n2\n")
    assert result.output.endswith("\n4999\n5000\n")
    assert "[… 13,893 characters elided …]" in result.output
    assert result.log == log
    assert log.read_text().splitlines() == [str(number) for number in range(1, 5001)]
    short = DIRECT.run(CommandSpec("echo short", workspace=tmp_path, timeout=60, log=tmp_path / "1.log"))
    assert (short.log, (tmp_path / "1.log").exists()) == (None, False)


def test_live_output_comes_in_pieces_as_it_is_printed_and_after_a_bound_is_only_seen_to_come(tmp_path: Path) -> None:
    pieces: list[str] = []
    line = "echo one; sleep 0.3; seq 1 100000; for i in 1 2 3; do sleep 0.4; echo on; done"

    DIRECT.run(CommandSpec(line, workspace=tmp_path, timeout=60, on_output=pieces.append))

    assert pieces[0] == "one\n"
    assert LIVE_CHARACTERS < len("".join(pieces)) < LIVE_CHARACTERS + 200
    assert "not shown live" in [piece for piece in pieces if piece][-1]
    assert pieces.count("") >= 3


def test_200_mb_of_output_are_counted_and_cost_little_memory_and_a_bounded_log(tmp_path: Path) -> None:
    line = "printf first; head -c 200000000 /dev/zero | tr '\\0' x; printf last"

    tracemalloc.start()
    result = DIRECT.run(CommandSpec(line, workspace=tmp_path, timeout=LONG, log=tmp_path / "log"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert (result.output_bytes, len(result.output) < 10_200) == (200_000_009, True)
    assert (result.output.startswith("firstxxx"), result.output.endswith("xxxlast")) == (True, True)
    assert 50_000_000 < (tmp_path / "log").stat().st_size < 53_000_000
    assert peak < 16_000_000


def test_head_and_tail_meet_without_a_gap_at_the_limit() -> None:
    text = HeadAndTail(10)

    text.add("01234")
    text.add("56789")

    assert (text.text(), text.elided) == ("0123456789", 0)


def test_a_log_that_wrapped_many_times_ends_with_the_last_bytes(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log", 20)

    log.write(b"ABCDEFGHIJ" + b"-" * 77)
    log.write(b"0123456789")
    log.write(b"abc")
    log.close(keep=True)

    assert (tmp_path / "log").read_text() == "ABCDEFGHIJ\n[… 80 bytes elided …]\n3456789abc"


def test_a_command_whose_log_cannot_be_written_runs_to_its_end_without_one(small_disk: Disk, tmp_path: Path) -> None:
    small_disk.fill(leave=64 * 1024)
    for log in (small_disk.path / "1.log", small_disk.path / "ballast" / "2.log"):
        result = DIRECT.run(CommandSpec("seq 1 200000", workspace=tmp_path, timeout=LONG, log=log))
        assert (result.return_code, result.output.endswith("\n200000\n")) == (0, True)
        assert (result.log, bool(result.no_log)) == (None, True)
    short = DIRECT.run(CommandSpec("echo short", workspace=tmp_path, timeout=LONG, log=log))
    assert (short.output, short.no_log) == ("short\n", "")

    small_disk.clear()
    small_disk.fill(leave=3_000_000)
    kept = LogFile(small_disk.path / "3.log", 2_000_000)
    kept.write(b"x" * 3_000_000)
    assert (kept.close(keep=True), bool(kept.problem)) == (None, True), "the ring has no room for its copy"
    small_disk.clear()
    assert list(small_disk.path.iterdir()) == []
