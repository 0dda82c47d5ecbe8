"""A random ten of the rules in docs/coverage.md: broken in a copy of the code, each fails the test that shows it."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator

import pytest

from tests.coverage.broken_rules import BROKEN, SEED
from tests.hostile.changed_copies import Copy, fresh_copy
from tests.support.documents import ROOT

LINES = dict(re.findall(r"(?m)^\| ([SOGM]-\d{3}) \| .+? \| (.+) \|$", (ROOT / "docs" / "coverage.md").read_text()))


@pytest.fixture(scope="module")
def copy() -> Iterator[Copy]:
    with fresh_copy() as made:
        yield made


def test_the_rules_are_those_of_the_seed() -> None:
    sys.stdout.write(f"seed {SEED}\n")
    assert set(BROKEN) == set(random.Random(SEED).sample(sorted(LINES, key=list(LINES).index), len(BROKEN)))


def test_the_line_of_each_rule_names_the_test_and_the_change_can_be_made() -> None:
    unnamed = [rule for rule, removal in BROKEN.items() if f"`tests/{removal.test}`" not in LINES[rule]]
    assert unnamed == []
    for edit in (edit for removal in BROKEN.values() for edit in removal.edits):
        assert edit.applied((ROOT / edit.path).read_text(encoding="utf-8")) != ""


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_fails_its_test(copy: Copy, rule: str) -> None:
    with copy.without(BROKEN[rule]):
        verdict = copy.test([BROKEN[rule].selection], "-x", seconds=600)
    assert (verdict.exit_code, verdict.failed) == (1, 1), verdict.output[-5000:]
