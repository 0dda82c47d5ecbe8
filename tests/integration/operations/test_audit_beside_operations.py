"""Changes that are no operation of a caller: log-ins, the first token, permission to push."""

from __future__ import annotations

import pytest

from control_plane.core import Caller, Core
from control_plane.core.origin import RequestOrigin, coming_from
from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.documents.orders import SubmitRequest
from control_plane.operations.access import tokens
from control_plane.operations.access.logins import Browser
from control_plane.operations.audit.reading import list_records
from control_plane.operations.orders import reading
from control_plane.operations.runs import blobs
from shared.errors import Unauthenticated
from tests.support.made import make_drone, make_project, run_of

pytestmark = pytest.mark.dialects


def actions(core: Core, admin: Caller, limit: int = 10) -> list[tuple[str, str, str, str]]:
    """Actor, door, action and target, oldest first."""
    found = list_records(core, admin, everywhere=True, limit=limit)[::-1]
    return [(each.actor, each.door, each.action, each.target) for each in found]


def test_a_browser_logs_in_and_out(core: Core, admin: Caller) -> None:
    token = tokens.create_api_token(core, admin, ApiTokenRequest(role="viewer", name="kim"))
    kim = tokens.authenticate(core, str(token.token))
    with coming_from(RequestOrigin("page", "10.0.0.1")):
        secret = tokens.start_session(core, kim, Browser("10.0.0.1"))
        tokens.end_session(core, secret)
        tokens.end_session(core, secret)
    session = list_records(core, admin, action="log_out")[0].actor
    assert session.startswith("login session ")
    assert actions(core, admin)[1:] == [("kim", "page", "log_in", ""), (session, "page", "log_out", "")]


def test_a_login_link_is_recorded_when_it_is_used_and_not_when_it_is_refused(core: Core, admin: Caller) -> None:
    token = tokens.create_api_token(core, admin, ApiTokenRequest(role="viewer"))
    secret = tokens.create_login_link(core, tokens.authenticate(core, str(token.token)))
    tokens.use_login_link(core, secret)
    with pytest.raises(Unauthenticated):
        tokens.use_login_link(core, secret)
    assert [action for _, _, action, _ in actions(core, admin)] == ["create_api_token", "log_in"]
    assert list_records(core, admin, action="log_in")[0].actor_id == token.id


def test_the_first_admin_token_is_recorded(core: Core, admin: Caller) -> None:
    token = tokens.authenticate(core, tokens.bootstrap_admin(core))
    assert actions(core, admin) == [("system", "control plane", "bootstrap_admin", token.token_id)]


def test_permission_to_push_is_recorded(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    drone = make_drone(core, admin, "anna")
    order = reading.submit(core, admin, SubmitRequest(prompt="x", project="web"))
    run = run_of(core, order.id)
    blobs.grant_push(core, drone, run)
    assert actions(core, admin)[-1] == ("anna", "control plane", "grant_push", order.id)
