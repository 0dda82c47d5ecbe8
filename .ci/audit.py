"""Asks pip-audit for known vulnerabilities in what requirements.lock names.

Run with the Python of .venv-audit. Exits with 1 if there are any, with 0 and a word if no advisories can be reached.
With --not-installed, it reads from stdin why pip-audit could not be installed: 0 and a word if no index can be reached.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements.lock"
COMMAND = (
    "-m",
    "pip_audit",
    "--disable-pip",
    "--require-hashes",
    "--progress-spinner",
    "off",
    "--format",
    "json",
    "-r",
)


UNREACHABLE = re.compile(r"connection broken|Max retries exceeded|\(from versions: none\)")
"""What pip says if no package index can be reached."""


def not_installed(log: str) -> int:
    """Exit code for a failed installation, with what pip said."""
    if UNREACHABLE.search(log):
        sys.stdout.write("Known vulnerabilities are not looked up: no package index can be reached for pip-audit\n")
        return 0
    sys.stderr.write(log)
    return 1


def main() -> int:
    if sys.argv[1:] == ["--not-installed"]:
        return not_installed(sys.stdin.read())
    done = subprocess.run([sys.executable, *COMMAND, str(LOCK)], capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        sys.stdout.write(f"Known vulnerabilities are not looked up: {last}\n")
        return 0
    asked = [each for each in found if "skip_reason" not in each]
    if not asked:
        sys.stdout.write(f"Known vulnerabilities are not looked up: {found[0]['skip_reason']}\n")
        return 0
    vulnerable = [(each, hole) for each in asked for hole in each["vulns"]]
    for each, hole in vulnerable:
        versions = ", ".join(hole["fix_versions"]) or "no version yet"
        sys.stdout.write(f"{each['name']} {each['version']}: {hole['id']}, fixed in {versions}\n")
    sys.stdout.write(f"{len(vulnerable)} known vulnerabilities in {len(asked)} of {len(found)} packages\n")
    return int(bool(vulnerable))


if __name__ == "__main__":
    sys.exit(main())
