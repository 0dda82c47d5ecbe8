"""Sets the version of the next release in pyproject.toml, and dates its changes in CHANGELOG.md.

    python .ci/release.py 1.2.0

It changes these two files and nothing else. Fails unless the changes have a heading that is not dated yet, and the
version is higher than that of the last release.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_UNRELEASED = re.compile(r"(?m)^## \S+ \(unreleased\)$")
_RELEASED = re.compile(r"(?m)^## (\d+)\.(\d+)\.(\d+) \(\d{4}-\d\d-\d\d\)$")
_PROJECT = re.compile(r'(?m)^version = "[^"]*"$')


def main(words: list[str], root: Path = ROOT) -> int:
    """Change both files, or neither; the exit code."""
    version = words[0] if words else ""
    changes, project = root / "CHANGELOG.md", root / "pyproject.toml"
    if problem := _problem(version, changes.read_text(encoding="utf-8")):
        sys.stderr.write(f"error: {problem}\n")
        return 2
    heading = f"## {version} ({datetime.now(UTC):%Y-%m-%d})"
    _replace(changes, _UNRELEASED, heading)
    _replace(project, _PROJECT, f'version = "{version}"')
    sys.stdout.write(f"pyproject.toml: {version}\nCHANGELOG.md: {heading}\n")
    return 0


def _problem(version: str, changes: str) -> str:
    if not _VERSION.fullmatch(version):
        return f"{version[:40]!r} is not a version; next: make release VERSION=1.2.0"
    last = max((tuple(map(int, found)) for found in _RELEASED.findall(changes)), default=(-1,))
    if tuple(map(int, version.split("."))) <= last:
        return f"{version} is not higher than the last release, {'.'.join(map(str, last))}"
    if len(_UNRELEASED.findall(changes)) != 1:
        return "CHANGELOG.md has no changes to release; next: begin it with the heading `## VERSION (unreleased)`"
    return ""


def _replace(file: Path, pattern: re.Pattern[str], text: str) -> None:
    file.write_text(pattern.sub(text, file.read_text(encoding="utf-8"), count=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
