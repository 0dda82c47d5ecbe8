"""The agents of an organization as a tree in plain text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from control_plane.teams.roster import tree_of
from shared.roster import circle, draw, flattened
from shared.work_order import RosterAgent

TEAM = (
    RosterAgent(name="tester", boss="lead", description="Tests what others wrote.\nReports what fails."),
    RosterAgent(name="db", boss="backend"),
    RosterAgent(name="lead", description="Plans the work."),
    RosterAgent(name="backend", boss="lead", description="Writes the server."),
    RosterAgent(name="api", boss="backend"),
    RosterAgent(name="auditor"),
)
DRAWN = """\
auditor
lead — Plans the work.
├── backend — Writes the server.
│   ├── api
│   └── db
└── tester — Tests what others wrote. Reports what fails."""
CHOICES = st.lists(st.integers(0, 100), max_size=12)


def team_of(choices: list[int]) -> list[RosterAgent]:
    """Agents of whom each has one of the earlier ones as its boss, or nobody."""
    bosses = [None, *(f"agent_{number}" for number in range(len(choices)))]
    return [
        RosterAgent(name=f"agent_{number}", boss=bosses[choice % (number + 1)]) for number, choice in enumerate(choices)
    ]


def test_the_roster_is_a_tree_with_each_description_on_the_line_of_its_agent() -> None:
    assert (draw(TEAM), draw(())) == (DRAWN, "")
    # Without its boss, an agent stands at the top.
    headless = [RosterAgent(name="backend", boss="gone"), RosterAgent(name="api", boss="backend")]
    assert draw(headless) == "backend\n└── api"


@given(CHOICES, st.permutations(range(12)))
def test_whatever_order_the_agents_come_in_terminal_and_prompt_draw_the_same_with_each_once(
    choices: list[int], order: list[int]
) -> None:
    team = team_of(choices)
    text = draw(team)
    assert draw(team[number] for number in order if number < len(team)) == text
    assert draw(flattened(node.model_dump() for node in tree_of(team))) == text
    assert sorted(line.split("─ ")[-1] for line in text.splitlines()) == sorted(agent.name for agent in team)


def test_a_circle_of_bosses_is_named_from_the_agent_up_to_itself() -> None:
    assert circle({"lead": "db", "backend": "lead", "db": "backend"}, "lead") == ["lead", "db", "backend", "lead"]
    assert circle({"lead": None, "backend": "lead", "db": "backend"}, "db") == ()
