"""The search of the palette: every kind of thing, in the database, within the organization."""

from __future__ import annotations

import pytest

from control_plane.declarations import agents, organizations, sessions, tasks
from control_plane.declarations.agents import AgentRequest
from control_plane.declarations.sessions import SessionEdit
from control_plane.declarations.task_documents import TaskRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.sessions import reading
from control_plane.operations.tasks import reading as task_reading
from tests.support.fleet import Api
from tests.support.organizations import add_organization


@pytest.fixture
def parsers(api: Api) -> Api:
    """One thing of each kind that is called after a parser."""
    api.add_work("parser")
    api.client.call(organizations.PAUSE, name="default")
    api.client.call(agents.ADD, AgentRequest(name="parser_agent", instructions="You work."))
    api.client.call(tasks.ADD, TaskRequest(title="Parser of dates", assignee="user"))
    api.add_drone("parser-box")
    order = api.submit("Fix the Parser, 100%", project="parser")
    api.client.call(sessions.EDIT, SessionEdit(name="Old commas"), session_id=order["session"])
    return api


def found(api: Api, text: str) -> list[str]:
    with api.browser() as browser:
        return [each["label"] for each in browser.get("/search", params={"text": text}).json()]


def test_every_kind_is_found_by_a_part_of_its_name_in_any_case(parsers: Api) -> None:
    assert {each.partition(":")[0] for each in found(parsers, "PARSER")} == {
        "Drone",
        "Project",
        "Agent",
        "Task",
        "Session",
        "Order",
    }


def test_sessions_are_found_by_name_and_prompt_and_tasks_by_id(parsers: Api) -> None:
    assert found(parsers, "commas") == ["Session: Old commas"]
    assert found(parsers, "fix commas") == ["Session: Old commas"]
    assert found(parsers, "defa-00") == ["Task: DEFA-0001 Parser of dates"]
    assert "Agent: parser_agent" in found(parsers, "@parser")


def test_signs_of_the_database_mean_themselves(parsers: Api) -> None:
    assert [each for each in found(parsers, "100%") if each.startswith("Order")] == ["Order: Fix the Parser, 100%"]
    assert (found(parsers, "1%0"), found(parsers, "  ")) == ([], [])
    caller = system_caller(parsers.core)
    assert reading.list_(parsers.core, caller, text="_") == []
    assert task_reading.list_(parsers.core, caller, text="_") == []


def test_another_organization_finds_nothing(parsers: Api) -> None:
    add_organization(parsers.core, system_caller(parsers.core), "payments")
    with parsers.browser() as browser:
        browser.post("/organization", data={"organization": "payments"})
        assert browser.get("/search", params={"text": "parser"}).json() == []
