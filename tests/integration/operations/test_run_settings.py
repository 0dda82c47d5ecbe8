"""What an order runs with: from the closest level that sets it, as it was when the order was submitted."""

from __future__ import annotations

import pytest

from control_plane.contract.declarations.agents import AgentEdit, AgentRequest
from control_plane.contract.declarations.orders import ResumeRequest
from control_plane.contract.declarations.organizations import OrganizationEdit
from control_plane.contract.declarations.profiles import ProfileEdit, ProfileRequest
from control_plane.contract.declarations.projects import ProjectEdit
from control_plane.contract.declarations.providers import ProviderEdit, ProviderRequest
from control_plane.contract.declarations.races import RaceRequest
from control_plane.contract.declarations.sessions import ForkRequest, SessionEdit, SessionRequest
from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.contract.documents.orders import OrderDocument
from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.sessions import ChatSession
from control_plane.operations import limits, profiles, projects, providers, races, sessions
from control_plane.operations.agents import changing as agents
from control_plane.operations.orders import reading, retrying
from control_plane.operations.organizations import changing as organizations
from control_plane.operations.tasks import acting
from tests.support.made import make_drone, make_project, submit
from tests.support.refusals import code_of


def shown(order: OrderDocument, name: str) -> tuple[object, str]:
    return order.limits[name].value, order.limits[name].source


def of_task(core: Core, admin: Caller, **fields: object) -> OrderDocument:
    """The order of a new task of the only agent."""
    task = acting.create(core, admin, TaskRequest.model_validate({"title": "work", **fields}))
    with core.database.read() as db:
        order_id = db.query(Order).filter_by(task_id=task.id).one().id
    return reading.show_order(core, admin, order_id)


def fail(core: Core, order_id: str) -> None:
    with core.database.write() as db:
        db.get_one(Order, order_id).status = "failed"


