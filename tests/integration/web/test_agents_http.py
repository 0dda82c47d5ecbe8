"""Agents over real HTTP: what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from control_plane.declarations import agents
from control_plane.declarations.agents import AgentRequest
from tests.support.fleet import Api


@pytest.fixture
def work(api: Api) -> Api:
    """With a provider, a project and an agent `lead`."""
    api.add_work()
    api.client.call(agents.ADD, AgentRequest(name="lead", instructions="Lead."))
    return api


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
