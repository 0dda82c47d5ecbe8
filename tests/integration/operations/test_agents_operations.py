"""Agents of an organization, on each kind of database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.core import Caller, Core
from control_plane.db.installation import Organization
from control_plane.db.runs import Run
from control_plane.db.teams import Agent
from control_plane.declarations.agents import AgentEdit, AgentRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations import agents, providers
from shared.errors import Conflict, FleetError, Forbidden, Invalid, NotFound
from shared.names import new_id
from shared.roster import draw, flattened
from tests.support.agents import add_agent, put_agents, put_task
from tests.support.made import later, make_drone, make_project, start_run, submit


@pytest.fixture
def work(core: Core, admin: Caller) -> Core:
    """With a provider `local` and a project `web`."""
    make_project(core, admin)
    return core


sqlite_alone = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
"""For what is refused before any database is asked."""


def edit(core: Core, caller: Caller, name: str, **fields: Any) -> Any:
    return agents.edit(core, caller, name, AgentEdit(**fields))


def other_organization(core: Core, name: str = "payments") -> Caller:
    """Somebody who may do everything in another organization."""
    values = {"id": new_id(), "name": name, "acronym": name[:4].upper(), "created_at": core.clock.now()}
    with core.database.write() as db:
        db.add(Organization(**values))
    return system_caller(core, name)


# --- making --------------------------------------------------------------------------------


def test_an_agent_comes_back_with_all_its_fields(work: Core, admin: Caller) -> None:
    """S-011."""
    add_agent(work, admin, "lead")
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


def test_the_defaults_are_fifty_iterations_and_the_model_of_the_provider(work: Core, admin: Caller) -> None:
    """S-011, S-087."""
    made = add_agent(work, admin, instructions="\n# Lead\n\nPlan.\n")

    assert (made.max_iterations, made.model, made.cost_limit, made.concurrency, made.boss) == (50, None, None, 0, None)
    assert made.instructions == "# Lead\n\nPlan."


@sqlite_alone
@pytest.mark.parametrize(
    "name",
    ["user", "system", "", "Lead", "lead-dev", "9lives", "_lead", "a b", "l" * 10_000, "léad", "lead\n", "@lead"],
)
def test_a_name_that_is_reserved_or_malformed_is_refused_and_cut_short(work: Core, admin: Caller, name: str) -> None:
    """S-002, S-011."""
    with pytest.raises(Invalid) as refused:
        add_agent(work, admin, name)

    assert refused.value.code == "E-NAME"
    assert len(refused.value.what) < 150
    assert agents.list_(work, admin) == []


def test_a_name_that_is_taken_is_a_conflict(work: Core, admin: Caller) -> None:
    """S-011."""
    add_agent(work, admin)
    with pytest.raises(Conflict, match="agent lead already exists") as refused:
        add_agent(work, admin, instructions="Others.")

    assert refused.value.code == "E-AGENT-NAME"
    assert agents.show(work, admin, "lead").instructions == "Lead."


def test_of_many_who_add_the_same_agent_at_once_one_does(work: Core, admin: Caller) -> None:
    def add(_: int) -> str:
        try:
            return add_agent(work, admin).name
        except Conflict as refused:
            return refused.code

    with ThreadPoolExecutor(4) as pool:
        outcomes = sorted(pool.map(add, range(4)))

    assert outcomes == ["E-AGENT-NAME", "E-AGENT-NAME", "E-AGENT-NAME", "lead"]


@sqlite_alone
@pytest.mark.parametrize(
    "fields",
    [
        {"instructions": None},
        {"instructions": "Lead.", "instructions_path": "lead.md"},
        {"instructions": " \n"},
        {"instructions": "x" * 100_001},
        {"instructions": "x" * 5_000_000},
        {"instructions": "Lead\0"},
        {"instructions": "Lead \ud800"},
        {"instructions_path": "/etc/lead.md"},
        {"instructions_path": "agents/../../lead.md"},
        {"instructions_path": "lead.txt"},
        {"instructions_path": "agents/lead.md\nx.md"},
        {"instructions_path": ".md"},
    ],
    ids=lambda fields: str(fields)[:40],
)
def test_instructions_that_cannot_be_are_refused_and_nothing_is_stored(
    work: Core, admin: Caller, fields: dict[str, Any]
) -> None:
    """S-010, S-011."""
    with pytest.raises(Invalid) as refused:
        add_agent(work, admin, **fields)

    assert refused.value.code == "E-AGENT-INSTRUCTIONS"
    assert len(refused.value.what + refused.value.why) < 300
    assert agents.list_(work, admin) == []


@sqlite_alone
@pytest.mark.parametrize(
    ("fields", "kind", "code"),
    [
        ({"boss": "nobody"}, NotFound, "E-AGENT-404"),
        ({"boss": "lead"}, Invalid, "E-AGENT-BOSS"),
        ({"project": "nope"}, NotFound, "E-PROJECT-404"),
        ({"provider": "nope"}, NotFound, "E-PROVIDER-404"),
        ({"model": "two words"}, Invalid, "E-MODEL"),
        ({"labels": {"g p u": "yes"}}, Invalid, "E-LABEL"),
        ({"cost_limit": float("inf")}, Invalid, "E-ORDER-LIMIT"),
        ({"instructions_path": "x" * 2000 + ".md"}, FleetError, "E-TOO-LONG"),
    ],
    ids=str,
)
def test_what_an_agent_cannot_have_is_refused(
    work: Core, admin: Caller, fields: dict[str, Any], kind: type[FleetError], code: str
) -> None:
    """S-015: a boss must exist, and be somebody else."""
    with pytest.raises(kind) as refused:
        add_agent(work, admin, **fields)

    assert refused.value.code == code
    assert agents.list_(work, admin) == []


def test_a_removed_agent_cannot_be_a_boss(work: Core, admin: Caller) -> None:
    add_agent(work, admin)
    agents.remove(work, admin, "lead")

    with pytest.raises(NotFound, match="agent 'lead' not found"):
        add_agent(work, admin, "backend", boss="lead")


def test_only_admins_change_agents_and_everybody_reads_them(work: Core, admin: Caller) -> None:
    add_agent(work, admin)
    operator = Caller(admin.organization_id, admin.organization, "operator", "eve")
    viewer = Caller(admin.organization_id, admin.organization, "viewer", "vic")

    for act in (
        lambda: add_agent(work, operator, "backend"),
        lambda: edit(work, operator, "lead", boss=None),
        lambda: agents.remove(work, operator, "lead"),
    ):
        with pytest.raises(Forbidden):
            act()
    assert agents.show(work, viewer, "lead").instructions == "Lead."


# --- bosses --------------------------------------------------------------------------------


def drawn(core: Core, admin: Caller) -> str:
    """The tree as `fleet agent tree` prints it."""
    return draw(flattened(node.model_dump() for node in agents.tree(core, admin)))


def test_the_tree_is_drawn_by_name_below_each_boss(work: Core, admin: Caller) -> None:
    """S-016."""
    add_agent(work, admin, "lead")
    for name, boss in (("tester", "lead"), ("backend", "lead"), ("db", "backend")):
        add_agent(work, admin, name, boss=boss)

    assert drawn(work, admin) == "lead\n├── backend\n│   └── db\n└── tester"
    assert agents.show(work, admin, "lead").reports == ["backend", "tester"]
    assert [(each.name, each.boss) for each in agents.list_(work, admin)] == [
        ("backend", "lead"),
        ("db", "backend"),
        ("lead", None),
        ("tester", "lead"),
    ]


def test_bosses_in_a_circle_are_refused_and_the_circle_is_named(work: Core, admin: Caller) -> None:
    """S-016; of the seeds W13 is mended: circles were not detected."""
    add_agent(work, admin, "lead")
    add_agent(work, admin, "backend", boss="lead")
    add_agent(work, admin, "db", boss="backend")

    with pytest.raises(Invalid) as refused:
        edit(work, admin, "lead", boss="db")

    assert refused.value.code == "E-AGENT-BOSS"
    assert refused.value.why == "the chain of bosses would be lead → db → backend → lead"
    assert agents.show(work, admin, "lead").boss is None


def test_an_agent_cannot_become_its_own_boss(work: Core, admin: Caller) -> None:
    """S-015."""
    add_agent(work, admin)
    with pytest.raises(Invalid, match="cannot be its own boss"):
        edit(work, admin, "lead", boss="lead")


def test_of_two_who_close_a_circle_at_once_one_is_refused(work: Core, admin: Caller) -> None:
    add_agent(work, admin, "lead")
    add_agent(work, admin, "backend")

    def give(name: str, boss: str) -> str:
        try:
            return str(edit(work, admin, name, boss=boss).name)
        except Invalid as refused:
            return refused.code

    with ThreadPoolExecutor(2) as pool:
        outcomes = sorted(pool.map(give, ("lead", "backend"), ("backend", "lead")))

    assert outcomes[0] == "E-AGENT-BOSS"
    assert len(agents.tree(work, admin)) == 1


def test_there_are_at_most_32_levels_of_bosses(work: Core, admin: Caller) -> None:
    names = [f"level_{number}" for number in range(1, 34)]
    for name in names[:3]:
        add_agent(work, admin, name)
    put_agents(work, admin, names[3:], boss="level_3")

    edit(work, admin, "level_2", boss="level_1")
    with pytest.raises(Invalid, match="33 levels of bosses; 32 are allowed"):
        edit(work, admin, "level_3", boss="level_2")


@pytest.mark.parametrize("nobody", [None, "none"])
def test_a_boss_can_be_taken_away(work: Core, admin: Caller, nobody: str | None) -> None:
    """S-015; of the seeds W13 is mended: null stood for "not given"."""
    add_agent(work, admin, "lead")
    add_agent(work, admin, "backend", boss="lead")

    assert edit(work, admin, "backend", boss=nobody).boss is None
    assert agents.show(work, admin, "lead").reports == []


# --- changing ------------------------------------------------------------------------------


def test_only_what_is_given_changes_and_null_takes_away(work: Core, admin: Caller) -> None:
    """S-015."""
    fields = {"project": "web", "provider": "local", "cost_limit": 1.0, "labels": {"gpu": "yes"}, "concurrency": 3}
    add_agent(work, admin, **fields)

    changed = edit(work, admin, "lead", max_iterations=9)
    assert (changed.max_iterations, changed.model_dump(include=set(fields))) == (9, fields)

    emptied = edit(work, admin, "lead", project=None, provider=None, cost_limit=None)
    assert (emptied.project, emptied.provider, emptied.cost_limit) == (None, None, None)
    assert (emptied.labels, emptied.concurrency, emptied.instructions) == ({"gpu": "yes"}, 3, "Lead.")


@pytest.mark.parametrize("own", [None, "default"])
def test_a_model_can_be_taken_away(work: Core, admin: Caller, own: str | None) -> None:
    """S-015."""
    add_agent(work, admin, model="openai/large")

    assert edit(work, admin, "lead", model=own).model is None


def test_an_edit_of_nothing_is_refused(work: Core, admin: Caller) -> None:
    """S-015."""
    add_agent(work, admin)
    with pytest.raises(Invalid) as refused:
        edit(work, admin, "lead")

    assert refused.value.code == "E-AGENT-EDIT"


def test_a_path_takes_the_place_of_uploaded_instructions_and_the_other_way_round(work: Core, admin: Caller) -> None:
    """S-010."""
    add_agent(work, admin)

    moved = edit(work, admin, "lead", instructions_path="./agents/lead.md")
    assert (moved.instructions, moved.instructions_path) == (None, "agents/lead.md")
    back = edit(work, admin, "lead", instructions="Lead again.")
    assert (back.instructions, back.instructions_path) == ("Lead again.", None)


def test_an_agent_is_never_left_without_instructions(work: Core, admin: Caller) -> None:
    add_agent(work, admin)
    with pytest.raises(Invalid) as refused:
        edit(work, admin, "lead", instructions=None)

    assert refused.value.code == "E-AGENT-INSTRUCTIONS"
    assert agents.show(work, admin, "lead").instructions == "Lead."


def test_an_agent_at_work_is_not_changed(work: Core, admin: Caller) -> None:
    """S-015."""
    add_agent(work, admin)
    task = put_task(work, admin, "lead", "in_progress")

    with pytest.raises(Conflict, match=task) as refused:
        edit(work, admin, "lead", max_iterations=1)

    assert refused.value.code == "E-AGENT-TASKS"
    assert agents.show(work, admin, "lead").max_iterations == 50


@pytest.mark.parametrize("status", ["open", "failed", "done", "canceled"])
def test_an_agent_whose_task_is_not_in_progress_can_be_changed(work: Core, admin: Caller, status: str) -> None:
    """S-015."""
    add_agent(work, admin)
    put_task(work, admin, "lead", status)

    assert edit(work, admin, "lead", max_iterations=1).max_iterations == 1


# --- removing ------------------------------------------------------------------------------


def test_a_removed_agent_is_out_of_lists_and_tree_and_kept_with_its_date(work: Core, admin: Caller) -> None:
    """S-013."""
    add_agent(work, admin)
    later(work, minutes=5)
    removed = agents.remove(work, admin, "lead")

    assert (removed.is_removed, removed.removed_at) == (True, work.clock.now())
    assert (agents.list_(work, admin), agents.tree(work, admin)) == ([], [])
    assert [each.name for each in agents.list_(work, admin, include_removed=True)] == ["lead"]
    assert agents.show(work, admin, "lead").is_removed
    for act in (lambda: agents.remove(work, admin, "lead"), lambda: edit(work, admin, "lead", boss=None)):
        with pytest.raises(NotFound):
            act()


def test_its_reports_stand_at_the_top_and_each_is_named(work: Core, admin: Caller) -> None:
    """S-014."""
    add_agent(work, admin, "lead")
    for name, boss in (("backend", "lead"), ("tester", "lead"), ("db", "backend")):
        add_agent(work, admin, name, boss=boss)

    removed = agents.remove(work, admin, "lead")

    assert removed.warnings == [
        "backend no longer has a boss (was lead)",
        "tester no longer has a boss (was lead)",
    ]
    assert drawn(work, admin) == "backend\n└── db\ntester"
    assert agents.show(work, admin, "backend").boss is None
    assert add_agent(work, admin, "lead").reports == []


@pytest.mark.parametrize("status", ["open", "in_progress"])
def test_an_agent_with_work_is_not_removed(work: Core, admin: Caller, status: str) -> None:
    """S-014."""
    add_agent(work, admin)
    task = put_task(work, admin, "lead", status)

    with pytest.raises(Conflict, match=task) as refused:
        agents.remove(work, admin, "lead")

    assert refused.value.code == "E-AGENT-TASKS"
    assert not agents.show(work, admin, "lead").is_removed


def test_the_name_of_a_removed_agent_brings_it_back_as_it_is_described_now(work: Core, admin: Caller) -> None:
    """S-013."""
    first = add_agent(work, admin, instructions="Lead.", model="openai/large", max_iterations=7, labels={"gpu": "yes"})
    with work.database.write() as db:
        db.get_one(Agent, first.id).description = "It leads."
    agents.remove(work, admin, "lead")

    back = add_agent(work, admin, instructions="Lead anew.")

    assert (back.id, back.created_at, back.is_removed) == (first.id, first.created_at, False)
    assert (back.description, back.instructions) == ("", "Lead anew.")
    assert (back.model, back.max_iterations, back.labels) == (None, 50, {})


def test_what_an_agent_cost_stays_with_it_when_it_is_removed_and_comes_back(work: Core, admin: Caller) -> None:
    """S-013, S-034."""
    made = add_agent(work, admin)
    make_drone(work, admin)
    spent = {"cost_usd": 0.25, "input_tokens": 10, "output_tokens": 4, "duration_ms": 1500}
    start_run(work, submit(work, admin).id, agent_id=made.id, status="success", **spent)

    removed = agents.remove(work, admin, "lead")
    back = add_agent(work, admin)

    assert removed.totals == back.totals == agents.show(work, admin, "lead").totals
    assert back.totals is not None
    assert back.totals.model_dump() == {"runs": 1, "unknown_costs": 0, **spent}
    with work.database.read() as db:
        assert db.scalars(select(Run.agent_id)).all() == [made.id]


# --- isolation -----------------------------------------------------------------------------


def test_agents_of_another_organization_are_not_there(work: Core, admin: Caller) -> None:
    """S-004."""
    add_agent(work, admin, "lead")
    other = other_organization(work)
    add_agent(work, other, "lead", instructions="Ours.")

    assert [each.instructions for each in (agents.show(work, c, "lead") for c in (admin, other))] == ["Lead.", "Ours."]
    agents.remove(work, other, "lead")
    assert [each.name for each in agents.list_(work, admin)] == ["lead"]


@pytest.mark.parametrize("fields", [{"boss": "lead"}, {"project": "web"}, {"provider": "local"}], ids=str)
def test_nothing_of_another_organization_can_be_named(work: Core, admin: Caller, fields: dict[str, str]) -> None:
    """S-004."""
    add_agent(work, admin, "lead")
    other = other_organization(work)

    with pytest.raises(NotFound) as refused:
        add_agent(work, other, "backend", **fields)

    assert refused.value.what.endswith(f"{next(iter(fields.values()))!r} not found")
    assert refused.value.what.startswith(("agent ", "project ", "provider "))


def test_an_agent_that_is_not_there_is_answered_with_the_near_ones(work: Core, admin: Caller) -> None:
    add_agent(work, admin, "backend")
    with pytest.raises(NotFound) as refused:
        agents.show(work, admin, "bakend")

    assert (refused.value.code, refused.value.next) == (
        "E-AGENT-404",
        "did you mean backend? Otherwise: fleet agent ls",
    )


def test_a_provider_is_not_needed_to_make_an_agent(core: Core, admin: Caller) -> None:
    """S-012: without a provider nobody can describe it, which is said, and is no error."""
    made = add_agent(core, admin)

    assert providers.list_(core, admin) == []
    assert made.warnings == [
        "the description of lead cannot be written yet: select the project and provider to use "
        "(next: fleet agent edit lead --project SLUG --provider NAME)"
    ]
    assert AgentRequest.model_fields["max_iterations"].default == 50
