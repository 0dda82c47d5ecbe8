"""The total cost of runs, as tasks, agents and organizations report it."""

from __future__ import annotations

from control_plane.documents.base import Document


class Totals(Document):
    """Sums over runs, made when they are asked for (S-034)."""

    runs: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """What is known; null where no run's price was known."""
    unknown_costs: int
    """Runs whose price is not known."""
    duration_ms: int
