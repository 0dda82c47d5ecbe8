"""The reviewer of an order: where it comes from, that it is asked once, and what it needs."""

from __future__ import annotations

import pytest

from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.organizations import OrganizationEdit
from control_plane.contract.declarations.prices import PriceRequest
from control_plane.contract.declarations.projects import ProjectEdit
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.teams import Agent
from control_plane.money.spending.prices import prices_for
from control_plane.operations import prices, projects, providers
from control_plane.operations.agents import changing as agents
from control_plane.operations.orders import retrying
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.orders.next_turn import next_turn
from control_plane.operations.organizations import changing as organizations
from control_plane.orders.reviewers import reviewer_by_default
from shared.errors import Conflict, Invalid
from shared.events import Finding, ReviewerStep, Usage
from tests.support.going_on import begin, checkpoint, fail, give_back, go, work
from tests.support.made import make_project, submit
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

FOUND = ReviewerStep(
    provider="cheap",
    model="openai/mini",
    findings=(Finding(file="a.py", line=3, severity="error", text="Wrong."),),
    usage=Usage(input_tokens=100, cost_usd=0.25),
)


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    made = plane.drone("oka")
    plane.collector(), plane.supervisor()
    for name, model in (("cheap", "openai/mini"), ("main", "openai/main")):
        add(plane.core, plane.admin, name, model)
    return made


def add(core: Core, admin: Caller, name: str, model: str) -> None:
    providers.add(core, admin, ProviderRequest(name=name, model=model, no_key=True))


def reviewer(core: Core, admin: Caller, **fields: str) -> str | None:
    return submit(core, admin, provider="local", **fields).reviewer


def test_the_reviewer_is_that_of_the_order_the_agent_the_project_or_the_organization(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    for name in ("one", "two", "three"):
        add(core, admin, name, f"openai/{name}")
    assert reviewer(core, admin) is None
    organizations.edit(core, admin, "default", OrganizationEdit(reviewer="one"))
    assert reviewer(core, admin) == "one"
    projects.edit(core, admin, "web", ProjectEdit(reviewer="two"))
    assert reviewer(core, admin) == "two"
    assert reviewer(core, admin, reviewer="openai/three") == "three"
    assert reviewer(core, admin, reviewer="none") is None
    projects.edit(core, admin, "web", ProjectEdit(reviewer=None))
    assert (reviewer(core, admin), projects.show(core, admin, "web").reviewer) == ("one", None)
    mila = agents.create(core, admin, AgentRequest(name="mila", instructions="Work.", reviewer="two"))
    with core.database.read() as db:
        own = reviewer_by_default(db, db.query(Project).one(), db.get_one(Agent, mila.id))
        assert own is not None
        assert own.name == "two"


def test_a_reviewer_is_known_and_unambiguous_has_its_price_and_is_not_removed(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    for name in ("one", "two"):
        add(core, admin, name, "openai/same")
    add(core, admin, "cheap", "openai/mini")
    with pytest.raises(Invalid, match="several providers have the model 'openai/same': one, two"):
        reviewer(core, admin, reviewer="openai/same")
    prices.set_(core, admin, "openai/mini", PriceRequest(input_usd=1, output_usd=2))
    projects.edit(core, admin, "web", ProjectEdit(reviewer="cheap"))
    organizations.edit(core, admin, "default", OrganizationEdit(reviewer="cheap"))
    order = submit(core, admin, provider="local")
    with core.database.read() as db:
        assert [each.model for each in prices_for(db, db.get_one(Order, order.id))] == ["openai/mini"]
    with pytest.raises(Conflict, match=f"project web, organization default, order {order.id}"):
        providers.remove(core, admin, "cheap")


def test_the_default_reviewer_takes_the_place_of_a_removed_one_where_an_order_continues_or_runs_again(
    core: Core, admin: Caller
) -> None:
    make_project(core, admin)
    for name in ("one", "two"):
        add(core, admin, name, f"openai/{name}")
    order = submit(core, admin, provider="local", reviewer="two")
    cancel(core, admin, order.id)
    providers.remove(core, admin, "two")
    organizations.edit(core, admin, "default", OrganizationEdit(reviewer="one"))
    with core.database.read() as db:
        continued = next_turn(db, admin, db.get_one(Order, order.id), "and then?").reviewer
    assert continued is not None
    assert continued.name == retrying.retry(core, admin, order.id).reviewer == "one"


def test_a_run_that_goes_on_before_the_review_gets_its_findings_and_one_after_it_no_reviewer(
    plane: Plane, oka: DroneStandIn
) -> None:
    first = begin(plane, oka, provider="main", reviewer="cheap")
    assert first.reviewer is not None
    assert (first.reviewer.provider.model, first.reviewer.findings) == ("openai/mini", None)
    work(plane, oka, first, "one")
    # A review that did not come about is asked for again.
    failed = {"findings": (), "problem": "no answer", "usage": Usage(cost_usd=0.25)}
    oka.report(first, FOUND.model_copy(update=failed), checkpoint("two"))
    give_back(oka, first)
    second = go(oka)
    assert second.reviewer is not None
    assert second.reviewer.findings is None
    oka.report(second, FOUND)
    give_back(oka, second)
    third = go(oka)
    assert third.reviewer is not None
    assert third.reviewer.findings == FOUND.findings
    # A step of half a dollar, and the reviewer's two quarters.
    assert plane.order(first.order_id).stats.cost_usd == pytest.approx(1.0)
    oka.report(third, FOUND.model_copy(update={"repeated": True}))
    work(plane, oka, third, "two")
    give_back(oka, third)
    last = go(oka)
    assert last.reviewer is None
    # A retry from the beginning is reviewed anew.
    fail(plane, oka, last)
    retrying.retry(plane.core, plane.admin, last.order_id)
    again = go(oka).reviewer
    assert again is not None
    assert again.findings is None
