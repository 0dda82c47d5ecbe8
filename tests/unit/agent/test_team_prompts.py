"""The prompts of an agent's turn: rules, organization and agent in cache order, stable to the byte."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

from drone.agent.prompts import system_prompt, user_prompt
from drone.model.warm_order import ORDER
from drone.prompting import PromptParts
from shared.work_order import Limits, RosterAgent, Team, WorkOrder

ROSTER = (
    RosterAgent(name="backend", boss="lead", description="Writes the server."),
    RosterAgent(name="lead", description="Plans the work."),
    RosterAgent(name="tester", boss="lead"),
)
LEAD: dict[str, Any] = {"agent": "lead", "instructions": "# lead\n\nYou plan.", "reports": ("backend", "tester")}
BACKEND: dict[str, Any] = {"agent": "backend", "instructions": "You write {{ the }} server.", "boss": "lead"}
PARTS = PromptParts(instructions="Use tabs.")
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def turn(agent: dict[str, Any], *, task: str = "PAYM-0001", comments: int = 0, **more: Any) -> WorkOrder:
    """An agent's turn on a task."""
    told = {"organization": "payments", "purpose": "Keeps the money.", "roster": ROSTER, "task": task, **agent}
    team = Team(comments=comments, **told)
    return ORDER.model_copy(update={"agent": team.agent, "task": task, "team": team, "prompt": f"On {task}.", **more})


def headings(order: WorkOrder) -> list[str]:
    lines = system_prompt(order, PARTS).splitlines()
    return [line for line in lines if line.startswith("# ") and line != "# lead"]


def common(one: WorkOrder, other: WorkOrder) -> str:
    pairs = zip(system_prompt(one, PARTS), system_prompt(other, PARTS), strict=False)
    return "".join(mine for mine, theirs in takewhile(lambda pair: pair[0] == pair[1], pairs))


def test_an_agents_turn_is_told_rules_thread_organization_and_agent_in_this_order() -> None:
    """S-070."""
    assert headings(turn(LEAD)) == [
        "# Rules",
        "# The thread",
        "# Who you are",
        "# The organization payments",
        "# You are lead",
        "# Mode: build",
        "# Instructions of this project",
    ]
    assert headings(ORDER) == ["# Rules", "# Who you are", "# Mode: build", "# Instructions of this project"]


def test_the_organization_is_shown_as_a_tree_in_whatever_order_its_roster_came() -> None:
    text = system_prompt(turn(LEAD), PARTS)
    tree = "lead — Plans the work.\n├── backend — Writes the server.\n└── tester\n"
    assert "# The organization payments\n\nKeeps the money.\n\nIts agents" in text
    assert f"\n\n{tree}\n# You are lead" in text
    assert text == system_prompt(turn({**LEAD, "roster": tuple(reversed(ROSTER))}), PARTS)


def test_two_agents_of_one_organization_share_everything_up_to_their_names() -> None:
    """S-070: blocks A and B are the same bytes."""
    assert common(turn(LEAD), turn(BACKEND, task="PAYM-0002", user="bob")).endswith("\n\n# You are ")


def test_two_tasks_of_one_agent_share_the_whole_system_prompt() -> None:
    """S-070, S-073: nothing of the task, of the thread or of earlier runs is in it."""
    session = ORDER.session.model_copy(update={"id": "f" * 12, "name": "PAYM-0009"})
    one = turn(BACKEND)
    other = turn(
        {**BACKEND, "unseen": ("Half.",)},
        task="PAYM-0009",
        comments=3,
        session=session,
        limits=Limits(max_iterations=3, cost_limit=9),
    )
    assert system_prompt(one, PARTS).encode() == system_prompt(other, PARTS).encode()


def test_an_agent_is_told_its_name_its_boss_who_reports_to_it_and_its_instructions() -> None:
    lead, backend = system_prompt(turn(LEAD), PARTS), system_prompt(turn(BACKEND), PARTS)
    assert "@user" in lead.partition("# You are lead")[2]
    assert "@backend, @tester." in lead
    assert "## Your instructions\n\n# lead\n\nYou plan.\n\n# Mode" in lead
    assert "Your boss is @lead: " in backend
    # Instructions are text and no template, and a tag in backticks would not count.
    assert "You write {{ the }} server." in backend
    assert "`@" not in lead + backend


def test_the_thread_section_says_what_an_agent_has_to_know_of_threads() -> None:
    """S-071, S-072."""
    thread = system_prompt(turn(LEAD), PARTS).partition("# The thread")[2].partition("\n# Who you are")[0]
    said = " ".join(thread.split())
    needed = [
        "is the only way to write into the thread",
        "the last valid tag in it decides who is next",
        "Without a valid tag the task goes to",
        "50 to 100 words",
        "Do not tag yourself",
    ]
    assert [words for words in needed if words not in said] == []


def test_the_briefing_comes_first_and_then_what_an_earlier_run_of_the_turn_wrote() -> None:
    text = user_prompt(turn({**BACKEND, "unseen": ("Half done.", "More.")}), Path("/w"), NOW)
    assert text.startswith("On PAYM-0001.\n\n<situation>\n")
    assert text.endswith("again:\n\n<comment>\nHalf done.\n</comment>\n\n<comment>\nMore.\n</comment>\n")
    assert user_prompt(turn(BACKEND), Path("/w"), NOW).endswith("</situation>\n")
