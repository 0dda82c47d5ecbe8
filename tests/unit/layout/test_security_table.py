"""The table of attacks in the documentation names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def test_every_row_names_one_test_that_exists() -> None:
    rows = table()
    missing = [row for row in rows if not (found := _TEST.findall(row[3])) or any(not exists(*each) for each in found)]
    assert missing == []
    assert len(rows) > 40


def test_no_cell_but_the_attackers_is_empty_and_no_test_stands_twice() -> None:
    rows = table()
    assert [row for row in rows if not all(row[1:])] == []
    assert rows[0][0]
    tests = [row[3] for row in rows]
    assert len(set(tests)) == len(tests)


def table() -> list[list[str]]:
    """Attacker, attempt, defense and test of each row."""
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    lines = page.split("\n## Attacks\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return rows[2:]


def exists(file: str, name: str) -> bool:
    path = ROOT / "tests" / file
    return path.is_file() and f"def {name}(" in path.read_text(encoding="utf-8")
