"""Run pytest with the given arguments, and failed cases once more, alone: `make test PYTEST='$(PY) .ci/gate.py'`.

A busy machine can make a case fail that says nothing about the change under test. The exit status is 0 if each failed
case passes in the second run. It is not 0 if a case fails again, if more than MOST_FAILED cases failed, or if anything
but cases failed: the collection, a fixture of the session, pytest itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

MOST_FAILED = 10
"""More failures than this have one cause, and it is not a busy machine."""
_ALONE = ("--last-failed", "-n", "0")
_RECORD = "--record-to"


class Record:
    """What one run of pytest says about its cases, by node id."""

    def __init__(self) -> None:
        self.status: int | None = None
        """What `pytest.main` returned; None if it did not return, or if the process ended in another way after it."""
        self.passed: set[str] = set()
        self.failed: dict[str, str] = {}
        """The first line of a case's first error. A case fails in its setup and teardown, too."""
        self.collected = True
        """Whether each file could be collected."""

    @property
    def only_cases_failed(self) -> bool:
        return self.status == pytest.ExitCode.TESTS_FAILED and self.collected and bool(self.failed)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            error = str(crash.message if crash else report.longrepr).strip()
            self.failed.setdefault(report.nodeid, error.partition("\n")[0])
        elif report.passed and report.when == "call":
            self.passed.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.collected = self.collected and not report.failed

    def write(self, file: Path) -> None:
        values = {**vars(self), "passed": sorted(self.passed - self.failed.keys())}
        file.write_text(json.dumps(values))

    @classmethod
    def read(cls, file: Path) -> Record:
        record = cls()
        if file.exists():
            vars(record).update(json.loads(file.read_text()))
            record.passed = set(record.passed)
        return record


def main(arguments: list[str]) -> int:
    """The exit status of the gate, after it has printed which cases are unstable."""
    status, first = _run(*arguments)
    if not first.only_cases_failed:
        return status
    if len(first.failed) > MOST_FAILED:
        _say(f"gate: {len(first.failed)} cases failed; at most {MOST_FAILED} are tried again")
        return status

    _say(f"gate: {len(first.failed)} failed cases are run once more, one after the other")
    status, second = _run(*arguments, *_ALONE)
    unstable = sorted(first.failed.keys() & second.passed)
    if unstable:
        _say(f"unstable: {len(unstable)} cases passed only in the second run; fix the cause of each next")
    for case in unstable:
        _say(f"unstable  {case} - {first.failed[case]}")
    # A case that is skipped now, or is not found again, has not passed.
    missing = sorted(first.failed.keys() - second.passed)
    if missing:
        _say(f"gate: not passed in the second run: {', '.join(missing)}")
    return status or bool(missing)


def _run(*arguments: str) -> tuple[int, Record]:
    # In a process of its own, so that nothing of the first run is left in the second.
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "record.json")
        command = [sys.executable, __file__, _RECORD, str(file), *arguments]
        status = subprocess.run(command, check=False).returncode
        record = Record.read(file)
    if status != record.status:
        _say(f"gate: pytest returned {record.status}, but its process ended with {status}")
        record.status = None
        status = status or int(pytest.ExitCode.INTERNAL_ERROR)
    return status, record


def _record(file: Path, arguments: list[str]) -> int:
    sys.path[0] = str(Path.cwd())  # as `python -m pytest` has it
    record = Record()
    record.status = int(pytest.main(arguments, plugins=[record]))
    record.write(file)
    return record.status


def _say(line: str) -> None:
    # Flushed, as pytest writes to the same file.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == [_RECORD]:
        sys.exit(_record(Path(sys.argv[2]), sys.argv[3:]))
    sys.exit(main(sys.argv[1:]))
