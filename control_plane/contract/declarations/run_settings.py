"""The fields that set limits and the thinking level of runs, for each level at which they can be set."""

from __future__ import annotations

from control_plane.contract.declarations.operation import About

LIMITS = About(
    "limits",
    "Limit of its runs, such as max_retries=5; `fleet limit ls` lists all. Limits set closer to a run take precedence.",
    absent="none",
    flag="--limit",
    metavar="NAME=VALUE",
    none="--no-limits",
)
THINKING = About(
    "thinking",
    "How much models think in its orders: off, minimal, low, medium, high or xhigh.",
    absent="not set here",
    none="none",
)
LIMITS_FOR_MODELS = (
    'Limits of its runs by name, such as {"max_retries": 5}; list_limits has names, units and bounds. Limits set '
    "closer to a run take precedence: order, task, session, agent, project, organization. The given limits replace all "
    "previous ones."
)