def test_each_level_overrides_those_farther_from_the_order_and_the_order_names_it(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    first = submit(core, admin)
    organizations.edit(core, admin, "default", OrganizationEdit(limits={"max_retries": 1}))
    found = [first, submit(core, admin)]
    projects.edit(core, admin, "web", ProjectEdit(limits={"max_retries": 2}))
    found.append(submit(core, admin))
    chat = sessions.create(core, admin, SessionRequest(project="web", limits={"max_retries": 4}))
    found.append(submit(core, admin, session=chat.id))
    found.append(submit(core, admin, session=chat.id, limits={"max_retries": 5}))
    expected = [(3, "default"), (1, "organization"), (2, "project"), (4, "session"), (5, "order")]
    assert [shown(each, "max_retries") for each in found] == expected
    # What is changed later counts for later orders only.
    sessions.edit(core, admin, chat.id, SessionEdit(limits={}))
    assert shown(reading.show_order(core, admin, found[3].id), "max_retries") == (4, "session")
    assert shown(submit(core, admin, session=chat.id), "max_retries") == (2, "project")


def test_an_agents_turn_has_the_limits_of_its_task_then_of_the_agent_then_of_the_project(
    core: Core, admin: Caller
) -> None:
    """An agent's limit and its field of the same name are one."""
    make_project(core, admin, limits={"command_timeout": 7, "max_retries": 7, "max_run_seconds": 7})
    own = {"command_timeout": 8, "max_iterations": 8, "cost_limit": 2}
    made = agents.create(core, admin, AgentRequest(name="lead", instructions="Lead.", limits=own))
    assert (made.cost_limit, made.limits) == (2, {"command_timeout": 8})
    edited = agents.edit(core, admin, "lead", AgentEdit(limits={"command_timeout": 9}))
    assert (edited.cost_limit, edited.limits) == (2, {"command_timeout": 9})
    document = of_task(core, admin, max_run_seconds=9)
    names = ("max_run_seconds", "command_timeout", "max_iterations", "max_retries")
    assert [shown(document, name) for name in names] == [(9, "task"), (9, "agent"), (8, "agent"), (7, "project")]
    assert "Budget of this turn: 8 steps" in document.prompt


def test_flags_and_limits_by_name_do_the_same_and_together_are_refused(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    by_flag, by_name = submit(core, admin, cost_limit=2), submit(core, admin, limits={"cost_limit": 2})
    assert by_flag.limits == by_name.limits
    twice = {"cost_limit": 2, "limits": {"cost_limit": 3}}
    assert code_of(lambda: submit(core, admin, **twice)) == "E-ORDER-LIMIT"
    assert {each.name for each in limits.list_(core, admin)} >= {"cost_limit", "max_retries"}


def test_a_resumed_order_has_the_limits_that_it_is_given_and_keeps_the_others(core: Core, admin: Caller) -> None:
    make_project(core, admin, limits={"base_delay": 5})
    make_drone(core, admin)
    order = submit(core, admin, limits={"max_retries": 0})
    fail(core, order.id)
    retrying.resume(core, admin, order.id, ResumeRequest(limits={"max_retries": 9, "command_timeout": 3}))
    again = reading.show_order(core, admin, order.id)
    found = [shown(again, name) for name in ("max_retries", "command_timeout", "base_delay")]
    assert found == [(9, "order"), (3, "order"), (5, "project")]


def test_the_thinking_level_comes_from_the_closest_level_that_sets_one(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    found = [submit(core, admin)]
    providers.edit(core, admin, "local", ProviderEdit(thinking="minimal"))
    found.append(submit(core, admin))
    organizations.edit(core, admin, "default", OrganizationEdit(thinking="low"))
    found.append(submit(core, admin))
    projects.edit(core, admin, "web", ProjectEdit(thinking="medium"))
    found.append(submit(core, admin))
    agents.create(core, admin, AgentRequest(name="lead", instructions="Lead.", thinking="high"))
    found.append(of_task(core, admin))
    projects.edit(core, admin, "web", ProjectEdit(thinking=None))
    found.append(submit(core, admin))
    assert [each.thinking for each in found] == [None, "minimal", "low", "medium", "high", "low"]


def test_the_orders_level_counts_then_the_sessions_which_a_fork_keeps(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    third = submit(core, admin, thinking="high", mode="plan")
    others = ({}, {"thinking": "off", "mode": "test"}, {})
    orders = [third, *(submit(core, admin, session=third.session, **own) for own in others)]
    assert [each.thinking for each in orders] == ["high", "high", "off", "high"]
    assert [each.mode for each in orders] == ["plan", "plan", "test", "plan"]
    session = sessions.create(core, admin, SessionRequest(project="web", thinking="medium", limits={"max_retries": 4}))
    assert sessions.edit(core, admin, session.id, SessionEdit(thinking="xhigh")).thinking == "xhigh"
    assert sessions.edit(core, admin, session.id, SessionEdit(name="named")).thinking == "xhigh"
    fork = sessions.fork(core, admin, session.id, ForkRequest())
    assert fork.limits == {"max_retries": 4}
    with core.database.read() as db:
        assert db.get_one(ChatSession, fork.id).thinking == "xhigh"


def test_the_level_is_that_of_the_submission_whatever_changes_later(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    providers.edit(core, admin, "local", ProviderEdit(thinking="minimal"))
    order = submit(core, admin)
    fail(core, order.id)
    providers.edit(core, admin, "local", ProviderEdit(thinking="auto"))
    retrying.retry(core, admin, order.id)
    assert reading.show_order(core, admin, order.id).thinking == "minimal"
    assert submit(core, admin).thinking is None


@pytest.fixture
def careful(core: Core, admin: Caller) -> ProfileRequest:
    """A profile that sets everything."""
    make_project(core, admin)
    for name in ("cheap", "strong"):
        providers.add(core, admin, ProviderRequest(name=name, model=f"openai/{name}", no_key=True))
    settings = {"provider": "strong", "reviewer": "cheap", "mode": "test", "thinking": "high", "approve": "risky"}
    bounds = {"max_iterations": 7, "cost_limit": 0, "max_run_seconds": 90, "on_limit": "ask", "verify_attempts": 1}
    request = ProfileRequest.model_validate(
        {"name": "careful", "labels": {"sandbox": "docker"}, **settings, **bounds},
    )
    profiles.add(core, admin, request)
    return request


def bounds(core: Core, order_id: str) -> tuple[object, ...]:
    with core.database.read() as db:
        row = db.get_one(Order, order_id)
        names = ("max_iterations", "cost_limit", "max_run_seconds", "verify_attempts")
        return (*(row.limits[name] for name in names), row.on_limit)


def test_a_profile_fills_what_the_order_does_not_set(core: Core, admin: Caller, careful: ProfileRequest) -> None:
    """O-107. It counts before session and project; an order keeps what its profile was when it was submitted."""
    make_drone(core, admin)
    projects.edit(core, admin, "web", ProjectEdit(provider="cheap", reviewer="strong"))
    plain = submit(core, admin, thinking="low", approve="all", mode="plan")
    assert (plain.provider, plain.reviewer) == ("cheap", "strong")
    filled = submit(core, admin, session=plain.session, profile="careful")
    assert (filled.profile, filled.provider, filled.reviewer, filled.mode) == ("careful", "strong", "cheap", "test")
    assert (filled.thinking, filled.approve, filled.labels) == ("high", "risky", careful.labels)
    assert bounds(core, filled.id) == (7, 0, 90, 1, "ask")

    own = {"mode": "plan", "thinking": "off", "reviewer": "none", "max_iterations": 0, "drone": "anna"}
    order = submit(core, admin, profile="careful", provider="cheap", cost_limit=2, on_limit="stop", **own)
    assert (order.provider, order.mode, order.thinking, order.reviewer) == ("cheap", "plan", "off", None)
    assert bounds(core, order.id) == (0, 2, 90, 1, "stop")
    assert (order.approve, order.labels) == ("risky", {})

    by_name = submit(core, admin, profile="careful", limits={"cost_limit": 2})
    assert bounds(core, by_name.id) == (7, 2, 90, 1, "ask")

    changed = profiles.edit(core, admin, "careful", ProfileEdit(mode=None, thinking="low", labels=None))
    assert (changed.mode, changed.thinking, changed.labels, changed.approve) == (None, "low", None, "risky")
    later = submit(core, admin, profile="careful")
    profiles.remove(core, admin, "careful")
    assert (later.mode, later.thinking, later.labels) == ("build", "low", {})
    assert reading.show_order(core, admin, filled.id).labels == careful.labels
    assert code_of(lambda: submit(core, admin, profile="careful")) == "E-PROFILE-404"


def test_a_profile_that_could_not_work_is_refused(core: Core, admin: Caller, careful: ProfileRequest) -> None:
    refused: list[tuple[str, dict[str, object]]] = [
        ("E-PROFILE-NAME", {"name": "careful"}),
        ("E-NAME", {"name": "Not a name"}),
        ("E-PROVIDER-404", {"name": "x", "provider": "nobody"}),
        ("E-PROVIDER-404", {"name": "x", "reviewer": "nobody"}),
        ("E-LABEL", {"name": "x", "labels": {"no label!": "x"}}),
    ]
    for code, fields in refused:
        request = ProfileRequest.model_validate(fields)
        assert code_of(lambda request=request: profiles.add(core, admin, request)) == code
    assert [each.name for each in profiles.list_(core, admin)] == ["careful"]


def test_a_race_has_the_profile_with_the_providers_that_it_names(
    core: Core, admin: Caller, careful: ProfileRequest
) -> None:
    projects.edit(core, admin, "web", ProjectEdit(verify=["true"]))
    make_drone(core, admin, labels=careful.labels, concurrency=4)
    request = RaceRequest(prompt="x", project="web", models=["local", "cheap"], profile="careful")
    made = races.submit(core, admin, request)
    assert [(each.provider, each.mode) for each in made.orders] == [("local", "test"), ("cheap", "test")]
