"""Agents of an organization: added, placed below a boss, described, changed, removed, and brought back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from control_plane.contract.declarations.agents import AgentDocument, AgentEdit, AgentRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.webhooks import WebhookRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.projects import find_project
from control_plane.db.automation import WebhookDelivery
from control_plane.db.orders import Order
from control_plane.db.teams import Agent, Task
from control_plane.operations import agents, projects, providers
from control_plane.operations.automation import webhooks
from shared.clock import SystemClock
from shared.errors import Conflict, Forbidden, Invalid, NotFound
from shared.events import Delivered
from shared.roster import draw, flattened
from shared.states import OrderStatus
from shared.work_order import Describe, Team
from tests.support import team_rows
from tests.support.made import later, make_drone, make_project, start_run, submit
from tests.support.refusals import code_of
from tests.support.repositories import bare_remote
from tests.support.runs import Bench, shell, small_repository
from tests.support.scripted import says
from tests.support.scripted_model import ScriptedModel
from tests.support.turns import end, order_as_sent

TEXT = "Lead plans the work. It hands tasks to the others."
SECRET_URL = "https://me:hunter2@git.example/agents.git"


@pytest.fixture
def work(core: Core, admin: Caller) -> Core:
    """With a provider `local`, a project `web` and a drone."""
    make_project(core, admin)
    make_drone(core, admin, concurrency=9)
    return core


def add_agent(core: Core, caller: Caller, name: str = "lead", **fields: Any) -> AgentDocument:
    """An agent with uploaded instructions, unless `fields` say otherwise."""
    given = fields if {"instructions", "instructions_path"} & fields.keys() else {"instructions": "Lead.", **fields}
    return agents.create(core, caller, AgentRequest(name=name, **given))


def edit(core: Core, caller: Caller, name: str, **fields: Any) -> AgentDocument:
    return agents.edit(core, caller, name, AgentEdit(**fields))


def test_an_agent_comes_back_with_all_its_fields(work: Core, admin: Caller) -> None:
    """S-011, S-087."""
    lead = add_agent(work, admin, "lead", instructions="\n# Lead\n\nPlan.\n")
    assert (lead.max_iterations, lead.model, lead.cost_limit, lead.concurrency, lead.boss) == (50, None, None, 0, None)
    assert lead.instructions == "# Lead\n\nPlan."
    paid = {"cost_limit": 0.5, "provider": "local", "model": "openai/large", "max_iterations": 7, "concurrency": 2}
    where = {"instructions_path": "agents/backend.md", "project": "web", "boss": "lead", "labels": {"gpu": "yes"}}
    fields = {**paid, **where}
    made = add_agent(work, admin, "backend", **fields)
    assert made.model_dump(include=set(fields)) == fields
    assert agents.show(work, admin, "backend") == made


@pytest.mark.dialects
def test_of_those_who_add_an_agent_or_close_a_circle_of_bosses_at_once_one_does(work: Core, admin: Caller) -> None:
    def give(name: str, boss: str) -> str:
        return code_of(lambda: edit(work, admin, name, boss=boss))

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(lambda _: code_of(lambda: add_agent(work, admin)), range(2))) == ["", "E-AGENT-NAME"]
        add_agent(work, admin, "backend")
        assert sorted(pool.map(give, ("lead", "backend"), ("backend", "lead"))) == ["", "E-AGENT-BOSS"]
    assert len(agents.list_(work, admin)) == 2
    assert len(agents.tree(work, admin)) == 1


def test_what_an_agent_cannot_have_is_refused_and_nothing_is_stored(work: Core, admin: Caller) -> None:
    """S-002, S-010, S-011, S-015."""
    no_paths = ("/etc/lead.md", "agents/../../lead.md", "lead.txt", "agents/lead.md\nx.md", ".md")
    bad: list[tuple[str, dict[str, Any]]] = [
        *(("E-NAME", {"name": name}) for name in ("user", "lead-dev", "l" * 10_000)),
        ("E-AGENT-INSTRUCTIONS", {"instructions": "Lead.", "instructions_path": "lead.md"}),
        *(("E-AGENT-INSTRUCTIONS", {"instructions": text}) for text in (None, "x" * 100_001, "Lead \ud800")),
        *(("E-AGENT-INSTRUCTIONS", {"instructions_path": path}) for path in no_paths),
        ("E-TOO-LONG", {"instructions_path": "x" * 2000 + ".md"}),
        ("E-AGENT-BOSS", {"boss": "lead"}),
        ("E-MODEL", {"model": "two words"}),
        ("E-LABEL", {"labels": {"g p u": "yes"}}),
        ("E-ORDER-LIMIT", {"cost_limit": float("inf")}),
    ]
    found = [(code_of(lambda fields=fields: add_agent(work, admin, **fields)), fields) for _, fields in bad]
    assert found == bad
    assert agents.list_(work, admin) == []


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


def test_only_what_is_given_changes_and_null_takes_away(work: Core, admin: Caller) -> None:
    """S-010, S-015: instructions are uploaded or a path, and never missing. Of the seeds W13 is mended."""
    fields = {"project": "web", "provider": "local", "cost_limit": 1.0, "labels": {"gpu": "yes"}, "concurrency": 3}
    add_agent(work, admin, **fields)
    assert code_of(lambda: edit(work, admin, "lead")) == "E-AGENT-EDIT"
    changed = edit(work, admin, "lead", max_iterations=9)
    assert (changed.max_iterations, changed.model_dump(include=set(fields))) == (9, fields)

    emptied = edit(work, admin, "lead", project=None, provider=None, cost_limit=None)
    assert (emptied.project, emptied.provider, emptied.cost_limit) == (None, None, None)
    assert (emptied.labels, emptied.concurrency, emptied.instructions) == ({"gpu": "yes"}, 3, "Lead.")
    add_agent(work, admin, "boss")
    for nobody, own in ((None, None), ("none", "default")):
        given = edit(work, admin, "lead", boss="boss", model="openai/large")
        assert (given.boss, given.model) == ("boss", "openai/large")
        taken = edit(work, admin, "lead", boss=nobody, model=own)
        assert (taken.boss, taken.model) == (None, None)

    moved = edit(work, admin, "lead", instructions_path="./agents/lead.md")
    assert (moved.instructions, moved.instructions_path) == (None, "agents/lead.md")
    back = edit(work, admin, "lead", instructions="Lead again.")
    assert (back.instructions, back.instructions_path) == ("Lead again.", None)
    assert code_of(lambda: edit(work, admin, "lead", instructions=None)) == "E-AGENT-INSTRUCTIONS"


def test_an_agent_with_work_is_neither_changed_nor_removed(work: Core, admin: Caller) -> None:
    """S-014, S-015: it is at work while a task of it is in progress, and a task that is open waits for it."""
    for name, waiting, next_ in (("lead", "open", "assign"), ("backend", "in_progress", "preempt")):
        agent = add_agent(work, admin, name).id
        for status in ("failed", "done", "canceled", waiting):
            task = team_rows.add_task(work, admin, agent, claim=False)
            with work.database.write() as db:
                db.get_one(Task, task).status = status
        with pytest.raises(Conflict, match=task) as refused:
            agents.remove(work, admin, name)
        assert refused.value.code == "E-AGENT-TASKS"
        assert f"fleet task {next_} {task}" in refused.value.next
    assert edit(work, admin, "lead", max_iterations=1).max_iterations == 1
    with pytest.raises(Conflict, match=task) as refused:
        edit(work, admin, "backend", max_iterations=1, concurrency=9)
    assert refused.value.code == "E-AGENT-TASKS"
    assert agents.show(work, admin, "backend").max_iterations == 50


def test_the_limit_of_an_agent_at_work_can_be_raised_and_its_next_task_begins(work: Core, admin: Caller) -> None:
    agent = add_agent(work, admin, "lead", concurrency=1).id
    made = [team_rows.add_task(work, admin, agent) for _ in range(3)]
    assert edit(work, admin, "lead", concurrency=2).concurrency == 2
    assert [team_rows.task_of(work, each).status for each in made] == ["in_progress", "in_progress", "open"]


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
    assert add_agent(work, admin, "lead").reports == []


def test_the_name_of_a_removed_agent_brings_it_back_as_it_is_described_now(work: Core, admin: Caller) -> None:
    """S-013, S-034: removed, it is kept out of lists and tree, with what it cost."""
    first = add_agent(work, admin, instructions="Lead.", model="openai/large", max_iterations=7, labels={"gpu": "yes"})
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


def asked(core: Core) -> list[Order]:
    """The orders that ask for descriptions, the oldest first."""
    with core.database.read() as db:
        return list(db.scalars(select(Order).where(Order.purpose == "describe").order_by(Order.number)))


def description(core: Core, caller: Caller, name: str = "lead") -> str:
    return agents.show(core, caller, name).description


def test_a_new_agent_is_described_by_an_order_on_a_drone_behind_peoples_work(work: Core, admin: Caller) -> None:
    add_agent(work, admin, instructions="Plan the work.")
    order = asked(work)[0]
    assert (order.status, order.mode, order.agent_id, order.task_id) == ("assigned", "plan", None, None)
    sent = order_as_sent(work, order.id)
    assert (sent.purpose, sent.describe) == ("describe", Describe(agent="lead", instructions="Plan the work."))
    assert (sent.limits.max_iterations, sent.limits.cost_limit, sent.project.slug) == (5, 0.5, "web")

    submit(work, admin)
    with work.database.read() as db:
        urgent = db.scalars(select(Order.purpose).order_by(Order.priority.desc())).all()
    assert urgent == ["work", "describe"]


def test_the_description_of_an_order_that_succeeded_is_on_the_agent_and_no_news(work: Core, admin: Caller) -> None:
    webhooks.create(work, admin, WebhookRequest(name="all", url="https://hooks.example/in"))
    for name in ("lead", "backend", "db"):
        add_agent(work, admin, name)
    failed, canceled, succeeded = asked(work)
    end(work, failed.id, steps=(), to=OrderStatus.FAILED, response="half of a description")
    end(work, canceled.id, steps=(), to=OrderStatus.CANCELED, response="half of")
    end(work, succeeded.id, steps=(), response="  Db plans.\n\n\x1b[31mIt hands tasks\tto others. " * 100)

    assert [description(work, admin, name) for name in ("lead", "backend")] == ["", ""]
    text = description(work, admin, "db")
    assert text.startswith("Db plans. [31mIt hands tasks to others. Db plans. ")
    assert (len(text) <= 1000, text[-1]) == (True, ".")
    with work.database.read() as db:
        assert db.scalar(select(func.count()).select_from(WebhookDelivery)) == 0


def test_other_instructions_ask_for_another_description(work: Core, admin: Caller) -> None:
    """S-012, S-013: so does a removed agent that comes back. One of old instructions is not taken."""
    add_agent(work, admin)
    end(work, asked(work)[0].id, steps=(), response=TEXT)
    for same in ({"max_iterations": 3, "boss": None, "labels": {}}, {"project": "web"}, {"instructions": "Lead.\n"}):
        edit(work, admin, "lead", **same)
    assert (len(asked(work)), description(work, admin)) == (1, TEXT)

    for changes in ({"instructions": "Lead anew."}, {"instructions_path": "lead.md"}):
        edit(work, admin, "lead", **changes)
        assert description(work, admin) == ""
        assert Describe.model_validate(asked(work)[-1].asked) == Describe(agent="lead", **changes)
        end(work, asked(work)[-1].id, steps=(), response=TEXT)
        assert description(work, admin) == TEXT
    assert len(asked(work)) == 3

    edit(work, admin, "lead", instructions="Lead as none before.")
    outdated = asked(work)[-1]
    edit(work, admin, "lead", instructions="Lead as ever.")
    end(work, outdated.id, steps=(), response="It leads as none before.")
    assert description(work, admin) == ""
    agents.remove(work, admin, "lead")
    add_agent(work, admin)
    assert len(asked(work)) == 6


def test_where_no_project_is_clear_the_answer_says_so_and_naming_one_asks(core: Core, admin: Caller) -> None:
    """S-012: without a provider nobody can describe it either, which is no error."""
    warnings = add_agent(core, admin, "lead").warnings
    providers.add(core, admin, ProviderRequest(name="large", model="openai/large"))
    for slug, provider in (("web", None), ("shop", "large")):
        make_project(core, admin, slug, provider=provider)
    assert "fleet agent edit lead --project SLUG --provider NAME" in warnings[0]
    assert len(add_agent(core, admin, "backend").warnings) == 1
    assert asked(core) == []
    assert edit(core, admin, "lead", project="shop", model="openai/own").warnings == []
    assert [(order.provider_id is not None, order.model) for order in asked(core)] == [(True, "openai/large")]


@pytest.fixture
def bench(tmp_path: Path, sandboxes_closed: None) -> Bench:
    """The turn of an agent whose instructions lie in a repository of their own."""
    bench = Bench(tmp_path, small_repository(tmp_path / "remote.git"))
    elsewhere = bare_remote(tmp_path / "agents.git", {"backend.md": "You write the server.\n"})
    where = {"instructions_path": "backend.md", "instructions_url": f"file://{elsewhere}"}
    team = Team(organization="payments", agent="backend", task="PAYM-0001", comments=1, **where)
    bench.order = bench.order.model_copy(update={"agent": "backend", "task": "PAYM-0001", "team": team})
    return bench


def test_instructions_are_read_in_another_repository_than_the_tasks(bench: Bench) -> None:
    model = ScriptedModel([shell("ls > seen; test -f README && test ! -e backend.md"), says("done")], SystemClock())
    end = bench.run_with_model(model)
    assert end.status == "success", end.reason
    assert "You write the server." in model.asked[0][0].content
    assert bench.last(Delivered).files_changed == 1


def test_their_repository_is_refused_by_the_machines_owner(bench: Bench) -> None:
    def refuse(doing: str) -> None:
        if doing.startswith("working"):
            bench.refuse_url = Forbidden("not this repository", code="E-POLICY")

    bench.on_doing = refuse
    end = bench.run_with_model(ScriptedModel([says("done")], SystemClock()))
    assert (end.status, end.reason) == ("failed", "not this repository")


def test_the_order_names_the_repository_of_instructions_unless_it_is_the_tasks_own(work: Core, admin: Caller) -> None:
    projects.add(work, admin, ProjectRequest(slug="agents", git_url=SECRET_URL))
    with work.database.read() as db:
        own, other = (find_project(db, admin.organization_id, slug).id for slug in ("web", "agents"))
    in_file = {"instructions": None, "instructions_path": "backend.md"}
    for name, fields, url in (
        ("elsewhere", {**in_file, "project_id": other}, SECRET_URL),
        ("own", {**in_file, "project_id": own}, None),
        ("nowhere", in_file, None),
        ("uploaded", {"project_id": other}, None),
    ):
        agent = team_rows.add_agent(work, admin, name, **fields)
        task = team_rows.add_task(work, admin, agent, project="web")
        team = order_as_sent(work, team_rows.order_of(work, task).id).team
        assert team is not None
        assert (team.instructions_url, "hunter2" in repr(team)) == (url, False), name
