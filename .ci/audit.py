"""Asks pip-audit for known vulnerabilities in what requirements.lock names.

Run with the Python of .venv-audit. Exits with 1 if there are any, with 0 and a word if no advisories can be reached.
"""

from __future__ import annotations

import json
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


def main() -> int:
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
