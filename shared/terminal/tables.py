"""Tables that fit the terminal: ids and states stay whole, prose is cut, and columns that do not fit are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

GAP = 2
"""Spaces between two columns."""
_SHORTEST = 20
"""Prose is not cut below this width; a longer time or name is not prose."""
_NEVER_LEFT_OUT = 2
"""The first columns: what a row is, and its state."""


def fitted(columns: Sequence[str], widths: Mapping[str, int], prose: Sequence[str], width: int) -> dict[str, int]:
    """The columns to show with their widths, at most `width` in total with the gaps, if that is possible.

    `widths` has the width of the longest cell of each column, the heading included; `prose` names the columns that may
    be cut. Wide prose is cut first; then columns are left out from the right.
    """
    shown = {name: widths[name] for name in columns}
    while (excess := _total(shown) - width) > 0:
        widest = max((name for name in prose if shown.get(name, 0) > _SHORTEST), key=shown.__getitem__, default=None)
        if widest is not None:
            others = [shown[name] for name in prose if name in shown and name != widest]
            # Down to the next shorter one first, so that all prose shrinks alike.
            floor = max([_SHORTEST, *(other for other in others if other < shown[widest])])
            shown[widest] = max(shown[widest] - max(1, excess), floor if floor < shown[widest] else _SHORTEST)
        elif len(shown) > _NEVER_LEFT_OUT:
            shown.popitem()
            # What was cut for the column that is gone may grow again.
            shown = {name: widths[name] for name in shown}
        else:
            break
    return shown


def _total(shown: Mapping[str, int]) -> int:
    return sum(shown.values()) + GAP * (len(shown) - 1)
