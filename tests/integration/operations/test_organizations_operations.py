"""Organizations: making, showing, changing and pausing them, and who may."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import ValidationError
from sqlalchemy import update

from control_plane.core import Caller, Core
from control_plane.db.runs import Run
from control_plane.declarations.organizations import OrganizationEdit, OrganizationRequest
from control_plane.operations import organizations
from shared.errors import Conflict, Invalid, NotFound
from tests.support.made import make_drone, make_project
from tests.support.organizations import add_organization
from tests.support.team_rows import add_agent, add_task, play, task_of

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


@pytest.mark.dialects
def test_organizations_that_are_made_at_once_get_acronyms_of_their_own_and_one_name_once(
    core: Core, admin: Caller
) -> None:
    def make(name: str) -> str:
        try:
            return organizations.create(core, admin, OrganizationRequest(name=name)).acronym
        except Conflict as error:
            return error.code

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(make, ["pay_a", "pay_b", "pay_c", "pay_d", *["payments"] * 4]))
    assert len(set(made[:4])) == 4
    assert made[4:].count("E-ORGANIZATION-NAME") == 3


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
    with pytest.raises(NotFound):
        organizations.create(core, admin, OrganizationRequest(name="other", project="web"))
    with pytest.raises(Invalid) as nothing:
        organizations.edit(core, admin, "payments", OrganizationEdit())
    with pytest.raises(NotFound):
        organizations.edit(core, admin, "payments", OrganizationEdit(project="web"))
    assert nothing.value.code == "E-NOTHING"
    with pytest.raises(ValidationError):
        OrganizationEdit.model_validate({"name": "others"})


def test_a_higher_limit_lets_tasks_begin_at_once_and_none_begins_while_paused(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin)
    make_project(core, caller)
    agent = add_agent(core, caller, "lead")
    running = add_task(core, caller, agent)
    organizations.edit(core, admin, "payments", OrganizationEdit(concurrency=1))
    second = add_task(core, caller, agent)
    organizations.edit(core, admin, "payments", OrganizationEdit(concurrency=2))
    paused = organizations.pause(core, admin, "payments")
    waiting = add_task(core, caller, agent)
    assert (paused.paused, organizations.pause(core, admin, "payments").paused_at) == (True, paused.paused_at)
    assert [task_of(core, each).status for each in (running, second, waiting)] == ["in_progress", "in_progress", "open"]
    organizations.edit(core, admin, "payments", OrganizationEdit(concurrency=3))
    assert organizations.resume(core, admin, "payments").paused is False
    assert task_of(core, waiting).status == "in_progress"
