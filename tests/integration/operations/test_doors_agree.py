"""What is wrong with a call is told with the same code in the same words, whichever door it came through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from control_plane.declarations.operation import Operation, every_operation
from tests.support.doors import Doors, attempts, derived_doors
from tests.support.fleet import Api
from tests.support.fleet_tools import over_http

OPERATIONS = [operation for operation in every_operation() if derived_doors(operation) > 1]


@pytest.fixture
def doors(api: Api, tmp_path: Path) -> Iterator[Doors]:
    """The doors of a running server, for a viewer of its only organization."""
    token = api.token_for("viewer")
    environment = {"FLEET_URL": api.url, "FLEET_API_TOKEN": token, "FLEET_HOME": str(tmp_path), "FLEET_ORG": "default"}
    with api.http(token) as http, over_http(api.url, token) as tools:
        yield Doors(http, tools, environment)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_what_is_wrong_with_a_call_is_told_alike_at_each_door(doors: Doors, operation: Operation) -> None:
    for attempt in attempts(operation):
        said = doors.refusals(attempt)
        assert {each.code for each in said.values()} <= {attempt.code}, (attempt.mistake, said)
        assert len({(each.what, each.why) for each in said.values()}) <= 1, (attempt.mistake, said)
        # A door says itself where the form of a request is described: the command's help, or the schema.
        advice = {each.next for each in said.values()}
        assert all(advice) if attempt.code == "E-REQUEST" else len(advice) <= 1, (attempt.mistake, said)


def test_each_mistake_is_made_at_each_kind_of_door() -> None:
    made = Counter(attempt.mistake for operation in OPERATIONS for attempt in attempts(operation))
    assert set(made) == {
        *("a role too low", "another organization"),
        *("a wrong type", "a missing field", "an unknown field"),
    }
    assert min(made.values()) >= 5
