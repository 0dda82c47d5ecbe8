"""Each test that the security table names fails once the defense of its row is removed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.changed_copies import Copy, fresh_copy
from tests.hostile.removed_defenses import REMOVALS
from tests.hostile.removed_defenses.removal import Edit, Removal

pytestmark = [pytest.mark.hostile, pytest.mark.long, pytest.mark.timeout(900)]

SECONDS = 600.0
SOURCES = "import control_plane, drone, shared; print(*(each.__file__ for each in (control_plane, drone, shared)))"
IN_CHILDREN = """
import multiprocessing
for method in ("spawn", "forkserver"):
    with multiprocessing.get_context(method).Pool(1) as pool:
        print(*pool.map(eval, [f"__import__('{name}').__file__" for name in ("control_plane", "drone", "shared")]))
"""
PROGRAMS = ("control_plane", "drone")
MAIN = "def main() -> None:\n"


@pytest.fixture(scope="module")
def copy() -> Iterator[Copy]:
    with fresh_copy() as made:
        yield made


def test_processes_of_a_copy_and_their_children_import_the_copy(copy: Copy) -> None:
    expected = " ".join(str(copy.root / name / "__init__.py") for name in ("control_plane", "drone", "shared"))
    for code, lines in ((SOURCES, 1), (IN_CHILDREN, 2)):
        done = copy.run([copy.python, "-P", "-c", code], seconds=60)
        assert done.stdout.splitlines() == [expected] * lines


def test_the_programs_of_a_copy_run_its_code(copy: Copy) -> None:
    edits = [
        Edit(f"{name}/cli/program.py", MAIN, f"{MAIN}    raise SystemExit('copy of {name}')\n") for name in PROGRAMS
    ]
    with copy.without(Removal("", tuple(edits))):
        said = [copy.run([copy.python.with_name(name)], seconds=60).stdout for name in ("fleet", "drone")]
    assert said == [f"copy of {name}\n" for name in PROGRAMS]


@pytest.mark.timeout(3600)
def test_every_named_test_passes_in_an_unchanged_copy(copy: Copy) -> None:
    verdict = copy.test([each.selection for each in REMOVALS], seconds=3500)
    assert (verdict.exit_code, verdict.failed) == (0, 0), verdict.output[-5000:]


@pytest.mark.parametrize("removal", REMOVALS, ids=lambda removal: removal.test.rpartition("::")[2])
def test_a_test_fails_without_the_defense_of_its_row(copy: Copy, removal: Removal) -> None:
    with copy.without(removal):
        verdict = copy.test([removal.selection], "-x", seconds=SECONDS)
    if verdict.is_skipped:
        pytest.skip("the test needs a program that is not installed here")
    # 1: tests ran and failed; other codes are for errors of usage and collection. An error of a fixture is no failure.
    assert (verdict.exit_code, verdict.failed) == (1, 1), verdict.output[-5000:]
