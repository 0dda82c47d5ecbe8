"""Which rows of a file are run: shuffled, filtered and sliced, in this order, as mini-swe-agent does (M-042)."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from control_plane.cli.batch_files.records import Record
from shared.errors import Invalid


@dataclass(frozen=True)
class Choice:
    """The options of the command line."""

    ids: str | None = None
    """A regular expression that matches from the beginning of an id."""
    part: str | None = None
    """`0:10`, `50:` or `::2`."""
    shuffle: int | None = None
    """The seed; the same seed gives the same order as mini-swe-agent, whose seed is 42."""

    def chosen(self, records: Sequence[tuple[str, Record]]) -> list[tuple[str, Record]]:
        """The chosen ones of these rows with their ids. Raises Invalid."""
        found = list(records)
        if self.shuffle is not None:
            found.sort(key=lambda each: each[0])
            random.Random(self.shuffle).shuffle(found)  # noqa: S311 - an order, not a secret
        if self.ids is not None:
            pattern = _pattern(self.ids)
            found = [each for each in found if pattern.match(each[0])]
        return found[_range(self.part)] if self.part is not None else found


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise Invalid(f"--filter {text[:80]!r} is no regular expression", code="E-USAGE", why=str(error)) from None


def _range(text: str) -> slice:
    parts = text.split(":")
    try:
        if len(parts) < 2:
            raise ValueError
        return slice(*(int(part) if part else None for part in parts))
    except (TypeError, ValueError):
        raise Invalid(
            f"--slice {text[:80]!r} is no range", code="E-USAGE", next="--slice 0:10, --slice 50: or --slice ::2"
        ) from None
