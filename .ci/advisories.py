"""Exits with 1 if the source of advisories that pip-audit asks knows our packages; else says why it is not asked."""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements.lock"


def main() -> int:
    name, version = LOCK.read_text().partition(" ")[0].split("==")
    source = f"https://pypi.org/pypi/{name}/{version}/json"
    try:
        with urllib.request.urlopen(source, timeout=10) as answer:
            if "vulnerabilities" in json.load(answer):
                return 1
            why = "lists none"
    except (OSError, ValueError) as error:
        why = f"gives no answer ({error})"
    sys.stdout.write(f"Known vulnerabilities are not looked up: {source} {why}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
