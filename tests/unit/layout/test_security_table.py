"""The table of attacks in the documentation names tests that exist, each with a change that makes it fail."""

from __future__ import annotations

import re
from collections import Counter

from tests.hostile.removed_defenses import REMOVALS
from tests.support.documents import INSTALLED, ROOT

_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def test_every_row_is_complete_and_names_a_test_of_its_own_that_exists() -> None:
    rows = table()
    missing = [row for row in rows if not (found := _TEST.findall(row[3])) or any(not exists(*each) for each in found)]
    assert missing == []
    assert len(rows) > 40
    assert [row for row in rows if not all(row[1:])] == []
    assert rows[0][0]
    assert len({row[3] for row in rows}) == len(rows)


def test_every_test_of_the_table_has_one_change_that_removes_its_defense() -> None:
    named = Counter("::".join(_TEST.findall(row[3])[0]) for row in table())
    assert Counter(removal.test for removal in REMOVALS) == named


def test_what_removes_a_defense_finds_it_in_the_source() -> None:
    for removal in REMOVALS:
        assert removal.edits
        for edit in removal.edits:
            text = (INSTALLED / edit.path).read_text(encoding="utf-8")
            assert edit.applied(text) != text


def table() -> list[list[str]]:
    """Attacker, attempt, defense and test of each row."""
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    lines = page.split("\n## Attacks\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return rows[2:]


def exists(file: str, name: str) -> bool:
    path = ROOT / "tests" / file
    return path.is_file() and f"def {name}(" in path.read_text(encoding="utf-8")
