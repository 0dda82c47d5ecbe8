"""`make audit`: findings fail, an unreachable index or list of advisories is only said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / ".ci" / "audit.py"
SOUND = {"name": "httpx", "version": "0.28.1", "vulns": []}
VULNERABLE = {"name": "idna", "version": "3.6", "vulns": [{"id": "PYSEC-2024-60", "fix_versions": ["3.7"]}]}
SKIPPED = {"name": "idna", "skip_reason": "Dependency not found on PyPI and could not be audited: idna (3.6)"}
OFFLINE = """\
WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection broken by \
'NewConnectionError('Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/
ERROR: Could not find a version that satisfies the requirement pip-audit==2.9.0 (from versions: none)
ERROR: No matching distribution found for pip-audit==2.9.0
make[1]: *** [Makefile:120: .venv-audit/.stamp] Error 1
"""
TAMPERED = """\
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.
    pip-audit==2.9.0: Expected sha256 1d, Got 5f
"""


def audit(directory: Path, printed: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the script with a pip-audit that prints this."""
    (directory / "printed").write_text(printed)
    (directory / "pip_audit.py").write_text(
        "import pathlib, sys\n"
        "sys.stdout.write((pathlib.Path(__file__).parent / 'printed').read_text())\n"
        "sys.exit('ConnectionError: no route to pypi.org')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(directory)}
    command = [sys.executable, str(SCRIPT), *words]
    return subprocess.run(command, env=environment, input=stdin, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("found", "code", "said"),
    [
        ([SOUND], 0, "0 known vulnerabilities in 1 of 1 packages"),
        ([SOUND, SKIPPED], 0, "0 known vulnerabilities in 1 of 2 packages"),
        ([SOUND, VULNERABLE], 1, "idna 3.6: PYSEC-2024-60, fixed in 3.7"),
        ([SKIPPED, SKIPPED], 0, "Known vulnerabilities are not looked up: Dependency not found"),
    ],
)
def test_only_a_finding_fails(tmp_path: Path, found: list[Any], code: int, said: str) -> None:
    done = audit(tmp_path, json.dumps({"dependencies": found}))
    assert (done.returncode, said in done.stdout, done.stderr) == (code, True, "")


def test_advisories_or_an_index_that_cannot_be_reached_are_said_and_do_not_fail(tmp_path: Path) -> None:
    for done in (audit(tmp_path, ""), audit(tmp_path, "", "--not-installed", stdin=OFFLINE)):
        assert (done.returncode, done.stdout.startswith("Known vulnerabilities are not looked up: ")) == (0, True)


def test_another_reason_for_a_failed_installation_fails_with_it(tmp_path: Path) -> None:
    done = audit(tmp_path, "", "--not-installed", stdin=TAMPERED)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", TAMPERED)
