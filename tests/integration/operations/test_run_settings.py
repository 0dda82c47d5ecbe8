"""Limits and the thinking level of an order: set at any level, the closest counts, and the order says where from."""

from __future__ import annotations

import pytest

from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.sessions import ChatSession
from control_plane.declarations.agents import AgentEdit, AgentRequest
from control_plane.declarations.organizations import OrganizationEdit
from control_plane.declarations.projects import ProjectEdit
from control_plane.declarations.providers import ProviderEdit
from control_plane.declarations.sessions import ForkRequest, SessionEdit, SessionRequest
from control_plane.declarations.task_documents import TaskRequest
from control_plane.documents.orders import OrderDocument, ResumeRequest
from control_plane.operations import limits, projects, providers
from control_plane.operations.agents import changing as agents
from control_plane.operations.orders import reading, retrying
from control_plane.operations.organizations import changing as changing_organizations
from control_plane.operations.sessions import changing
from control_plane.operations.sessions import changing as sessions
from control_plane.operations.tasks import creating
from shared.errors import Invalid
from tests.support.made import make_drone, make_project, submit


def shown(order: OrderDocument, name: str) -> tuple[object, str]:
    return order.limits[name].value, order.limits[name].source


def test_each_level_overrides_those_farther_from_the_order_and_the_order_names_it(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    found = [shown(submit(core, admin), "max_retries")]
    changing_organizations.edit(core, admin, "default", OrganizationEdit(limits={"max_retries": 1}))
    found.append(shown(submit(core, admin), "max_retries"))
    projects.edit(core, admin, "web", ProjectEdit(limits={"max_retries": 2}))
    found.append(shown(submit(core, admin), "max_retries"))
    chat = sessions.create(core, admin, SessionRequest(project="web", limits={"max_retries": 4}))
    found.append(shown(submit(core, admin, session=chat.id), "max_retries"))
    found.append(shown(submit(core, admin, session=chat.id, limits={"max_retries": 5}), "max_retries"))
    assert found == [(3, "default"), (1, "organization"), (2, "project"), (4, "session"), (5, "order")]


def test_an_agents_turn_has_the_limits_of_its_task_then_of_the_agent_then_of_the_project(
    core: Core, admin: Caller
) -> None:
    make_project(core, admin, limits={"command_timeout": 7, "max_retries": 7, "max_run_seconds": 7})
    own = {"command_timeout": 8, "max_iterations": 8}
    agents.create(core, admin, AgentRequest(name="lead", instructions="Lead.", limits=own))
    task = creating.create(core, admin, TaskRequest(title="work", max_run_seconds=9))
    with core.database.read() as db:
        order = db.query(Order).filter_by(task_id=task.id).one()
    document = reading.show_order(core, admin, order.id)
    names = ("max_run_seconds", "command_timeout", "max_iterations", "max_retries")
    assert [shown(document, name) for name in names] == [(9, "task"), (8, "agent"), (8, "agent"), (7, "project")]
    assert "Budget of this turn: 8 steps" in document.prompt


def test_an_agents_limit_and_its_field_of_the_same_name_are_one(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    made = agents.create(
        core, admin, AgentRequest(name="lead", instructions="Lead.", limits={"cost_limit": 2, "base_delay": 4})
    )
    assert (made.cost_limit, made.limits) == (2, {"base_delay": 4})
    edited = agents.edit(core, admin, "lead", AgentEdit(limits={}))
    assert (edited.cost_limit, edited.limits) == (2, {})


def test_flags_and_limits_by_name_do_the_same_and_together_are_refused(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    by_flag, by_name = submit(core, admin, cost_limit=2), submit(core, admin, limits={"cost_limit": 2})
    assert by_flag.limits == by_name.limits
    with pytest.raises(Invalid, match="the limit cost_limit was given twice"):
        submit(core, admin, cost_limit=2, limits={"cost_limit": 3})


def test_all_limits_are_listed_with_unit_bounds_and_default(core: Core, admin: Caller) -> None:
    listed = {each.name: each for each in limits.list_(core, admin)}
    assert (listed["command_timeout"].default, listed["command_timeout"].unit) == (120, "s")
    assert (listed["max_retries"].least, listed["max_retries"].most) == (0, 100)


def test_a_later_change_affects_later_orders_only(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    chat = sessions.create(core, admin, SessionRequest(project="web", limits={"token_limit": 10}))
    first = submit(core, admin, session=chat.id)
    sessions.edit(core, admin, chat.id, SessionEdit(limits={}))
    second = submit(core, admin, session=chat.id)
    assert shown(reading.show_order(core, admin, first.id), "token_limit") == (10, "session")
    assert shown(second, "token_limit") == (0, "default")


def test_a_resumed_order_has_the_limits_that_it_is_given_and_keeps_the_others(core: Core, admin: Caller) -> None:
    make_project(core, admin, limits={"base_delay": 5})
    make_drone(core, admin)
    order = submit(core, admin, limits={"max_retries": 0})
    with core.database.write() as db:
        db.get_one(Order, order.id).status = "failed"
    retrying.resume(core, admin, order.id, ResumeRequest(limits={"max_retries": 9, "command_timeout": 3}))
    again = reading.show_order(core, admin, order.id)
    found = [shown(again, name) for name in ("max_retries", "command_timeout", "base_delay")]
    assert found == [(9, "order"), (3, "order"), (5, "project")]


def test_the_thinking_level_comes_from_the_closest_level_that_sets_one(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    changing_organizations.edit(core, admin, "default", OrganizationEdit(thinking="low"))
    found = [submit(core, admin).thinking]
    projects.edit(core, admin, "web", ProjectEdit(thinking="medium"))
    found.append(submit(core, admin).thinking)
    agents.create(core, admin, AgentRequest(name="lead", instructions="Lead.", thinking="high"))
    task = creating.create(core, admin, TaskRequest(title="work"))
    with core.database.read() as db:
        found.append(db.query(Order).filter_by(task_id=task.id).one().thinking)
    projects.edit(core, admin, "web", ProjectEdit(thinking=None))
    found.append(submit(core, admin).thinking)
    assert found == ["low", "medium", "high", "low"]


def test_the_orders_level_counts_then_the_sessions_then_the_providers(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    first = submit(core, admin)
    providers.edit(core, admin, "local", ProviderEdit(thinking="low"))
    second, third = submit(core, admin), submit(core, admin, thinking="high")
    fourth = submit(core, admin, session=third.session)
    fifth = submit(core, admin, session=third.session, thinking="off")
    sixth = submit(core, admin, session=third.session)
    orders = (first, second, third, fourth, fifth, sixth)
    assert [each.thinking for each in orders] == [None, "low", "high", "high", "off", "high"]


def test_the_level_is_that_of_the_submission_whatever_changes_later(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    providers.edit(core, admin, "local", ProviderEdit(thinking="minimal"))
    order = submit(core, admin)
    with core.database.write() as db:
        db.get_one(Order, order.id).status = "failed"
    providers.edit(core, admin, "local", ProviderEdit(thinking="auto"))
    retrying.retry(core, admin, order.id)
    assert reading.show_order(core, admin, order.id).thinking == "minimal"
    assert submit(core, admin).thinking is None


def test_a_fork_keeps_the_limits_of_its_session(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    chat = sessions.create(core, admin, SessionRequest(project="web", limits={"retry_enabled": False}))
    assert sessions.fork(core, admin, chat.id, ForkRequest()).limits == {"retry_enabled": False}


def test_a_session_has_a_level_of_its_own_which_a_fork_keeps(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    session = changing.create(core, admin, SessionRequest(project="web", thinking="medium"))
    assert session.thinking == "medium"
    assert changing.edit(core, admin, session.id, SessionEdit(thinking="xhigh")).thinking == "xhigh"
    assert changing.edit(core, admin, session.id, SessionEdit(name="named")).thinking == "xhigh"
    fork = changing.fork(core, admin, session.id, ForkRequest())
    with core.database.read() as db:
        assert db.get_one(ChatSession, fork.id).thinking == "xhigh"
