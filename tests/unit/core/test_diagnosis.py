"""How a doctor's checks are shown, mended and turned into an exit code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from shared.errors import Precondition
from shared.terminal.doctor import FAIL, OK, WARN, Check, repair, run_doctor, without_secrets

FINE = Check("D-GIT", OK, "git", "2.39.5", "install git")
WORRYING = Check("D-DISK", WARN, "disk", "2 GB free", "free some")
BAD = Check("D-FILES", FAIL, "key files", "others can read them", "chmod 600 key")


def refuse() -> None:
    raise Precondition("not possible", code="E-X")


def test_only_a_failure_makes_a_doctor_fail() -> None:
    assert [run_doctor(lambda found=checks: found) for checks in ([FINE, WORRYING], [WORRYING, BAD], [])] == [0, 1, 0]


def mendable(state: dict[str, bool]) -> Callable[[], list[Check]]:
    """A system that is ill until its check's safe fix was applied."""
    ill = replace(BAD, safe_fix=lambda: state.update(mended=True))
    return lambda: [FINE if state.get("mended") else ill]


def test_fix_applies_the_safe_fixes_and_looks_again(capsys: pytest.CaptureFixture[str]) -> None:
    state: dict[str, bool] = {}

    assert run_doctor(mendable(state)) == 1
    assert (state, "--fix" in capsys.readouterr().out) == ({}, True)

    assert run_doctor(mendable(state), fix=True) == 0
    assert (state, "FAIL" in capsys.readouterr().out) == ({"mended": True}, False)


def test_a_fix_that_does_not_work_is_said_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[str] = []
    checks = [replace(BAD, safe_fix=refuse), replace(WORRYING, safe_fix=lambda: done.append("disk"))]

    assert repair(checks) == 1

    assert done == ["disk"]
    assert "key files" in capsys.readouterr().err
    assert repair([replace(FINE, safe_fix=refuse)]) == 0


def test_no_check_shows_a_secret(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {
        "redis://drone:s3cret@h:6379/0": "redis://drone:***@h:6379/0",
        "redis://:s3cret@h/0": "redis://:***@h/0",
        "https://h/x?token=fj_0123456789_abcdef": "https://h/x?token=fj_***",
        "Bearer fa_abcdefghijkl": "Bearer fa_***",
        f"GET /answer/fq_{64 * '0'}": "GET /answer/fq_***",
        f"/login?link=fl_{64 * '0'} fs_{64 * '0'}": "/login?link=fl_*** fs_***",
        "postgresql://u:p%40w@h/db and http://h:8420/": "postgresql://u:***@h/db and http://h:8420/",
    }
    assert {text: without_secrets(text) for text in shown} == shown
    run_doctor(lambda: [replace(BAD, found=text, fix=text) for text in shown], as_json=True)
    told = capsys.readouterr().out
    assert [text for text in shown if text in told] == []
