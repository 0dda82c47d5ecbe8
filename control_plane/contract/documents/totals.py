"""The total cost of runs, as tasks, agents and organizations report it."""

from __future__ import annotations

from control_plane.contract.documents.base import Document


class Totals(Document):
    """Totals over runs, calculated on request (S-034)."""

    runs: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """Sum of the known costs; null if no run's cost is known."""
    unknown_costs: int
    """Number of runs of unknown cost."""
    duration_ms: int
