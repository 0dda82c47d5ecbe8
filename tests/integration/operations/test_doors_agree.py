"""What every declared operation owes at each of its doors, shown for all of them at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane.contract.declarations import graphs, orders, races
from control_plane.contract.declarations.operation import Tool, every_operation
from control_plane.operations.access import tokens
from control_plane.web.throttle import Throttle
from tests.support.doors import Doors, attempts, derived_doors, problems
from tests.support.fleet import Api
from tests.support.fleet_tools import over_http
from tests.support.made import make_drone, make_project

OPERATIONS = [operation for operation in every_operation() if derived_doors(operation) > 1]
ONCE: dict[str, tuple[str, dict[str, Any]]] = {
    orders.SUBMIT.name: ("submit_order", {"prompt": "x", "project": "web"}),
    graphs.SUBMIT.name: ("submit_graph", {"project": "web", "orders": [{"name": "a", "prompt": "x"}]}),
    races.SUBMIT.name: ("submit_race", {"prompt": "x", "project": "web", "count": 2, "pick": "person"}),
}
"""The tool, and a request, of each operation that takes an idempotency key."""


@pytest.fixture
def doors(api: Api, tmp_path: Path) -> Iterator[Doors]:
    """The doors of a running server, for a viewer of its only organization."""
    token = api.token_for("viewer")
    environment = {"FLEET_URL": api.url, "FLEET_API_TOKEN": token, "FLEET_HOME": str(tmp_path), "FLEET_ORG": "default"}
    with api.http(token) as http, over_http(api.url, token) as tools:
        yield Doors(http, tools, environment)


def test_what_is_wrong_with_a_call_is_told_alike_at_each_door(api: Api, doors: Doors) -> None:
    """Each operation is called with one mistake, in turn one that it allows."""
    made: Counter[str] = Counter()
    differing = {}
    for operation in OPERATIONS:
        # So many refusals of one sender would be a flood.
        api.app.state.throttle = Throttle()
        allowed = sorted(attempts(operation), key=lambda each: made[each.mistake])
        for attempt in allowed[:1]:
            made[attempt.mistake] += 1
            if found := problems(attempt, doors.refusals(attempt)):
                differing[operation.name, attempt.mistake] = found
    assert differing == {}
    assert set(made) == {
        *("a role too low", "another organization"),
        *("a wrong type", "a missing field", "an unknown field"),
    }
    assert min(made.values()) >= 5


def test_a_key_belongs_to_one_request_and_has_one_answer_through_all_doors(api: Api) -> None:
    core, admin = api.core, tokens.authenticate(api.core, api.token)
    make_project(core, admin, "web")
    for name in ("one", "two"):
        make_drone(core, admin, name)
    declared = {operation.name: operation for operation in every_operation() if operation.idempotent}
    assert set(declared) == set(ONCE)
    with api.http() as http, over_http(api.url, api.token) as tools:
        for name, (tool, request) in ONCE.items():
            operation, key = declared[name], f"key of {name}"
            path, headers = f"/api/v1{operation.path}", {"Idempotency-Key": key}
            first, again = (http.post(path, json=request, headers=headers).json() for _ in range(2))
            by_tool = tools.get(tool, **request, idempotency_key=key)
            other = http.post(path, json=request | _other(request), headers=headers)
            other_by_tool = tools.refused(tool, **(request | _other(request)), idempotency_key=key)
            without = http.post(path, json=request).json()
            assert _id(first) == _id(again) == _id(by_tool) != _id(without), name
            assert (other.status_code, other.json()["code"]) == (409, "E-ORDER-IDEMPOTENCY")
            assert other_by_tool["code"] == "E-ORDER-IDEMPOTENCY"
            assert not isinstance(operation.tool, Tool) or operation.tool.name == tool


def _id(answer: dict[str, Any]) -> str:
    return str((answer.get("race") or answer)["id"])


def _other(request: dict[str, Any]) -> dict[str, Any]:
    """What makes it another request."""
    return {"prompt": "y"} if "prompt" in request else {"orders": [{"name": "b", "prompt": "x"}]}
