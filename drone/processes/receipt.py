"""The counts in a cancel's receipt: processes found, processes ended, and survivors."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.events import Receipt


@dataclass(frozen=True)
class Ended:
    """The number of processes found, ended, and still alive."""

    found: int = 0
    ended: int = 0
    survivors: int = 0

    def __add__(self, other: Ended) -> Ended:
        return Ended(self.found + other.found, self.ended + other.ended, self.survivors + other.survivors)

    def then(self, later: Ended) -> Ended:
        """The total of both, if the later look saw the survivors of the first again."""
        found = self.found - self.survivors + later.found
        return Ended(found, self.ended + later.ended, later.survivors)

    def receipt(self, at: datetime) -> Receipt:
        return Receipt(found=self.found, ended=self.ended, survivors=self.survivors, at=at)
