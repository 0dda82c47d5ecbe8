"""The gate runs failed cases once more, names those that pass then, and stays red for everything else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / ".ci" / "gate.py"
FLAKY = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("case", range({cases}))
def test_fails_once(case):
    seen = Path(f"seen-{{case}}")
    first = not seen.exists()
    seen.touch()
    assert not first, "the machine was busy"
"""


def gate(directory: Path, **files: str) -> subprocess.CompletedProcess[str]:
    (directory / "pytest.ini").touch()
    for name, text in files.items():
        (directory / f"{name}.py").write_text(text)
    command = [sys.executable, str(SCRIPT), "-q", "-p", "no:schemathesis", "-n", "2"]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_a_case_that_passes_in_the_second_run_is_named_as_unstable_with_its_first_error(tmp_path: Path) -> None:
    ended = gate(tmp_path, test_flaky=FLAKY.format(cases=2), test_sound="def test_passes(): pass")

    assert ended.returncode == 0
    assert [line for line in ended.stdout.splitlines() if line.startswith("unstable  ")] == [
        "unstable  test_flaky.py::test_fails_once[0] - AssertionError: the machine was busy",
        "unstable  test_flaky.py::test_fails_once[1] - AssertionError: the machine was busy",
    ]


RED: dict[str, tuple[dict[str, str], bool]] = {
    "ends early": ({"conftest": "import os\ndef pytest_configure(): os._exit(0)"}, False),
    "fails again": ({"test_broken": "def test_fails(): assert 1 == 2"}, True),
    "skipped then": ({"test_skipped": FLAKY.format(cases=1) + "    pytest.skip('in the second run')"}, True),
    "eleven failed": ({"test_flaky": FLAKY.format(cases=11)}, False),
    "collection": ({"test_flaky": FLAKY.format(cases=1), "test_other": "import no_such_module"}, False),
    "harness": ({"test_flaky": FLAKY.format(cases=1), "conftest": "def pytest_sessionfinish(): raise OSError"}, False),
}
"""The files of a project, and whether its failed cases are run once more."""


@pytest.mark.parametrize("name", RED)
def test_the_gate_is_red(tmp_path: Path, name: str) -> None:
    files, twice = RED[name]
    ended = gate(tmp_path, **files)

    assert ended.returncode != 0
    assert ("cases are run once more" in ended.stdout) == twice
