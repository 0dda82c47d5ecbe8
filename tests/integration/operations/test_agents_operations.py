"""Agents of an organization: added, placed below a boss, changed, removed, and brought back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from control_plane.core import Caller, Core
from control_plane.db.teams import Agent
from control_plane.declarations.agents import AgentEdit
from control_plane.operations import agents
from shared.errors import Conflict, Invalid, NotFound
from shared.roster import draw, flattened
from tests.support.agents import add_agent, put_agents, put_task
from tests.support.made import later, make_drone, make_project, start_run, submit
from tests.support.organizations import add_organization
from tests.support.refusals import code_of


@pytest.fixture
def work(core: Core, admin: Caller) -> Core:
    """With a provider `local` and a project `web`."""
    make_project(core, admin)
    return core


def edit(core: Core, caller: Caller, name: str, **fields: Any) -> Any:
    return agents.edit(core, caller, name, AgentEdit(**fields))


# --- making --------------------------------------------------------------------------------


@pytest.mark.dialects
def test_an_agent_comes_back_with_all_its_fields(work: Core, admin: Caller) -> None:
    """S-011, S-087."""
    lead = add_agent(work, admin, "lead", instructions="\n# Lead\n\nPlan.\n")
    assert (lead.max_iterations, lead.model, lead.cost_limit, lead.concurrency, lead.boss) == (50, None, None, 0, None)
    assert lead.instructions == "# Lead\n\nPlan."
    fields = {
        "instructions_path": "agents/backend.md",
        "project": "web",
        "boss": "lead",
        "max_iterations": 7,
        "cost_limit": 0.5,
        "provider": "local",
        "model": "openai/large",
        "labels": {"gpu": "yes"},
        "concurrency": 2,
    }
    made = add_agent(work, admin, "backend", **fields)

    assert made.model_dump(include=set(fields)) == fields
    assert (made.name, made.organization, made.description, made.instructions) == ("backend", "default", "", None)
    assert (made.is_removed, made.removed_at, made.reports, made.warnings) == (False, None, [], [])
    assert agents.show(work, admin, "backend") == made


def test_a_name_that_is_reserved_or_malformed_is_refused_and_cut_short(work: Core, admin: Caller) -> None:
    """S-002, S-011."""
    for name in ("user", "lead-dev", "l" * 10_000):
        with pytest.raises(Invalid) as refused:
            add_agent(work, admin, name)
        assert (refused.value.code, len(refused.value.what) < 150) == ("E-NAME", True)
    assert agents.list_(work, admin) == []


@pytest.mark.dialects
def test_of_many_who_add_the_same_agent_at_once_one_does(work: Core, admin: Caller) -> None:
    with ThreadPoolExecutor(4) as pool:
        codes = sorted(pool.map(lambda _: code_of(lambda: add_agent(work, admin)), range(4)))

    assert codes == ["", "E-AGENT-NAME", "E-AGENT-NAME", "E-AGENT-NAME"]
    assert [each.name for each in agents.list_(work, admin)] == ["lead"]


def test_what_an_agent_cannot_have_is_refused_and_nothing_is_stored(work: Core, admin: Caller) -> None:
    """S-010, S-011, S-015: a boss must exist, and be somebody else."""
    bad: list[tuple[str, dict[str, Any]]] = [
        ("E-AGENT-INSTRUCTIONS", {"instructions": None}),
        ("E-AGENT-INSTRUCTIONS", {"instructions": "Lead.", "instructions_path": "lead.md"}),
        ("E-AGENT-INSTRUCTIONS", {"instructions": "x" * 100_001}),
        ("E-AGENT-INSTRUCTIONS", {"instructions": "Lead \ud800"}),
        ("E-AGENT-INSTRUCTIONS", {"instructions_path": "/etc/lead.md"}),
        ("E-AGENT-INSTRUCTIONS", {"instructions_path": "agents/../../lead.md"}),
        ("E-AGENT-INSTRUCTIONS", {"instructions_path": "lead.txt"}),
        ("E-AGENT-INSTRUCTIONS", {"instructions_path": "agents/lead.md\nx.md"}),
        ("E-AGENT-INSTRUCTIONS", {"instructions_path": ".md"}),
        ("E-TOO-LONG", {"instructions_path": "x" * 2000 + ".md"}),
        ("E-AGENT-404", {"boss": "nobody"}),
        ("E-AGENT-BOSS", {"boss": "lead"}),
        ("E-PROJECT-404", {"project": "nope"}),
        ("E-PROVIDER-404", {"provider": "nope"}),
        ("E-MODEL", {"model": "two words"}),
        ("E-LABEL", {"labels": {"g p u": "yes"}}),
        ("E-ORDER-LIMIT", {"cost_limit": float("inf")}),
    ]
    found = [(code_of(lambda fields=fields: add_agent(work, admin, **fields)), fields) for _, fields in bad]

    assert found == bad
    assert agents.list_(work, admin) == []


def test_each_organization_has_its_own_agents(work: Core, admin: Caller) -> None:
    """S-004."""
    add_agent(work, admin, "lead")
    other = add_organization(work, admin)
    add_agent(work, other, "lead", instructions="Ours.")

    assert [each.instructions for each in (agents.show(work, c, "lead") for c in (admin, other))] == ["Lead.", "Ours."]
    assert code_of(lambda: add_agent(work, other, "backend", provider="local")) == "E-PROVIDER-404"
    agents.remove(work, other, "lead")
    assert [each.name for each in agents.list_(work, admin)] == ["lead"]


# --- bosses --------------------------------------------------------------------------------


def drawn(core: Core, admin: Caller) -> str:
    """The tree as `fleet agent tree` prints it."""
    return draw(flattened(node.model_dump() for node in agents.tree(core, admin)))


def add_family(core: Core, admin: Caller) -> None:
    """Two below `lead`, and one below one of them."""
    add_agent(core, admin, "lead")
    for name, boss in (("tester", "lead"), ("backend", "lead"), ("db", "backend")):
        add_agent(core, admin, name, boss=boss)


def test_bosses_in_a_circle_are_refused_and_the_circle_is_named(work: Core, admin: Caller) -> None:
    """S-015, S-016; of the seeds W13 is mended: circles were not detected."""
    add_family(work, admin)

    with pytest.raises(Invalid) as refused:
        edit(work, admin, "lead", boss="db")

    assert "lead → db → backend → lead" in str(refused.value.why)
    assert refused.value.code == code_of(lambda: edit(work, admin, "lead", boss="lead")) == "E-AGENT-BOSS"
    assert agents.show(work, admin, "lead").boss is None


@pytest.mark.dialects
def test_of_two_who_close_a_circle_at_once_one_is_refused(work: Core, admin: Caller) -> None:
    add_agent(work, admin, "lead")
    add_agent(work, admin, "backend")

    def give(name: str, boss: str) -> str:
        return code_of(lambda: edit(work, admin, name, boss=boss))

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(give, ("lead", "backend"), ("backend", "lead"))) == ["", "E-AGENT-BOSS"]
    assert len(agents.tree(work, admin)) == 1


def test_there_are_at_most_32_levels_of_bosses(work: Core, admin: Caller) -> None:
    names = [f"level_{number}" for number in range(1, 34)]
    for name in names[:3]:
        add_agent(work, admin, name)
    put_agents(work, admin, names[3:], boss="level_3")

    edit(work, admin, "level_2", boss="level_1")
    with pytest.raises(Invalid, match="33 levels"):
        edit(work, admin, "level_3", boss="level_2")


def test_a_boss_can_be_taken_away(work: Core, admin: Caller) -> None:
    """S-015; of the seeds W13 is mended: null stood for "not given"."""
    add_family(work, admin)
    for name, nobody in (("backend", None), ("tester", "none")):
        assert edit(work, admin, name, boss=nobody).boss is None
    assert agents.show(work, admin, "lead").reports == []


# --- changing ------------------------------------------------------------------------------


def test_only_what_is_given_changes_and_null_takes_away(work: Core, admin: Caller) -> None:
    """S-015."""
    fields = {"project": "web", "provider": "local", "cost_limit": 1.0, "labels": {"gpu": "yes"}, "concurrency": 3}
    add_agent(work, admin, **fields)

    assert code_of(lambda: edit(work, admin, "lead")) == "E-AGENT-EDIT"
    changed = edit(work, admin, "lead", max_iterations=9)
    assert (changed.max_iterations, changed.model_dump(include=set(fields))) == (9, fields)

    emptied = edit(work, admin, "lead", project=None, provider=None, cost_limit=None)
    assert (emptied.project, emptied.provider, emptied.cost_limit) == (None, None, None)
    assert (emptied.labels, emptied.concurrency, emptied.instructions) == ({"gpu": "yes"}, 3, "Lead.")

    for own in (None, "default"):
        assert edit(work, admin, "lead", model="openai/large").model == "openai/large"
        assert edit(work, admin, "lead", model=own).model is None


def test_an_agent_has_either_uploaded_instructions_or_a_path_and_never_none(work: Core, admin: Caller) -> None:
    """S-010."""
    add_agent(work, admin)

    moved = edit(work, admin, "lead", instructions_path="./agents/lead.md")
    assert (moved.instructions, moved.instructions_path) == (None, "agents/lead.md")
    back = edit(work, admin, "lead", instructions="Lead again.")
    assert (back.instructions, back.instructions_path) == ("Lead again.", None)
    assert code_of(lambda: edit(work, admin, "lead", instructions=None)) == "E-AGENT-INSTRUCTIONS"
    assert agents.show(work, admin, "lead").instructions == "Lead again."


def test_an_agent_at_work_is_not_changed(work: Core, admin: Caller) -> None:
    """S-015: at work it is while a task of it is in progress."""
    add_agent(work, admin)
    for status in ("open", "failed", "done", "canceled"):
        put_task(work, admin, "lead", status)
    assert edit(work, admin, "lead", max_iterations=1).max_iterations == 1
    task = put_task(work, admin, "lead", "in_progress")

    with pytest.raises(Conflict, match=task) as refused:
        edit(work, admin, "lead", max_iterations=2)

    assert refused.value.code == "E-AGENT-TASKS"
    assert agents.show(work, admin, "lead").max_iterations == 1


# --- removing ------------------------------------------------------------------------------


def test_its_reports_stand_at_the_top_and_each_is_named(work: Core, admin: Caller) -> None:
    """S-014, S-016."""
    add_family(work, admin)
    assert drawn(work, admin) == "lead\n├── backend\n│   └── db\n└── tester"
    assert agents.show(work, admin, "lead").reports == ["backend", "tester"]
    bosses = {each.name: each.boss for each in agents.list_(work, admin)}
    assert list(bosses.items()) == [("backend", "lead"), ("db", "backend"), ("lead", None), ("tester", "lead")]

    removed = agents.remove(work, admin, "lead")

    assert [warning.split()[0] for warning in removed.warnings] == ["backend", "tester"]
    assert drawn(work, admin) == "backend\n└── db\ntester"
    assert agents.show(work, admin, "backend").boss is None
    assert add_agent(work, admin, "lead").reports == []


def test_an_agent_with_work_is_not_removed(work: Core, admin: Caller) -> None:
    """S-014."""
    for name, status in (("lead", "open"), ("backend", "in_progress")):
        add_agent(work, admin, name)
        task = put_task(work, admin, name, status)
        with pytest.raises(Conflict, match=task) as refused:
            agents.remove(work, admin, name)
        assert refused.value.code == "E-AGENT-TASKS"
        assert not agents.show(work, admin, name).is_removed


def test_the_name_of_a_removed_agent_brings_it_back_as_it_is_described_now(work: Core, admin: Caller) -> None:
    """S-013, S-034: removed, it is kept out of lists and tree, with what it cost."""
    first = add_agent(work, admin, instructions="Lead.", model="openai/large", max_iterations=7, labels={"gpu": "yes"})
    make_drone(work, admin, concurrency=2)
    spent = {"cost_usd": 0.25, "input_tokens": 10, "output_tokens": 4, "duration_ms": 1500}
    start_run(work, submit(work, admin).id, agent_id=first.id, status="success", **spent)
    with work.database.write() as db:
        db.get_one(Agent, first.id).description = "It leads."
    later(work, minutes=5)

    removed = agents.remove(work, admin, "lead")
    assert (removed.is_removed, removed.removed_at) == (True, work.clock.now())
    assert (agents.list_(work, admin), agents.tree(work, admin)) == ([], [])
    assert [each.name for each in agents.list_(work, admin, include_removed=True)] == ["lead"]
    assert agents.show(work, admin, "lead").is_removed
    for act in (
        lambda: agents.remove(work, admin, "lead"),
        lambda: edit(work, admin, "lead", boss=None),
        lambda: add_agent(work, admin, "backend", boss="lead"),
    ):
        with pytest.raises(NotFound):
            act()

    back = add_agent(work, admin, instructions="Lead anew.")
    assert (back.id, back.created_at, back.is_removed) == (first.id, first.created_at, False)
    assert (back.description, back.instructions) == ("", "Lead anew.")
    assert (back.model, back.max_iterations, back.labels) == (None, 50, {})
    assert removed.totals == back.totals
    assert back.totals is not None
    assert back.totals.model_dump() == {"runs": 1, "unknown_costs": 0, **spent}
