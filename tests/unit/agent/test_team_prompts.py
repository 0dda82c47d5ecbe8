"""The prompts of an agent's turn: rules, organization and agent in cache order, stable to the byte."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from drone.agent.prompts import resumed_prompt, system_prompt, user_prompt
from drone.model.warm_order import ORDER
from drone.prompting import PromptParts
from shared.work_order import Limits, Resumed, RosterAgent, Team, WorkOrder

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


def test_an_order_without_a_team_has_none_of_that() -> None:
    assert headings(ORDER) == ["# Rules", "# Who you are", "# Mode: build", "# Instructions of this project"]


def test_two_agents_of_one_organization_share_everything_up_to_their_names() -> None:
    """S-070: blocks A and B are the same bytes."""
    assert common(turn(LEAD), turn(BACKEND, task="PAYM-0002", user="bob")).endswith("\n\n# You are ")


def test_agents_of_two_organizations_share_how_a_thread_works() -> None:
    """S-071: block A is the same bytes for all agents and runs."""
    shared = common(turn(LEAD), turn({**BACKEND, "organization": "web", "roster": (), "purpose": ""}))
    assert shared.endswith("\n\n# The organization ")
    assert "# The thread\n" in shared


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


def test_the_organization_is_shown_as_a_tree_with_descriptions() -> None:
    text = system_prompt(turn(LEAD), PARTS)
    tree = "lead — Plans the work.\n├── backend — Writes the server.\n└── tester\n"
    assert "# The organization payments\n\nKeeps the money.\n\nIts agents" in text
    assert f"\n\n{tree}\n# You are lead" in text


def test_the_roster_is_the_same_in_whatever_order_it_came() -> None:
    turned = {**LEAD, "roster": tuple(reversed(ROSTER))}
    assert system_prompt(turn(LEAD), PARTS) == system_prompt(turn(turned), PARTS)


def test_an_agent_is_told_its_name_its_boss_who_reports_to_it_and_its_instructions() -> None:
    lead, backend = system_prompt(turn(LEAD), PARTS), system_prompt(turn(BACKEND), PARTS)
    assert "You have no boss: what you cannot settle yourself goes to @user." in lead
    assert "These report to you: @backend, @tester." in lead
    assert "## Your instructions\n\n# lead\n\nYou plan.\n\n# Mode" in lead
    assert "Your boss is @lead: " in backend
    assert "Nobody reports to you" in backend


def test_what_people_wrote_of_an_agent_is_text_and_no_template() -> None:
    assert "You write {{ the }} server." in system_prompt(turn(BACKEND), PARTS)


@pytest.mark.parametrize(
    "words",
    [
        "is the only way to write into the thread",
        "Your work is private.",
        "Comments are public",
        "the last valid tag in it decides who is next",
        "Without a valid tag the task goes to",
        "Say how it goes in 50 to 100 words, hand over in 100 to 200.",
        "Plain prose",
        "than 300 words goes into a file",
        "Do not tag yourself",
        "Keep some for the last comment",
        "Then tag your boss",
    ],
    ids=str,
)
def test_the_thread_section_says_what_an_agent_has_to_know_of_threads(words: str) -> None:
    """S-071, S-072."""
    thread = system_prompt(turn(LEAD), PARTS).partition("# The thread")[2].partition("\n# Who you are")[0]
    assert words in " ".join(thread.split())


def test_no_tag_in_the_prompt_stands_in_backticks_where_it_would_not_count() -> None:
    assert "`@" not in system_prompt(turn(LEAD), PARTS) + system_prompt(turn(BACKEND), PARTS)


def test_an_owners_template_of_a_team_gets_the_names_that_ours_get() -> None:
    template = "{% if team %}{{ team.agent }} of {{ team.organization }}: {{ team.reports | join(' ') }}{% endif %}"
    parts = PromptParts(templates={"agent.jinja": template})
    assert "\n\nlead of payments: backend tester\n\n# Mode" in system_prompt(turn(LEAD), parts)
    assert system_prompt(ORDER, parts) == system_prompt(ORDER)
    assert parts.problems == []


def test_the_briefing_comes_first_and_then_what_an_earlier_run_of_the_turn_wrote() -> None:
    text = user_prompt(turn({**BACKEND, "unseen": ("Half done.", "More.")}), Path("/w"), NOW)
    assert text.startswith("On PAYM-0001.\n\n<situation>\n")
    assert text.endswith("again:\n\n<comment>\nHalf done.\n</comment>\n\n<comment>\nMore.\n</comment>\n")
    assert user_prompt(turn(BACKEND), Path("/w"), NOW).endswith("</situation>\n")


def test_a_run_that_goes_on_is_told_of_comments_that_were_cut_off_with_their_step() -> None:
    resumed = Resumed(run_id="e" * 12, seq=7, cut_off=True)
    told = resumed_prompt(resumed, turn({**BACKEND, "unseen": ("Half done.",)}).team)
    assert told.startswith(resumed_prompt(resumed) + "\n\nBefore the interruption")
    assert "<comment>\nHalf done.\n</comment>" in told
    assert resumed_prompt(resumed, turn(BACKEND).team) == resumed_prompt(resumed)
