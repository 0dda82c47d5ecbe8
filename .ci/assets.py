"""Vendor the browser parts: `make assets` fetches the versions named in parts.json and writes their hashes there.

The parts are served from our own origin and change only through this program. The sprite has the icons that templates
use.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

STATIC = Path(__file__).parent.parent / "control_plane/web/static"
TEMPLATES = STATIC.parent / "templates"
LIST = STATIC / "vendor/parts.json"
ICON = re.compile(r"icon\(\s*[\"']([a-z0-9-]+)[\"']")
NAMED = re.compile(r"icon=[\"']([a-z0-9-]+)[\"']")


def main() -> int:
    """Fetch every part. `--icons` only composes the sprite again, from a package that must then be fetched as well."""
    parts = json.loads(LIST.read_text())
    with tempfile.TemporaryDirectory() as scratch:
        for part in parts["files"]:
            _vendor(part, _package(part, Path(scratch)))
        icons = parts["icons"]
        icons["names"] = sorted({*used_icons(), *icons["always"]})
        (STATIC / "icons.svg").write_text(_sprite(_package(icons, Path(scratch)), icons["names"]))
    LIST.write_text(json.dumps(parts, indent=2, ensure_ascii=False) + "\n")
    sys.stdout.write(f"{len(parts['files'])} files and {len(icons['names'])} icons\n")
    return 0


def used_icons() -> set[str]:
    """The names of all icons that a template or a page module mentions."""
    sources = [*TEMPLATES.rglob("*.html"), *STATIC.parent.rglob("*.py")]
    return {name for each in sources for rule in (ICON, NAMED) for name in rule.findall(each.read_text())}


def _package(part: dict[str, Any], scratch: Path) -> Path:
    """The unpacked package of a part."""
    target = scratch / f"{part['package']}-{part['version']}".replace("/", "+")
    if not target.exists():
        target.mkdir()
        command = ["npm", "pack", "--silent", f"{part['package']}@{part['version']}"]
        name = subprocess.run(command, cwd=target, check=True, capture_output=True, text=True).stdout.strip()
        with tarfile.open(target / name) as archive:
            archive.extractall(target, filter="data")
    return target / "package"


def _vendor(part: dict[str, Any], package: Path) -> None:
    """Copy one file without the reference to a source map, which is not served."""
    text = (package / part["path"]).read_text()
    text = re.sub(r"\n?//# sourceMappingURL=\S+", "", text)
    if part["file"].endswith(".js"):
        # Only our own scripts are type-checked.
        text = f"// @ts-nocheck: {part['package']} {part['version']}, {part['license']}\n{text}"
    (STATIC / "vendor" / part["file"]).write_text(text)
    part["sha256"] = hashlib.sha256(text.encode()).hexdigest()


def _sprite(package: Path, names: list[str]) -> str:
    symbols = []
    for name in names:
        source = (package / f"icons/{name}.svg").read_text()
        inner = re.sub(
            r"\s+", " ", source[source.index(">", source.index("<svg")) + 1 : source.rindex("</svg>")]
        ).strip()
        symbols.append(f'<symbol id="{name}" viewBox="0 0 24 24">{inner}</symbol>')
    return '<svg xmlns="http://www.w3.org/2000/svg">' + "".join(symbols) + "</svg>\n"


if __name__ == "__main__":
    sys.exit(main())
