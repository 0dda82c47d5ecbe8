"""A copy of the project in which tests run against changed source, in every process that they start.

The project is installed in the interpreter's environment as a link to its directory, so a copy of the files alone would
still import the original. The copy therefore has an environment of its own: its first entry is the copy, its second the
packages that are installed beside the original. Entries of a `.pth` file do not process the `.pth` files in the
directories that they name, so the link to the original has no effect.
"""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import psutil

from tests.hostile.removed_defenses.removal import Removal

ROOT = Path(__file__).parents[2]
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", ".*_cache", ".hypothesis", "__pycache__", "bench-results")
_PROGRAMS = {"fleet": "control_plane.cli.program", "drone": "drone.cli.program"}
_PROGRAM = "#!{python}\nimport sys\nfrom {module} import main\nsys.exit(main())\n"
_OF_THIS_RUN = ("PYTEST_", "PYTHON", "COVERAGE_")
"""Variables that belong to the tests that are running, not to those in the copy."""


@dataclass(frozen=True)
class Verdict:
    """How the tests of one run ended."""

    exit_code: int
    failed: int
    """Tests whose body failed; a fixture that failed is not among them."""
    is_skipped: bool
    """Whether every test was skipped."""
    output: str


@dataclass(frozen=True)
class Copy:
    """The copied tree, with its interpreter."""

    root: Path

    @property
    def python(self) -> Path:
        """The interpreter that imports the copy."""
        return self.root / ".venv" / "bin" / "python"

    @contextmanager
    def without(self, removal: Removal) -> Iterator[None]:
        """Take a defense out of the copy, and put it back afterwards."""
        before = {edit.path: (self.root / edit.path).read_text(encoding="utf-8") for edit in removal.edits}
        try:
            for edit in removal.edits:
                file = self.root / edit.path
                file.write_text(edit.applied(file.read_text(encoding="utf-8")), encoding="utf-8")
            yield
        finally:
            for path, text in before.items():
                (self.root / path).write_text(text, encoding="utf-8")

    def test(self, tests: Sequence[str], *options: str, seconds: float) -> Verdict:
        """Run tests in the copy; each names a file and a function below `tests/`.

        Raises `subprocess.TimeoutExpired` once the time is over, and ends what the tests have started.
        """
        report = self.root / "report.xml"
        report.unlink(missing_ok=True)
        named = [f"tests/{test}" for test in tests]
        command = [str(self.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        done = self.run([*command, *options, *named], seconds=seconds)
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
        failed = sum(case.find("failure") is not None for case in cases)
        is_skipped = bool(cases) and all(case.find("skipped") is not None for case in cases)
        return Verdict(done.returncode, failed, is_skipped, done.stdout)

    def run(self, command: Sequence[str | Path], *, seconds: float) -> subprocess.CompletedProcess[str]:
        """Run a program in the copy's directory, with both outputs as one text."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith(_OF_THIS_RUN)}
        # A file and not a pipe: a process that a test left behind would keep a pipe open.
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(command, cwd=self.root, env=variables, stdout=said, stderr=subprocess.STDOUT)
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                _end(process.pid)
                process.wait()
                raise
            said.seek(0)
            return subprocess.CompletedProcess(command, code, said.read())


def copy_to(root: Path) -> Copy:
    """Copy the project, and make the environment that imports the copy."""
    shutil.copytree(ROOT, root, ignore=_LEFT_OUT, symlinks=True)
    venv.create(root / ".venv", symlinks=True)
    made = Copy(root)
    (packages,) = (root / ".venv").glob("lib/python*/site-packages")
    originals = [path for path in site.getsitepackages() if Path(path).is_relative_to(sys.prefix)]
    (packages / "copy.pth").write_text("\n".join([str(root), *originals, ""]))
    for name, module in _PROGRAMS.items():
        program = made.python.with_name(name)
        program.write_text(_PROGRAM.format(python=made.python, module=module))
        program.chmod(0o755)
    return made


def _end(pid: int) -> None:
    """Kill a process and all below it."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                each.kill()


@contextmanager
def fresh_copy() -> Iterator[Copy]:
    """A copy that is removed afterwards."""
    # Not below pytest's own directory, which is closed: commands in a sandbox have another account.
    with tempfile.TemporaryDirectory(prefix="dronefleet-") as directory:
        Path(directory).chmod(0o755)
        yield copy_to(Path(directory, "copy"))
