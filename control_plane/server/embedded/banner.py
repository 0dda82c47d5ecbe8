"""The output of `fleet up` at the end of set-up: addresses, states, next commands, and how to stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from control_plane.server.embedded import demo
from control_plane.server.embedded.data_dir import DataDir
from control_plane.server.embedded.plan import Plan


@dataclass(frozen=True)
class PartState:
    """One line: a part, its state in a word, and where it is."""

    name: str
    state: str
    where: str


@dataclass(frozen=True)
class SetUp:
    """What the default organization has."""

    missing: Sequence[str] = ()
    """Of `provider`, `project` and `drone`. The demo's provider and project count only while its model runs."""
    demo: Literal["absent", "running", "stopped"] = "absent"
    """`stopped`: its provider or project is there, but its model does not run."""


def summary(plan: Plan, data: DataDir, login_url: str, parts: Sequence[PartState], set_up: SetUp) -> str:
    """The addresses, the state of each part, the next step, and where everything is.

    No line has a frame, so that a link can be selected as a whole in a narrow terminal.
    """
    lines = ["Dronefleet is up", "", f"  Pages    {plan.public_url}"]
    if plan.flower_url:
        lines.append(flower_line(plan))
    lines += ["", "Log in with this link, once and within 15 minutes (a new one: fleet login-link):"]
    lines += [f"  {login_url}", ""]
    lines += [f"  {part.name:<16} {part.state:<8} {part.where}" for part in parts]
    lines += ["", "Next, in a second terminal:", f"  {next_step(set_up)}", "", *_DEMO[set_up.demo]]
    lines += [f"  Data     {data.root}", f"  Logs     {data.logs}  (fleet logs)"]
    lines += ["  Stop     Ctrl-C here, or fleet stop; everything is kept for the next fleet up"]
    return "\n".join(lines)


def flower_line(plan: Plan) -> str:
    """Where Flower is."""
    return f"  Flower   {plan.flower_url}"


def next_step(set_up: SetUp) -> str:
    """The command for the first of `provider`, `project` and `drone` that is missing; otherwise an order."""
    order = _DEMO_ORDER if set_up.demo == "running" else _ORDER
    return next((command for what, command in _STEPS.items() if what in set_up.missing), order)


_STEPS = {
    "provider": "fleet provider add main --model openai/MODEL --api-base URL --api-key-stdin",
    "project": "fleet project add NAME --git-url URL",
    "drone": "fleet token add    then on a workstation: drone register",
}
_ORDER = "fleet submit 'Fix the failing test' --follow"
_DEMO_ORDER = f"fleet submit '{demo.PROMPT}' --project {demo.NAME} --follow"
_DEMO = {
    "absent": [],
    "running": [
        "The demo's model plays the same script for any prompt. Remove the demo later:",
        f"  {demo.REMOVE}",
        "",
    ],
    "stopped": [
        "The demo's model is not running; `fleet up --demo` starts it. Remove the demo:",
        f"  {demo.REMOVE}",
        "",
    ],
}


def warning(plan: Plan) -> str | None:
    """The prominent warning for a fleet that is open to other machines without encryption, or None."""
    if not plan.open_to_others or (plan.encrypted and plan.broker_program):
        return None
    if not plan.encrypted:
        return (
            f"WARNING: {plan.bind} is open to other machines, and pages, API tokens and the broker's messages travel "
            f"without TLS. {_LEAK} Use this on a network that you trust, or give it a certificate: fleet up --tls-cert "
            "(docs/operations.md)."
        )
    why = "no redis-server or valkey-server on PATH can encrypt; Debian's can: apt-get install redis-server"
    fix = why if plan.options.tls_files else "a proxy in front does not encrypt them; use fleet up --tls-cert"
    return (
        f"WARNING: {plan.bind} is open to other machines, and the broker's messages travel without TLS: {fix}. {_LEAK}"
    )


_LEAK = (
    "Work orders and reports are still sealed, but their ids, times and sizes can be read on the network, and so can "
    "the drones' broker passwords, with which their messages can be delayed, repeated or deleted."
)
