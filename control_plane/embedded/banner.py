"""The output of `fleet up` at the end of set-up: addresses, states, next commands, and how to stop."""

from __future__ import annotations

from dataclasses import dataclass

from control_plane.embedded.data_dir import DataDir
from control_plane.embedded.plan import Plan
from control_plane.flower.process import USER

WIDTH = 78


@dataclass(frozen=True)
class PartState:
    """One line of the box: a part, its state in a word, and where it is."""

    name: str
    state: str
    where: str


def box(plan: Plan, data: DataDir, login_url: str, parts: list[PartState]) -> str:
    """The text of the box. Long addresses exceed the frame's usual width instead of being cut."""
    lines = [
        "Dronefleet is up",
        "",
        f"Board    {plan.public_url}",
        f"Log in   {login_url}",
        "         (works once, for 15 minutes)",
        *(
            [f"Flower   {plan.flower_url}  user {USER}, password {plan.chosen.flower_password}"]
            if plan.flower_url
            else []
        ),
        "",
        *(f"{part.name:<18} {part.state:<8} {part.where}" for part in parts),
        "",
        "Next, in a second terminal:",
        "  fleet provider add main --model openai/MODEL --api-base URL --api-key-stdin",
        "  fleet project add demo --git-url URL",
        "  fleet submit 'Fix the failing test' --project demo --follow",
        "",
        f"Data     {data.root}",
        f"Logs     {data.logs}",
        "Stop     Ctrl-C here; `fleet up` with the same --data-dir goes on with all of it",
    ]
    width = max(WIDTH, *(len(line) for line in lines))
    frame = "─" * (width + 2)
    body = "\n".join(f"│ {line:<{width}} │" for line in lines)
    return f"┌{frame}┐\n{body}\n└{frame}┘"


def warning(plan: Plan) -> str | None:
    """The prominent warning for a fleet that is open to other machines without encryption, or None."""
    if not plan.open_to_others:
        return None
    parts = [] if plan.encrypted else ["pages and API tokens"]
    return (
        f"WARNING: {plan.bind} is open to other machines, and {' and '.join([*parts, 'the broker'])} "
        "travel without TLS. Work orders and reports are sealed all the same; log-ins to the broker are not. "
        "Use this on a network that you trust, or put a TLS proxy in front (docs/operations.md)."
    )
