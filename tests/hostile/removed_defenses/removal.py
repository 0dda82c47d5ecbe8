"""What a row of the security table is proved with: its test, and the change that removes the defense."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """A piece of source text, and what it becomes without the defense."""

    path: str
    """Below the project's root."""
    old: str
    """Occurs exactly once in the file."""
    new: str

    def applied(self, text: str) -> str:
        """The file without the defense; raises `ValueError` if the defense is not where it was."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.path} has {text.count(self.old)} times, instead of once: {self.old}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Removal:
    """The smallest change that takes out the defense of one row, so that the row's test has to fail."""

    test: str
    """As in the table: a file below `tests/` and a function of it."""
    edits: tuple[Edit, ...]
    """More than one where several layers defend: the test fails once the last of them is gone."""
    case: str = ""
    """The id of the one case that is enough, of a test with parameters."""

    @property
    def selection(self) -> str:
        """What pytest runs."""
        return f"{self.test}[{self.case}]" if self.case else self.test


def removal(test: str, path: str, old: str, new: str, *, case: str = "") -> Removal:
    """A removal that takes one edit."""
    return Removal(test, (Edit(path, old, new),), case)
