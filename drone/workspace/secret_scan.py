"""Finds known secrets in git's objects: in what would be stored, not in a file that may have changed by then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from drone.workspace.git import Git, GitFailed
from drone.workspace.history import History

HasSecret = Callable[[bytes], bool]
_AT_ONCE = 32 * 1000 * 1000
"""Bytes of content in memory at a time."""
_TREE = "tree"
_FEW, _SHA1_DIGITS = 8, 40


@dataclass
class SecretScan:
    """Which objects hold a known secret; each is scanned once."""

    git: Git
    history: History
    has_secret: HasSecret
    """May be another one at each checkpoint; objects that were scanned before are not scanned again."""
    _clean: set[str] = field(default_factory=set)
    _secret: set[str] = field(default_factory=set)

    def with_secrets(self, objects: Iterable[str]) -> set[str]:
        """Those of the blobs and commits that hold a known secret. Trees are skipped."""
        wanted = list(objects)
        for portion in self._portions([name for name in wanted if name not in self._clean | self._secret]):
            for name, content in self._contents(portion):
                (self._secret if self.has_secret(content) else self._clean).add(name)
        return self._secret.intersection(wanted)

    def largest(self, objects: Iterable[str]) -> int:
        """Bytes of the largest object that was not scanned yet."""
        return max((size for _, kind, size in self._facts(objects) if kind != _TREE), default=0)

    def _facts(self, objects: Iterable[str]) -> Iterator[tuple[str, str, int]]:
        names = [name for name in objects if name not in self._clean]
        if self._is_few(names):
            for name in names:
                yield name, *self.history.kind_and_size(name)
        elif names:
            for line in self.git.text("cat-file", "--batch-check", stdin=_lines(names)).split("\n"):
                yield _facts(line)

    def _portions(self, objects: list[str]) -> Iterator[list[str]]:
        portion: list[str] = []
        total = 0
        for name, kind, size in self._facts(objects):
            if kind == _TREE:
                continue
            if portion and total + size > _AT_ONCE:
                yield portion
                portion, total = [], 0
            portion.append(name)
            total += size
        if portion:
            yield portion

    def _contents(self, objects: list[str]) -> Iterator[tuple[str, bytes]]:
        """Name and content of each, from `<name> <kind> <size>\\n<content>\\n`."""
        if self._is_few(objects):
            yield from ((name, self.history.content(name)) for name in objects)
            return
        output = memoryview(self.git.raw("cat-file", "--batch", stdin=_lines(objects)))
        at = 0
        for name in objects:
            head = bytes(output[at : at + 200]).partition(b"\n")[0]
            begin = at + len(head) + 1
            end = begin + _facts(head.decode())[2]
            yield name, bytes(output[begin:end])
            at = end + 1

    @staticmethod
    def _is_few(names: list[str]) -> bool:
        """Whether single requests cost less than a git process; only for SHA-1 objects, which they support."""
        return len(names) <= _FEW and all(len(name) == _SHA1_DIGITS for name in names)


def _facts(line: str) -> tuple[str, str, int]:
    """Name, kind and size. Raises GitFailed for an object that git cannot read: its line is `<name> missing`."""
    words = line.split()
    if len(words) < len(("name", "kind", "size")):
        raise GitFailed("cat-file", None, f"{words[0]} is missing or damaged")
    name, kind, size = words
    return name, kind, int(size)


def _lines(names: Iterable[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()
