"""How a doctor's checks are shown, mended and turned into an exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from shared.errors import Precondition
from shared.terminal.doctor import FAIL, OK, WARN, Check, render, repair, run_doctor, without_secrets

FINE = Check("D-GIT", OK, "git", "2.39.5", "install git")
WORRYING = Check("D-DISK", WARN, "disk", "2 GB free", "free some")
BAD = Check("D-FILES", FAIL, "key files", "others can read them", "chmod 600 key")


def refuse() -> None:
    raise Precondition("not possible", code="E-X")


def test_each_check_has_state_finding_code_and_its_fix_below() -> None:
    assert render([FINE, WORRYING, BAD]).splitlines() == [
        "  ok    git        2.39.5  [D-GIT]",
        "  warn  disk       2 GB free  [D-DISK]",
        "        → free some",
        "  FAIL  key files  others can read them  [D-FILES]",
        "        → chmod 600 key",
        "  1 failure, 1 warning",
    ]


def test_a_sound_system_is_told_in_one_line_more() -> None:
    assert render([FINE]).splitlines()[-1] == "  no problems found"


@pytest.mark.parametrize(("checks", "code"), [([FINE], 0), ([FINE, WORRYING], 0), ([WORRYING, BAD], 1), ([], 0)])
def test_only_a_failure_makes_a_doctor_fail(checks: list[Check], code: int) -> None:
    assert run_doctor(lambda: checks) == code


def test_the_json_document_has_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    run_doctor(lambda: [FINE, BAD], as_json=True, extra={"url": "http://x"})

    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["url", "checks", "ok"]
    assert found["ok"] is False
    assert found["checks"][1] == {
        "code": "D-FILES",
        "state": "FAIL",
        "what": "key files",
        "found": "others can read them",
        "fix": "chmod 600 key",
        "fixable": False,
    }


def mendable(state: dict[str, bool]) -> Callable[[], list[Check]]:
    """A system that is ill until its check's safe fix was applied."""
    ill = replace(BAD, safe_fix=lambda: state.update(mended=True))
    return lambda: [FINE if state.get("mended") else ill]


def test_fix_applies_the_safe_fixes_and_looks_again(capsys: pytest.CaptureFixture[str]) -> None:
    state: dict[str, bool] = {}

    assert run_doctor(mendable(state), fix=True) == 0

    told = capsys.readouterr()
    assert state == {"mended": True}
    assert told.err == "fixed: key files: chmod 600 key\n"
    assert "FAIL" not in told.out


def test_without_fix_nothing_is_touched(capsys: pytest.CaptureFixture[str]) -> None:
    state: dict[str, bool] = {}

    assert run_doctor(mendable(state)) == 1

    assert state == {}
    assert "--fix can fix 1" in capsys.readouterr().out


def test_a_fix_that_does_not_work_is_said_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[str] = []
    checks = [replace(BAD, safe_fix=refuse), replace(WORRYING, safe_fix=lambda: done.append("disk"))]

    assert repair(checks) == 1

    assert done == ["disk"]
    assert "not fixed: key files: not possible" in capsys.readouterr().err


def test_what_is_well_is_never_fixed() -> None:
    assert repair([replace(FINE, safe_fix=refuse)]) == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://drone:s3cret@h:6379/0", "redis://drone:***@h:6379/0"),
        ("redis://:s3cret@h/0", "redis://:***@h/0"),
        ("https://h/x?token=fj_0123456789_abcdef", "https://h/x?token=fj_***"),
        ("Bearer fa_abcdefghijkl", "Bearer fa_***"),
        ("postgresql://u:p%40w@h/db and http://h:8420/", "postgresql://u:***@h/db and http://h:8420/"),
    ],
)
def test_no_check_shows_a_secret(text: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert without_secrets(text) == shown

    run_doctor(lambda: [replace(BAD, found=text, fix=text)], as_json=True)
    assert text not in capsys.readouterr().out
