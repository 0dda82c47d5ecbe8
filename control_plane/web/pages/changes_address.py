"""The address of the panel with an order's changes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from control_plane.operations.orders.changes import Scope
from control_plane.web.diffs.rows import View
from control_plane.web.diffs.shown import MORE_LINES

MOST_OPENED = 200
"""Files that are opened on demand, in one address."""
_OPENED = re.compile(r"([0-9a-f]{8}):(\d{1,8})")


@dataclass(frozen=True)
class ChangesAddress:
    """What the address of the panel says, and addresses that differ from it in one thing.

    Files are named by the keys of their paths or by their sections: while an order runs, others may come before them.
    """

    order: str
    view: View = "unified"
    opened: Mapping[str, int] | None = None
    after: int = 0
    comment: Sequence[str] = ()
    """Places whose forms are open."""
    scope: Scope | None = None
    """None: that of the whole branch, if there is more than one turn."""
    without_space: bool = False
    """Whether changes of blanks alone are hidden."""
    filter: str = ""
    """Part of the paths of the files that are listed."""

    def __call__(self, **other: Any) -> str:
        """The address of the panel."""
        return self._address({**self._terms(), **other})

    def kept(self) -> list[tuple[str, str]]:
        """What a form that filters the files keeps of the address."""
        return [(name, str(value)) for name, value in self._terms().items() if name in {"view", "scope", "w"} and value]

    def more(self, file: str, upto: int) -> str:
        """The panel with more lines of a file."""
        return self(open=_written({**(self.opened or {}), file: upto + MORE_LINES}))

    def part(self, file: str, start: int) -> str:
        """More lines of the file in this section of the page, as a part."""
        same = {name: value for name, value in self._terms().items() if name in {"view", "scope", "w"}}
        return self._address({"file": file, "from": start, **same})

    def comment_on(self, file: str, side: str = "", line: int | None = None) -> str:
        """The panel with the form of a comment on a line, or on a file."""
        place, id = (f"{file}:{side}:{line}", f"c-{file}-{side}-{line}") if side else (file, f"c-{file}")
        return f"{self(comment=[place])}#{id}"

    def _terms(self) -> dict[str, Any]:
        return {
            "view": self.view,
            "scope": self.scope or "",
            "w": "1" if self.without_space else "",
            "filter": self.filter,
            "open": _written(self.opened or {}),
            "after": self.after or "",
            "comment": self.comment or "",
        }

    def _address(self, terms: Mapping[str, Any]) -> str:
        given = urlencode({name: value for name, value in terms.items() if value != ""}, safe=":.", doseq=True)
        return f"/orders/{self.order}/changes{'?' if given else ''}{given}"


def opened_files(opened: str) -> dict[str, int]:
    """`KEY:460.OTHER:300`: how many of the first lines of these files are shown."""
    return {each[1]: int(each[2]) for each in list(_OPENED.finditer(opened))[:MOST_OPENED]}


def _written(opened: Mapping[str, int]) -> str:
    return ".".join(f"{file}:{upto}" for file, upto in list(opened.items())[-MOST_OPENED:])
