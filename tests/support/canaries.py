"""Looks for secrets, in every spelling, wherever something may have been stored, shown or sent."""

from __future__ import annotations

import gzip
import html
import json
import subprocess
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.spellings import BYTES_AS_TEXT, SPELLINGS


class Canaries:
    """Secrets that must turn up nowhere."""

    def __init__(self, *secrets: str) -> None:
        self.secrets = secrets
        self._needles: dict[bytes, set[str]] = {}
        """Spellings may look the same."""
        for secret in secrets:
            for name, needle in _needles(secret):
                self._needles.setdefault(needle, set()).add(name)

    @property
    def spelled(self) -> str:
        """All secrets in all spellings that text can have, a line or more for each, between words that may be shown."""
        names = sorted(SPELLINGS.keys() - BYTES_AS_TEXT)
        return "\n".join(f"as {name}: {SPELLINGS[name](secret)} end" for secret in self.secrets for name in names)

    def found_in(self, content: bytes) -> set[str]:
        """The spellings of secrets in this content."""
        return set[str]().union(*(names for needle, names in self._needles.items() if needle in content))

    def found_in_any(self, contents: Iterable[tuple[str, bytes]]) -> dict[str, set[str]]:
        """Where secrets are, with their spellings. Asserts that there was something to look at."""
        looked_at = {place: self.found_in(content) for place, content in contents}
        assert looked_at, "there is nothing to look at"
        return {place: found for place, found in looked_at.items() if found}


def _needles(secret: str) -> Iterator[tuple[str, bytes]]:
    """Each spelling as it is, and as JSON, JSON within JSON and markup contain it; and both halves of the secret."""
    half = len(secret) // 2
    yield from (("half", part.encode()) for part in (secret[:half], secret[half:]))
    yield from ((encoding, secret.encode(encoding)) for encoding in ("utf-16-le", "utf-16-be"))
    for name, spell in SPELLINGS.items():
        spelled = spell(secret)
        inside = json.dumps(spelled)[1:-1]
        for form in (spelled, inside, json.dumps(inside)[1:-1], html.escape(spelled)):
            yield name, form.encode()


def files_below(root: Path, *, without: str) -> Iterator[tuple[str, bytes]]:
    """The content of all files, also unpacked; `without`: a glob pattern of directories that are left out."""
    left_out = set(root.glob(without))
    for path in sorted(root.rglob("*")):
        if path.is_file() and not left_out & {*path.parents}:
            content = path.read_bytes()
            yield str(path.relative_to(root)), str(path).encode() + content + _unpacked(content)


def _unpacked(content: bytes) -> bytes:
    for unpack in (gzip.decompress, zlib.decompress):
        try:
            return unpack(content)
        except (OSError, EOFError, zlib.error):
            continue
    return b""


def objects_of(repository: Path, *bundles: Path) -> Iterator[tuple[str, bytes]]:
    """All refs and objects of a repository, and of bundles that build on it."""
    git = ("git", "-C", str(repository))
    for bundle in bundles:
        subprocess.run([*git, "bundle", "unbundle", str(bundle)], check=True, capture_output=True)
    yield "refs", subprocess.check_output([*git, "for-each-ref"])
    yield "objects", subprocess.check_output([*git, "cat-file", "--batch-all-objects", "--batch", "--unordered"])
