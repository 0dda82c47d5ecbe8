"""Agents from the terminal, on a whole fleet: a separate organization, a real drone and a scripted model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(240)
CREW = ("--org", "crew")
TEXT = "Lead plans the work. It hands tasks on. Give it goals. Do not give it code."


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeFleet]:
    """The shared fleet with an organization `crew`, whose model answers every request with the same description."""
    remote = calc_project(tmp_path_factory.mktemp("crew") / "calc.git")
    sets = {"tool_calls": [{"name": "set_description", "arguments": {"text": TEXT}}]}
    with ScriptedServer([sets]) as model:
        shared_fleet.json("organization", "add", "crew")
        provider = ("--model", "openai/scripted", "--api-base", model.url, "--no-key")
        shared_fleet.json("provider", "add", "scripted", "--no-check", *provider, *CREW)
        shared_fleet.json("project", "add", "calc", "--no-check", "--git-url", f"file://{remote}", *CREW)
        yield shared_fleet


def test_agents_are_added_described_drawn_and_removed(fleet: WholeFleet, tmp_path: Path) -> None:
    """S-011 to S-016, S-123."""

    def agent(verb: str, *arguments: str, text: str | None = None) -> Any:
        return fleet.json("agent", verb, *arguments, *CREW, text=text)

    (tmp_path / "lead.md").write_text("# Lead\n\nPlan the work.\n")
    added = agent("add", "lead", "--instructions", str(tmp_path / "lead.md"), "--cost-limit", "0.5")
    assert (added["instructions"], added["cost_limit"], added["warnings"]) == ("# Lead\n\nPlan the work.", 0.5, [])
    # No drone has its label, so it stays without a description.
    agent("create", "backend", "--instructions", "-", "--boss", "lead", "--label", "gpu=yes", text="Write it.")

    # A drone delivers the description.
    wait_until(lambda: agent("show", "lead")["description"] == TEXT, seconds=90, every=0.5)
    assert fleet.fleet("agent", "tree", *CREW).stdout == f"lead — {TEXT}\n└── backend\n"
    assert {order["purpose"] for order in fleet.json("orders", "--all", *CREW)} == {"describe"}
    shown = fleet.fleet("agent", "view", "lead", *CREW).stdout
    assert ("# Lead\n\nPlan the work." in shown, "$0.50 per run" in shown) == (True, True)

    removed = agent("delete", "lead", "--yes")
    assert removed["warnings"] == ["backend no longer has a boss (was lead)"]
    assert [each["name"] for each in agent("list")] == ["backend"]
    assert [each["name"] for each in agent("ls", "--all")] == ["backend", "lead"]
