"""Requests that schemathesis generates from the OpenAPI document, sent by every kind of caller of a fleet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import requests
import schemathesis
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode, Response
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.schemas import APIOperation, BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from control_plane.contract.declarations.tokens import ApiTokenRequest, JoinTokenRequest
from control_plane.operations.access import tokens
from tests.support.filled import Filled, fill, resource_of
from tests.support.fleet import Api
from tests.support.organizations import add_organization

MARK = "zebra"
"""Is in every name and text of the organization that must not be seen."""
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
REFERENCES = {
    "agent": "agents",
    "assignee": "agents",
    "boss": "agents",
    "drone": "drones",
    "org": "organizations",
    "project": "projects",
    "provider": "providers",
    "session": "sessions",
}
"""Fields and filters that name a thing, with its resource."""
EVERYWHERE = "everywhere"
"""The caller that may act in all organizations."""
FOLLOWED = 2
"""Events of a live stream, which then is left: the second may be the first heartbeat."""
ANSWERED_S = 250.0
"""Only ends a test that hangs: hypothesis would call a request flaky that was answered in time when it is repeated."""

schemathesis.serializer.alias("application/x-ndjson", "text/plain")


@dataclass
class TwoOrganizations:
    """A fleet with two organizations: the one of all callers, and one of which they must not see anything."""

    api: Api
    own: Filled
    hidden: Filled
    callers: dict[str, Mapping[str, str]]
    """The headers with which each caller authenticates."""
    sessions: dict[str, requests.Session] = field(default_factory=dict)
    """A connection for each caller."""

    def send(self, caller: str, case: Case) -> Response:
        """The answer to the caller; of a live stream, its first events."""
        session = self.sessions.setdefault(caller, requests.Session())
        return case.call(self.api.url, session, dict(self.callers[caller]), timeout=ANSWERED_S)

    def document(self) -> BaseSchema:
        """The fleet's OpenAPI document. Generated requests have no credentials of their own."""
        schema = schemathesis.openapi.from_url(f"{self.api.url}/openapi.json", headers=self.callers["admin"])
        schema.config.generation.update(with_security_parameters=False)
        schema.config.max_stream_events = FOLLOWED
        return schema


def two_organizations(api: Api) -> TwoOrganizations:
    """Two organizations with one of everything, and all kinds of callers of the first."""
    core = api.core
    everywhere = tokens.authenticate(core, api.token)
    caller = add_organization(core, everywhere, "payments")
    own = fill(api, caller, "heron")
    hidden = fill(api, add_organization(core, everywhere, f"{MARK}_team", description=MARK), MARK)
    roles = {
        role: str(tokens.create_api_token(core, caller, ApiTokenRequest(role=role, name=role)).token)
        for role in ("viewer", "operator", "admin")
    }
    drone = api.add_drone("grebe", str(tokens.create_join_token(core, caller, JoinTokenRequest()).token))
    with api.browser(token=roles["admin"]) as browser:
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    bearers = {**roles, "drone": drone.token, EVERYWHERE: api.token}
    callers = {name: {"Authorization": f"Bearer {token}"} for name, token in bearers.items()}
    return TwoOrganizations(api, own, hidden, {"nobody": {}, "cookie": {"Cookie": cookies}, **callers})


@dataclass
class Findings:
    """What was wrong in answers: for each caller, operation and mistake, the first request, as a command."""

    hidden: Filled
    found: dict[tuple[str, ...], str] = field(default_factory=dict)
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often each caller got each status."""
    written: set[str] = field(default_factory=set)
    """Names of the hidden things that a caller gave to a thing of its own, which later answers show."""

    def look_at(self, caller: str, case: Case, response: Response) -> None:
        """Note an error of ours, an undocumented answer, and what belongs to the other organization."""
        self.statuses[caller, response.status_code] += 1
        for what in (*_undocumented(case, response), *self._leaked(caller, case, response)):
            said = response.text_lossy()[:600]
            self.found.setdefault((caller, case.operation.label, what), f"{case.as_curl_command()} -> {said}")

    def _leaked(self, caller: str, case: Case, response: Response) -> Iterator[str]:
        """Whoever may act everywhere sees each organization; an answer may also repeat what was sent.

        The audit log repeats what was sent before, and so do the things that were made with it.
        """
        said, sent = response.text_lossy(), names_in(case, self.hidden)
        if case.method != "GET" and response.status_code < 400:
            self.written.update(sent)
        logged = case.operation.path.startswith("/api/v1/audit")
        for value in self.hidden.names.values() if logged else {*sent, *self.written}:
            said = said.replace(value, "")
        if caller != EVERYWHERE and MARK in said:
            yield "shows another organization"


def names_in(case: Case, filled: Filled) -> list[str]:
    """The names of the organization's things that the request contains. A kind of budget is no such thing."""
    sent = str((case.path_parameters, case.query, case.body))
    return [name for what, name in filled.names.items() if what != "budget-kinds" and name in sent]


def _undocumented(case: Case, response: Response) -> Iterator[str]:
    try:
        case.validate_response(response, checks=CHECKS)
    except FailureGroup as group:
        yield from (str(each)[:300] for each in group.exceptions)
    except Failure as failure:
        yield str(failure)[:300]


def cases_of(operation: APIOperation[Any, Any, Any], fleet: TwoOrganizations) -> st.SearchStrategy[Case]:
    """Valid and invalid requests; a third of them name things of the caller's organization, a third those hidden."""
    made = operation.as_strategy(GenerationMode.POSITIVE) | operation.as_strategy(GenerationMode.NEGATIVE)
    return st.builds(_name, made, st.sampled_from([{}, fleet.own.names, fleet.hidden.names]))


def _name(case: Case, names: dict[str, str]) -> Case:
    path = case.operation.path
    for parameter in re.findall(r"\{(\w+)\}", path):
        resource = resource_of(path, parameter)
        if resource in names:
            case.path_parameters = {**(case.path_parameters or {}), parameter: names[resource]}
    for part in (case.query, case.body):
        if isinstance(part, dict):
            part.update({key: names[REFERENCES[key]] for key in part if REFERENCES.get(key) in names})
    return case
