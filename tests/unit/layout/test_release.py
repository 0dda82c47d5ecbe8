"""`make release`: the version stands in one file, the changes get their date, and a mistake changes nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documents import INSTALLED, ROOT

CHANGES = "# Changes\n\n## 1.3.0 (unreleased)\n\n- New.\n\n## 1.2.9 (2026-01-31)\n\n- Old.\n"


def release(directory: Path, changes: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a project with these changes."""
    (directory / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "release.py", directory / ".ci")
    shutil.copy(ROOT / "pyproject.toml", directory)
    (directory / "CHANGELOG.md").write_text(changes, encoding="utf-8")
    script = [sys.executable, str(directory / ".ci" / "release.py"), *words]
    return subprocess.run(script, capture_output=True, text=True, check=False)


def test_a_release_sets_the_version_and_dates_its_changes(tmp_path: Path) -> None:
    done = release(tmp_path, CHANGES, "1.10.0")

    assert (done.returncode, done.stderr) == (0, "")
    assert 'version = "1.10.0"' in (tmp_path / "pyproject.toml").read_text()
    headings = re.findall(r"(?m)^## (.+)$", (tmp_path / "CHANGELOG.md").read_text())
    assert re.fullmatch(r"1\.10\.0 \(\d{4}-\d\d-\d\d\)", headings[0])
    assert headings[1:] == ["1.2.9 (2026-01-31)"]


@pytest.mark.parametrize(
    ("changes", "words", "said"),
    [
        (CHANGES, [], "is not a version"),
        (CHANGES, ["v1.3.0"], "is not a version"),
        (CHANGES, ["1.2.9"], "is not higher than the last release, 1.2.9"),
        (CHANGES.replace("unreleased", "2026-02-01"), ["1.4.0"], "no changes to release"),
    ],
)
def test_a_mistake_changes_nothing(tmp_path: Path, changes: str, words: list[str], said: str) -> None:
    done = release(tmp_path, changes, *words)

    assert (done.returncode, said in done.stderr) == (2, True)
    assert (tmp_path / "CHANGELOG.md").read_text() == changes
    assert (tmp_path / "pyproject.toml").read_text() == (ROOT / "pyproject.toml").read_text()


def test_no_module_has_the_version_as_text() -> None:
    """It stands in pyproject.toml; programs read it from the metadata of their installation."""
    version = re.search(r'(?m)^version = "(.*)"$', (ROOT / "pyproject.toml").read_text())
    assert version
    modules = [path for name in ("control_plane", "drone", "shared") for path in (INSTALLED / name).rglob("*.py")]

    assert [str(path) for path in modules if f'"{version[1]}"' in path.read_text(encoding="utf-8")] == []
