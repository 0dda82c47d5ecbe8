"""Organizations: making, showing, changing and pausing them, and who may."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from pydantic import ValidationError
from sqlalchemy import update

from control_plane.core import Caller, Core
from control_plane.db.runs import Run
from control_plane.declarations.organizations import OrganizationEdit, OrganizationRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations import organizations
from shared.errors import Conflict, Forbidden, Invalid, NotFound
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.made import make_drone, make_project
from tests.support.organizations import add_organization
from tests.support.team_rows import add_agent, add_task, play, task_of


@pytest.fixture(name="core")
def sqlite_core(core_factory: CoreFactory, sqlite_url: str, clock: HandClock) -> Core:
    """On SQLite alone: what differs between databases is in the tests of removing."""
    return core_factory(sqlite_url, clock=clock)


@pytest.fixture(name="admin")
def everywhere_admin(core: Core) -> Caller:
    return system_caller(core)


# --- making and reading ---------------------------------------------------------------------


def test_a_new_organization_has_its_fields_an_acronym_and_nothing_in_it(core: Core, admin: Caller) -> None:
    made = organizations.create(core, admin, OrganizationRequest(name="payments", description="Card payments"))
    assert (made.name, made.description, made.acronym, made.paused) == ("payments", "Card payments", "PAYM", False)
    assert (made.concurrency, made.max_hand_offs, made.project, made.agent_count) == (4, 20, None, 0)
    assert made.tasks == {"open": 0, "in_progress": 0, "failed": 0, "done": 0, "canceled": 0}
    assert (made.totals.runs, made.agents, made.warnings) == (0, None, [])


def test_a_name_that_is_taken_is_a_conflict_also_for_default(core: Core, admin: Caller) -> None:
    add_organization(core, admin)
    for name in ("payments", "default"):
        with pytest.raises(Conflict) as refusal:
            organizations.create(core, admin, OrganizationRequest(name=name))
        assert refusal.value.code == "E-ORGANIZATION-NAME"


@pytest.mark.parametrize("name", ["user", "system", "Bad Name", "x" * 10_000, ""])
def test_a_name_that_cannot_be_is_refused_by_the_operation_itself(core: Core, admin: Caller, name: str) -> None:
    with pytest.raises(Invalid):
        organizations.create(core, admin, OrganizationRequest(name=name))


def test_a_new_organization_cannot_begin_with_a_project_of_another(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    with pytest.raises(NotFound):
        organizations.create(core, admin, OrganizationRequest(name="payments", project="web"))


def test_organizations_of_the_same_acronym_are_told_apart(core: Core, admin: Caller) -> None:
    made = [
        organizations.create(core, admin, OrganizationRequest(name=name))
        for name in ("backend_platform", "billing_payments", "big_people")
    ]
    assert [each.acronym for each in made] == ["BPPP", "BPP2", "BPP3"]


def test_organizations_that_are_made_at_once_all_get_an_acronym_of_their_own(core: Core, admin: Caller) -> None:
    names = [f"pay_{letter}" for letter in "abcdefgh"]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda name: organizations.create(core, admin, OrganizationRequest(name=name)), names))
    assert len({each.acronym for each in made}) == 8


def test_the_same_name_made_twice_at_once_is_made_once(core: Core, admin: Caller) -> None:
    def make(_: int) -> str:
        try:
            return organizations.create(core, admin, OrganizationRequest(name="payments")).name
        except Conflict as error:
            return error.code

    with ThreadPoolExecutor(4) as pool:
        answers = sorted(pool.map(make, range(4)))
    assert answers == ["E-ORGANIZATION-NAME"] * 3 + ["payments"]


def test_an_organization_is_shown_with_its_tree_of_agents_its_tasks_and_what_it_cost(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin)
    make_project(core, caller)
    make_drone(core, caller, beat={"abilities": ["teams"]})
    lead = add_agent(core, caller, "lead")
    add_agent(core, caller, "coder", boss="lead")
    task = add_task(core, caller, lead)
    play(core, task, "Done. @user")
    with core.database.write() as db:
        db.execute(update(Run).values(input_tokens=7, output_tokens=3, cost_usd=0.5))
    shown = organizations.show(core, admin, "payments")
    assert shown.agents is not None
    assert [(node.name, [each.name for each in node.reports]) for node in shown.agents] == [("lead", ["coder"])]
    assert (shown.agent_count, shown.tasks["open"], shown.totals.runs) == (2, 1, 1)
    assert (shown.totals.input_tokens, shown.totals.output_tokens, shown.totals.cost_usd) == (7, 3, 0.5)
    (listed,) = [each for each in organizations.list_(core, admin) if each.name == "payments"]
    assert (listed.agent_count, listed.agents) == (2, None)
    assert task == "PAYM-0001"


def test_each_organization_numbers_its_own_tasks(core: Core, admin: Caller) -> None:
    first, second = add_organization(core, admin), add_organization(core, admin, "billing_payments")
    ids = []
    for caller in (first, second, first):
        if not ids or caller is second:
            make_project(core, caller)
        ids.append(add_task(core, caller, None, claim=False))
    assert ids == ["PAYM-0001", "BPPP-0001", "PAYM-0002"]


def test_whoever_acts_everywhere_lists_all_organizations_and_others_their_own(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin)
    alone = replace(caller, everywhere=False)
    assert [each.name for each in organizations.list_(core, admin)] == ["default", "payments"]
    assert [each.name for each in organizations.list_(core, alone)] == ["payments"]


# --- changing ----------------------------------------------------------------------------------


def test_only_the_fields_that_are_given_change_and_null_takes_the_project_away(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin, description="Card payments")
    make_project(core, caller)
    changed = organizations.edit(core, admin, "payments", OrganizationEdit(project="web", concurrency=0))
    assert (changed.project, changed.concurrency, changed.description) == ("web", 0, "Card payments")
    without = organizations.edit(core, admin, "payments", OrganizationEdit(project=None, max_hand_offs=3))
    assert (without.project, without.concurrency, without.max_hand_offs) == (None, 0, 3)


def test_an_edit_without_a_field_or_with_a_project_of_another_organization_is_refused(
    core: Core, admin: Caller
) -> None:
    add_organization(core, admin)
    make_project(core, admin)
    with pytest.raises(Invalid) as nothing:
        organizations.edit(core, admin, "payments", OrganizationEdit())
    with pytest.raises(NotFound):
        organizations.edit(core, admin, "payments", OrganizationEdit(project="web"))
    assert nothing.value.code == "E-NOTHING"
    with pytest.raises(ValidationError):
        OrganizationEdit.model_validate({"name": "others"})


def test_no_task_begins_while_the_organization_is_paused_and_those_in_progress_go_on(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin)
    make_project(core, caller)
    agent = add_agent(core, caller, "lead")
    running = add_task(core, caller, agent)
    paused = organizations.pause(core, admin, "payments")
    waiting = add_task(core, caller, agent)
    assert (paused.paused, organizations.pause(core, admin, "payments").paused_at) == (True, paused.paused_at)
    assert [task_of(core, each).status for each in (running, waiting)] == ["in_progress", "open"]
    assert organizations.resume(core, admin, "payments").paused is False
    assert task_of(core, waiting).status == "in_progress"


def test_a_higher_limit_lets_waiting_tasks_begin_at_once(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin, concurrency=1)
    make_project(core, caller)
    agent = add_agent(core, caller, "lead")
    tasks = [add_task(core, caller, agent) for _ in range(3)]
    assert [task_of(core, each).status for each in tasks] == ["in_progress", "open", "open"]
    organizations.edit(core, admin, "payments", OrganizationEdit(concurrency=2))
    assert [task_of(core, each).status for each in tasks] == ["in_progress", "in_progress", "open"]


# --- who may -------------------------------------------------------------------------------------


def test_only_an_admin_who_acts_everywhere_makes_and_removes_organizations(core: Core, admin: Caller) -> None:
    alone = replace(add_organization(core, admin), everywhere=False)
    viewer = replace(admin, role="viewer")
    for caller in (alone, viewer):
        with pytest.raises(Forbidden):
            organizations.create(core, caller, OrganizationRequest(name="other"))
        with pytest.raises(Forbidden):
            organizations.remove(core, caller, "payments")


def test_another_organization_is_not_found_in_the_same_words_as_one_that_does_not_exist(
    core: Core, admin: Caller
) -> None:
    alone = replace(add_organization(core, admin), everywhere=False)
    add_organization(core, admin, "hidden")
    acts: list[Callable[[str], object]] = [
        lambda name: organizations.show(core, alone, name),
        lambda name: organizations.edit(core, alone, name, OrganizationEdit(concurrency=1)),
        lambda name: organizations.pause(core, alone, name),
        lambda name: organizations.resume(core, alone, name),
    ]
    for act in acts:
        assert refused(act, "hidden") == refused(act, "nobody")


def refused(act: Callable[[str], object], name: str) -> tuple[str, ...]:
    """What the refusal says, with the name that was asked for taken out."""
    with pytest.raises(NotFound) as refusal:
        act(name)
    error = refusal.value
    return tuple(text.replace(name, "NAME") for text in (error.code, error.what, error.why, error.next))


def test_a_viewer_sees_its_organization_and_changes_nothing(core: Core, admin: Caller) -> None:
    viewer = replace(add_organization(core, admin), everywhere=False, role="viewer")
    assert organizations.show(core, viewer, "payments").name == "payments"
    for act in (organizations.pause, organizations.resume):
        with pytest.raises(Forbidden):
            act(core, viewer, "payments")
