"""How much the owner lets the drone spend on models in a day."""

from __future__ import annotations

from dataclasses import dataclass

from drone.installation.key_addresses import may_go


@dataclass(frozen=True)
class SpendRules:
    """The table `[spend]`."""

    usd_per_day: float | None = None
    """For all runs together, from midnight to midnight in local time; None: no limit."""
    unpriced: tuple[str, ...] = ()
    """Addresses of models that may be used under a limit although their price is unknown."""

    def is_used_up(self, spent_usd: float) -> bool:
        """Whether no further call may be made today."""
        return self.usd_per_day is not None and spent_usd >= self.usd_per_day

    def allows_unpriced(self, api_base: str | None) -> bool:
        """Whether calls whose cost cannot be counted may be made there."""
        return self.usd_per_day is None or may_go(api_base, self.unpriced)
