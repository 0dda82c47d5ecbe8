"""Modules that import each other are found, also where the import is inside a function."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / ".ci" / "module_cycles.py"


def check(tmp_path: Path, **modules: str) -> subprocess.CompletedProcess[str]:
    package = tmp_path / "room"
    package.mkdir()
    for name, text in {"__init__": "", **modules}.items():
        (package / f"{name}.py").write_text(text)
    command = [sys.executable, str(SCRIPT), "room"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)


def test_a_cycle_through_a_deferred_import_is_named(tmp_path: Path) -> None:
    found = check(tmp_path, a="from room import b", b="def later():\n    from room import a\n")

    assert found.returncode == 1
    assert "room.a imports room.b" in found.stderr


def test_modules_without_a_cycle_pass(tmp_path: Path) -> None:
    assert check(tmp_path, a="from room import b", b="").returncode == 0
