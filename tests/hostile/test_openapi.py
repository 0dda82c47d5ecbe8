"""Every address of the OpenAPI document, with generated requests of every kind of caller (schemathesis).

No answer is an error of ours, none has an undocumented status or form, and none shows another organization.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import FlakyStrategyDefinition
from schemathesis import APIOperation, Case, Response

from tests.hostile.generated_requests import (
    EVERYWHERE,
    Findings,
    cases_of,
    names_in,
    two_organizations,
)
from tests.support.filled import untouched
from tests.support.fleet import Api

pytestmark = [pytest.mark.campaign, pytest.mark.hostile]
SHORT = settings(
    max_examples=2,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
FEW = ("viewer", "admin", "drone", EVERYWHERE)
"""The callers of the short form."""
LONG = settings(SHORT, max_examples=100, derandomize=False)
FAR = settings(LONG, max_examples=60, stateful_step_count=25)
WALKS = 2
FOLLOWED = 300
"""Requests, at least, of all walks together."""
LONG_MARKS = (pytest.mark.long, pytest.mark.timeout(3600))
LAST = ("DELETE /api/v1/organizations/{name}", "DELETE /api/v1/registrations/self")
"""Operations after which callers may not exist any more."""
ENDING = [*(label.partition(" ")[2] for label in LAST), "/api/v1/api-tokens/{token_id}"]


@pytest.mark.parametrize("extent", [SHORT, pytest.param(LONG, marks=LONG_MARKS)], ids=["short", "long"])
def test_no_answer_is_an_error_or_undocumented_or_shows_another_organization(api: Api, extent: settings) -> None:
    fleet = two_organizations(api)
    findings = Findings(fleet.hidden)
    callers = [each for each in fleet.callers if each in FEW or extent is LONG]

    def ask(case: Case) -> None:
        for caller in callers:
            # Whoever may act everywhere could change the organization in which the others must see nothing.
            if caller != EVERYWHERE or not names_in(case, fleet.hidden):
                findings.look_at(caller, case, fleet.send(caller, case))

    for operation in sorted((each.ok() for each in fleet.document().get_all_operations()), key=_room):
        extent(given(case=cases_of(operation, fleet))(ask))()
    assert findings.found == {}
    assert _answered(findings) == {*callers}
    assert untouched(api, fleet.hidden.caller)


def _room(operation: APIOperation[Any, Any, Any]) -> tuple[bool, bool]:
    return operation.label in LAST, operation.method == "delete"


def _answered(findings: Findings) -> set[str]:
    """The callers who were given something."""
    return {caller for caller, status in findings.statuses if status == 200}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("caller", ["viewer", "operator", "admin", "drone"])
def test_no_answer_to_what_follows_from_answers_is_an_error_either(api: Api, caller: str) -> None:
    """Ids and names in answers go into the next requests, along the links that the document implies."""
    fleet = two_organizations(api)
    findings = Findings(fleet.hidden)
    schema = fleet.document().exclude(method="DELETE", path=ENDING)

    class Following(schema.as_state_machine()):  # type: ignore[misc]
        def call(self, case: Case, **_: Any) -> Response:
            return fleet.send(caller, case)

        def validate_response(self, response: Response, case: Case, **_: Any) -> None:
            findings.look_at(caller, case, response)

    for _ in range(WALKS):
        # The fleet keeps what a walk did. Hypothesis ends with this error when it repeats one and sees the change.
        with suppress(FlakyStrategyDefinition):
            Following.run(settings=FAR)
    assert findings.found == {}
    # To a drone, its own addresses alone answer, which follow from nothing.
    assert _answered(findings) - {"drone"} == {caller} - {"drone"}
    assert findings.statuses.total() >= FOLLOWED
