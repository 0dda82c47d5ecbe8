"""Agents over real HTTP: what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from control_plane.declarations import agents, organizations
from control_plane.declarations.agents import AgentEdit, AgentFilter, AgentRequest
from control_plane.declarations.organizations import OrganizationRequest
from tests.support.fleet import Api


@pytest.fixture
def work(api: Api) -> Api:
    """With a provider, a project and an agent `lead`."""
    api.add_work()
    api.client.call(agents.ADD, AgentRequest(name="lead", instructions="Lead."))
    return api


def test_an_agent_goes_through_its_life_over_http(work: Api) -> None:
    """S-011, S-013 to S-015, S-120."""
    client = work.client
    made = client.call(
        agents.ADD, AgentRequest(name="backend", instructions_path="b.md", boss="lead", max_iterations=9)
    )
    assert (made["boss"], made["max_iterations"], made["labels"], made["totals"]["runs"]) == ("lead", 9, {}, 0)

    assert client.call(agents.EDIT, AgentEdit(boss=None, model="openai/x"), name="backend")["boss"] is None
    assert client.call(agents.SHOW, name="backend")["model"] == "openai/x"
    assert [node["name"] for node in client.call(agents.TREE)] == ["backend", "lead"]

    assert client.call(agents.REMOVE, name="backend")["is_removed"] is True
    assert [each["name"] for each in client.call(agents.LIST)] == ["lead"]
    assert [each["name"] for each in client.call(agents.LIST, AgentFilter(include_removed=True))] == ["backend", "lead"]


def test_a_list_leaves_the_instructions_out(work: Api) -> None:
    assert [each["instructions"] for each in work.client.call(agents.LIST)] == [None]
    assert work.client.call(agents.SHOW, name="lead")["instructions"] == "Lead."


NO_AGENTS: list[tuple[dict[str, Any], int, str]] = [
    ({"name": "user", "instructions": "x"}, 422, "E-NAME"),
    ({"name": "l" * 10_000, "instructions": "x"}, 422, "E-NAME"),
    ({"name": "lead", "instructions": "x"}, 409, "E-AGENT-NAME"),
    ({"name": "backend"}, 422, "E-AGENT-INSTRUCTIONS"),
    ({"name": "backend", "instructions": "x", "instructions_path": "b.md"}, 422, "E-AGENT-INSTRUCTIONS"),
    ({"name": "backend", "instructions": "x" * 100_001}, 422, "E-AGENT-INSTRUCTIONS"),
    ({"name": "backend", "instructions_path": "../b.md"}, 422, "E-AGENT-INSTRUCTIONS"),
    ({"name": "backend", "instructions": "x", "boss": "nobody"}, 404, "E-AGENT-404"),
    ({"name": "backend", "instructions": "x", "boss": "backend"}, 422, "E-AGENT-BOSS"),
    ({"name": "backend", "instructions": "x", "max_iterations": -1}, 422, "E-REQUEST"),
    ({"name": "backend", "instructions": "x", "no_such_field": 1}, 422, "E-REQUEST"),
]
NO_EDITS: list[tuple[dict[str, Any], int, str]] = [
    ({}, 422, "E-AGENT-EDIT"),
    ({"boss": "lead"}, 422, "E-AGENT-BOSS"),
    ({"boss": "backend"}, 422, "E-AGENT-BOSS"),
    ({"boss": "nobody"}, 404, "E-AGENT-404"),
    ({"instructions": None}, 422, "E-AGENT-INSTRUCTIONS"),
    ({"name": "chief"}, 422, "E-REQUEST"),
]
AGENTS = "/api/v1/organizations/default/agents"


def refusal(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a problem document, which is never long."""
    assert len(answer.text) < 2000
    return answer.status_code, answer.json()["code"]


def test_what_cannot_be_an_agent_is_refused_with_its_status(work: Api) -> None:
    """S-121."""
    with work.http() as http:
        refusals = [refusal(http.post(AGENTS, json=request)) for request, *_ in NO_AGENTS]

    assert refusals == [(status, code) for _, status, code in NO_AGENTS]
    assert len(work.client.call(agents.LIST)) == 1


def test_an_edit_that_cannot_be_is_refused_with_its_status(work: Api) -> None:
    """S-015, S-121."""
    work.client.call(agents.ADD, AgentRequest(name="backend", instructions="Work.", boss="lead"))
    with work.http() as http:
        refusals = [refusal(http.patch(f"{AGENTS}/lead", json=changes)) for changes, *_ in NO_EDITS]

    assert refusals == [(status, code) for _, status, code in NO_EDITS]
    assert work.client.call(agents.SHOW, name="lead")["boss"] is None


def test_five_megabytes_of_instructions_are_refused_before_they_are_read(work: Api) -> None:
    with work.http() as http:
        answer = http.post(
            "/api/v1/organizations/default/agents", json={"name": "big", "instructions": "x" * 5_000_000}
        )

    assert answer.status_code in {413, 422}
    assert answer.json()["code"] in {"E-BODY-SIZE", "E-AGENT-INSTRUCTIONS"}
    assert len(answer.text) < 2000


def test_agents_are_read_by_everybody_of_the_organization_and_changed_by_admins(work: Api) -> None:
    tree = "/api/v1/organizations/default/agent-tree"
    with work.http(work.token_for("viewer")) as viewer:
        assert [viewer.get(path).status_code for path in (AGENTS, f"{AGENTS}/lead", tree)] == [200, 200, 200]
        assert viewer.delete(f"{AGENTS}/lead").status_code == 403
    with work.http(work.token_for("operator")) as operator:
        assert operator.patch(f"{AGENTS}/lead", json={"max_iterations": 1}).status_code == 403
        assert operator.post(AGENTS, json={"name": "x", "instructions": "x"}).status_code == 403
    with work.http(None) as nobody:
        assert nobody.get(AGENTS).status_code == 401


def test_another_organization_says_the_same_whether_it_exists_or_not(work: Api) -> None:
    """S-004."""
    work.client.call(organizations.ADD, OrganizationRequest(name="payments"))
    with work.http(work.token_for("admin")) as http:
        answers = [http.get(f"/api/v1/organizations/{name}/agents") for name in ("payments", "pavements")]

    assert [answer.status_code for answer in answers] == [404, 404]
    first, second = (answer.text.replace("payments", "*").replace("pavements", "*") for answer in answers)
    assert first == second
