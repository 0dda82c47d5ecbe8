"""Writes docs/licenses.md: the license of every package that runs with Dronefleet, as its own metadata names it.

python -m tests.support.licenses
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

from tests.support.documents import ROOT

PAGE = ROOT / "docs" / "licenses.md"
_HEAD = """# Licenses

What is installed to run Dronefleet, beside Dronefleet itself, with the license that each package declares, and the part
that needs it: `base` is always installed, `server` with the extra of that name. Only packages for development are left
out. `make licenses` writes this page, `make sbom` a bill of materials with versions.

| package | license | part |
|---|---|---|
"""
_BROWSER_HEAD = """
Parts of these packages are served to browsers from `control_plane/web/static/vendor`; `make assets` fetches them.

| browser part | license |
|---|---|
"""
_TROVE = re.compile(r"^License :: (?:OSI Approved :: )?(.+)$")
_LONGEST = 80


def licenses() -> dict[str, tuple[str, str]]:
    """The license of each package that the installed Dronefleet requires, directly or not, and its part."""
    base = required("")
    return {
        name: (_license(package), "base" if name in base else "server") for name, package in required("server").items()
    }


def required(extra: str) -> dict[str, Distribution]:
    """The installed packages that Dronefleet requires with this extra (`""`: without any), directly or not."""
    found: dict[str, Distribution] = {}
    asked: set[tuple[str, str]] = set()
    todo = [*_required(distribution("dronefleet"), extra)]
    while todo:
        wanted = todo.pop()
        asked.add(wanted)
        try:
            found[wanted[0]] = distribution(wanted[0])
        except PackageNotFoundError:  # for another platform or version of Python
            continue
        todo += [each for each in _required(found[wanted[0]], wanted[1]) if each not in asked]
    return found


def browser_parts() -> dict[str, str]:
    """The license of each package of which a part is served to browsers."""
    parts = json.loads((ROOT / "control_plane/web/static/vendor/parts.json").read_text())
    return {each["package"]: each["license"] for each in (*parts["files"], parts["icons"])}


def page(rows: dict[str, tuple[str, str]]) -> str:
    browser = {name: (license,) for name, license in browser_parts().items()}
    return _HEAD + _table(rows) + _BROWSER_HEAD + _table(browser)


def _table(rows: Mapping[str, tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join((name, *rows[name]))} |\n" for name in sorted(rows))


def _required(package: Distribution, extra: str) -> Iterator[tuple[str, str]]:
    """What a package requires with one of its extras, each with an extra of its own, or without any."""
    for text in package.requires or ():
        wanted = Requirement(text)
        if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
            yield from ((re.sub(r"[-_.]+", "-", wanted.name).lower(), each) for each in ("", *wanted.extras))


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


def listed() -> dict[str, tuple[str, str]]:
    """The rows of the page as it is."""
    packages = PAGE.read_text().partition(_BROWSER_HEAD)[0]
    rows = (line.strip("| ").split(" | ") for line in packages.splitlines() if line.startswith("| "))
    return {row[0]: (row[1], row[2]) for row in rows if row[0] != "package"}


def main() -> None:
    # What another platform or version of Python installs keeps its row, as long as the lock file names it.
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    elsewhere = {name: row for name, row in listed().items() if name in locked}
    PAGE.write_text(page(elsewhere | licenses()))


if __name__ == "__main__":
    main()
