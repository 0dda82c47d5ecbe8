"""Runs tests against the wheel in dist/, in a directory without the packages.

    python -m tests.support.wheel_suite tests/unit

The arguments go to pytest. What the tests import comes from the installation; documents, deployment files and the tests
themselves are copies.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.documents import ROOT
from tests.support.installed import SERVER, install

COPIED = ("tests", "docs", "deploy", ".ci")


def main(arguments: list[str]) -> int:
    """Run pytest as described, and return its exit code."""
    wheel = next((ROOT / "dist").glob("*.whl"))
    with tempfile.TemporaryDirectory(prefix="wheel-suite-") as name:
        directory = Path(name)
        made = install(directory / ".venv", wheel, SERVER, "dev")
        copy = directory / "copy"
        for part in COPIED:
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        for path in ROOT.iterdir():
            if path.is_file():
                shutil.copy(path, copy)
        return subprocess.run([made.python, "-m", "pytest", *arguments], cwd=copy, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
