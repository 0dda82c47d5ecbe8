"""Agents get a description that a model writes: asked for by an order of its own, taken when that ends (S-012)."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from control_plane.core import Caller, Core
from control_plane.db.automation import Webhook, WebhookDelivery
from control_plane.db.installation import Organization
from control_plane.db.orders import Dispatch, Order
from control_plane.declarations.agents import AgentEdit
from control_plane.declarations.providers import ProviderRequest
from control_plane.lookups.projects import find_project
from control_plane.operations import agents, providers
from control_plane.operations.orders import reading
from control_plane.orders.ending import Ending, finish
from control_plane.services.describing import MAX_DESCRIPTION, cleaned
from control_plane.supervisor.work_orders import work_order
from shared.names import new_id
from shared.reasons import RunEnd
from shared.states import OrderStatus
from shared.work_order import Describe
from tests.support.agents import add_agent
from tests.support.made import make_drone, make_project, start_run, submit

TEXT = "Lead plans the work. It hands tasks to the others."


@pytest.fixture
def work(core: Core, admin: Caller) -> Core:
    """With a provider `local`, a project `web` and a drone."""
    make_project(core, admin)
    make_drone(core, admin)
    return core


def asked(core: Core) -> list[Order]:
    """The orders that ask for descriptions, the oldest first."""
    with core.database.read() as db:
        return list(db.scalars(select(Order).where(Order.purpose == "describe").order_by(Order.number)))


def end(core: Core, order: Order, response: str | None = TEXT, status: OrderStatus = OrderStatus.SUCCEEDED) -> None:
    """Let the order's run begin and end so."""
    start_run(core, order.id)
    with core.database.write() as db:
        row = db.get_one(Order, order.id)
        if status is OrderStatus.CANCELED:
            row.status = "canceling"
            db.flush()
        finish(db, core, row, status, Ending("submitted", RunEnd(), response))


def description(core: Core, caller: Caller, name: str = "lead") -> str:
    return agents.show(core, caller, name).description


def test_a_new_agent_is_described_by_an_order_on_a_drone_behind_peoples_work(work: Core, admin: Caller) -> None:
    add_agent(work, admin, instructions="Plan the work.")
    order = asked(work)[0]

    assert (order.status, order.mode, order.agent_id, order.task_id) == ("assigned", "plan", None, None)
    assert order.user == admin.user
    with work.database.read() as db:
        sent = work_order(db, work, db.scalars(select(Dispatch).where(Dispatch.order_id == order.id)).one())
    assert (sent.purpose, sent.describe) == ("describe", Describe(agent="lead", instructions="Plan the work."))
    assert (sent.limits.max_iterations, sent.limits.cost_limit) == (5, 0.5)
    assert sent.project.slug == "web"

    submit(work, admin)
    with work.database.read() as db:
        urgent = db.scalars(select(Order.purpose).order_by(Order.priority.desc())).all()
    assert urgent == ["work", "describe"]


def test_the_description_is_on_the_agent_when_the_order_has_ended_which_is_no_news_for_webhooks(
    work: Core, admin: Caller
) -> None:
    values = {"id": new_id(), "organization_id": admin.organization_id, "name": "all", "url": "https://h", "events": []}
    with work.database.write() as db:
        db.add(Webhook(**values, sealed_secret="s", enabled=True, created_at=work.clock.now()))
    add_agent(work, admin)
    assert description(work, admin) == ""
    end(work, asked(work)[0], "  Lead plans the work.\n\n\x1b[31mIt hands tasks\tto the others. ")

    assert description(work, admin) == "Lead plans the work. [31mIt hands tasks to the others."
    assert [node.description for node in agents.tree(work, admin)] == [description(work, admin)]
    with work.database.read() as db:
        assert db.scalar(select(func.count()).select_from(WebhookDelivery)) == 0


