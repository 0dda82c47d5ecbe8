"""Writes docs/licenses.md: the license of every package that runs with Dronefleet, as its own metadata names it.

python -m tests.support.licenses
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

from tests.support.documents import ROOT

PAGE = ROOT / "docs" / "licenses.md"
_HEAD = """# Licenses

What is installed to run Dronefleet, beside Dronefleet itself, with the license that each package declares. Only
packages for development are left out. `make licenses` writes this page, `make sbom` a bill of materials with versions.

| package | license |
|---|---|
"""
_TROVE = re.compile(r"^License :: (?:OSI Approved :: )?(.+)$")
_LONGEST = 80


def licenses() -> dict[str, str]:
    """The license of each package that the installed Dronefleet requires, directly or not."""
    found: dict[str, str] = {}
    todo = ["dronefleet"]
    while todo:
        name = todo.pop()
        try:
            package = distribution(name)
        except PackageNotFoundError:  # for another platform or version of Python
            continue
        todo += [each for each in _required(package) if each not in found]
        if name != "dronefleet":
            found[name] = _license(package)
    return found


def page(rows: dict[str, str]) -> str:
    return _HEAD + "".join(f"| {name} | {rows[name]} |\n" for name in sorted(rows))


def _required(package: Distribution) -> Iterator[str]:
    for text in package.requires or ():
        required = Requirement(text)
        if required.marker is None or required.marker.evaluate({"extra": ""}):
            yield re.sub(r"[-_.]+", "-", required.name).lower()


def _license(package: Distribution) -> str:
    """SPDX where there is one; older metadata has a classifier, or a text that begins with the license's name."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return str(expression)
    classified = [found[1] for each in metadata.get_all("Classifier") or () if (found := _TROVE.match(each))]
    if classified:
        return ", ".join(name.removesuffix(" License") for name in classified)
    name = str(metadata.get("License") or "").strip().partition("\n")[0]
    return name.removesuffix(" License") if 0 < len(name) <= _LONGEST else "unknown"


def listed() -> dict[str, str]:
    """The rows of the page as it is."""
    rows = (line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| "))
    return {row[0]: row[1] for row in rows if row[0] != "package"}


def main() -> None:
    # What another platform or version of Python installs keeps its row, as long as the lock file names it.
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    elsewhere = {name: license for name, license in listed().items() if name in locked}
    PAGE.write_text(page(elsewhere | licenses()))


if __name__ == "__main__":
    main()
