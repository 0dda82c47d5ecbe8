"""The drone's own checks, as far as they need nothing but their input."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from drone.installation.doctor import check_clock, check_policy
from shared.terminal.doctor import FAIL, OK, WARN, State

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def test_a_clock_may_be_off_by_a_few_seconds() -> None:
    cases: list[tuple[int, State, str]] = [
        (0, OK, "same as the server's"),
        (5, OK, "same as the server's"),
        (6, WARN, "6 s ahead of the server's"),
        (-20, WARN, "20 s behind the server's"),
        (61, FAIL, "61 s ahead of the server's"),
    ]
    for ahead, state, found in cases:
        check = check_clock(NOON + timedelta(seconds=ahead), NOON)

        assert (check.state, check.found) == (state, found), ahead


def test_what_the_owner_allows_is_told(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('[repositories]\nextensions = true\n[keys]\nKEY = ["h"]\n')

    assert check_policy(file).found.startswith("allows extensions, key KEY ")