def test_where_it_fails_the_agent_has_none_and_the_order_tells_it(work: Core, admin: Caller) -> None:
    add_agent(work, admin, "lead")
    end(work, asked(work)[0], "half of a description", OrderStatus.FAILED)
    add_agent(work, admin, "backend")
    end(work, asked(work)[1], "half of", OrderStatus.CANCELED)

    assert [description(work, admin, name) for name in ("lead", "backend")] == ["", ""]
    listed = reading.list_orders(work, admin, every=True)
    assert [(order.status, order.purpose) for order in listed] == [("canceled", "describe"), ("failed", "describe")]


def test_an_edit_of_something_else_or_of_the_same_instructions_asks_for_none(work: Core, admin: Caller) -> None:
    """S-012: anew only when the instructions change."""
    add_agent(work, admin, instructions="Lead.")
    end(work, asked(work)[0])
    for changes in (
        {"max_iterations": 3, "boss": None, "model": "openai/x", "labels": {}},
        {"project": "web"},
        {"instructions": "Lead.\n"},
    ):
        agents.edit(work, admin, "lead", AgentEdit.model_validate(changes))

    assert (len(asked(work)), description(work, admin)) == (1, TEXT)


def test_other_instructions_ask_for_another_description(work: Core, admin: Caller) -> None:
    """S-012."""
    add_agent(work, admin)
    for changes in ({"instructions": "Lead anew."}, {"instructions_path": "lead.md"}):
        end(work, asked(work)[-1])
        assert description(work, admin) == TEXT
        agents.edit(work, admin, "lead", AgentEdit(**changes))
        assert description(work, admin) == ""
        assert Describe.model_validate(asked(work)[-1].asked) == Describe(agent="lead", **changes)
    assert len(asked(work)) == 3


def test_a_description_of_instructions_that_changed_meanwhile_is_not_taken(work: Core, admin: Caller) -> None:
    """S-013: one that comes back is described anew, too."""
    add_agent(work, admin)
    first = asked(work)[0]
    agents.edit(work, admin, "lead", AgentEdit(instructions="Lead anew."))
    end(work, first, "It leads as of old.")
    assert description(work, admin) == ""
    end(work, asked(work)[1])
    assert description(work, admin) == TEXT

    agents.remove(work, admin, "lead")
    assert add_agent(work, admin).description == ""
    assert len(asked(work)) == 3


def test_where_no_project_is_clear_the_answer_says_so_and_naming_one_asks(core: Core, admin: Caller) -> None:
    """S-012: without a provider nobody can describe it either, which is no error."""
    warnings = add_agent(core, admin, "lead").warnings
    for slug in ("web", "shop"):
        make_project(core, admin, slug)
    assert "fleet agent edit lead --project SLUG --provider NAME" in warnings[0]
    assert len(add_agent(core, admin, "backend").warnings) == 1
    assert asked(core) == []

    assert agents.edit(core, admin, "lead", AgentEdit(project="shop")).warnings == []
    assert len(asked(core)) == 1


def test_project_and_provider_are_the_agents_else_the_organizations_and_the_projects(core: Core, admin: Caller) -> None:
    for name in ("quick", "large"):
        providers.add(core, admin, ProviderRequest(name=name, model=f"openai/{name}"))
    make_project(core, admin, "shop", provider="quick")
    make_project(core, admin, "docs", provider="large")
    make_project(core, admin, "web")
    with core.database.write() as db:
        shop = find_project(db, admin.organization_id, "shop")
        db.get_one(Organization, admin.organization_id).project_id = shop.id
    add_agent(core, admin, "lead", model="openai/own")
    add_agent(core, admin, "backend", project="docs")
    add_agent(core, admin, "db", project="shop", provider="large")
    add_agent(core, admin, "tester", project="web")

    asked_of = [(reading.show_order(core, admin, order.id).project, order.model) for order in asked(core)]
    assert asked_of == [("shop", "openai/quick"), ("docs", "openai/large"), ("shop", "openai/large")]


def test_a_long_description_ends_with_a_whole_sentence() -> None:
    text = cleaned("It plans the work of all. " * 100)

    assert MAX_DESCRIPTION - 30 < len(text) <= MAX_DESCRIPTION
    assert text.endswith("of all.")
    assert len(cleaned("x" * 5000)) == MAX_DESCRIPTION
