"""Users own join tokens, drones and sessions: who becomes the owner, who sees it, and what stays when they leave."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from control_plane.broker.broker import Broker
from control_plane.core import Caller, Core
from control_plane.declarations.drones import DroneDocument, DroneEdit
from control_plane.declarations.sessions import ForkRequest, SessionRequest
from control_plane.declarations.tasks import TaskRequest
from control_plane.declarations.tokens import ApiTokenRequest, JoinTokenRequest
from control_plane.declarations.users import UserEdit, UserRequest
from control_plane.operations import sessions, tasks
from control_plane.operations.access import tokens, users
from control_plane.operations.drones import managing, registration
from control_plane.operations.orders import reading
from shared.envelope import new_private_key, public_key
from shared.errors import Forbidden, Invalid, NotFound, Unauthenticated
from shared.events import ABILITIES
from shared.registration import JoinTokenString, RegistrationRequest
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.made import make_drone, make_project, submit
from tests.support.organizations import add_organization
from tests.support.team_rows import add_agent

KIM, JO = "kim@example.org", "jo@example.org"
KEY = new_private_key()


@pytest.fixture
def core(core_factory: CoreFactory, database_url: str, broker: Broker, clock: HandClock) -> Core:
    """A Core with a real broker."""
    return core_factory(database_url, broker=broker, clock=clock)


def user(core: Core, admin: Caller, email: str = KIM, role: str = "admin") -> Caller:
    """A new user, by a token of theirs."""
    users.add(core, admin, UserRequest(email=email, name=email, role=role))
    token = tokens.create_api_token(core, admin, ApiTokenRequest(role=role, user=email)).token
    return tokens.authenticate(core, str(token))


def join(core: Core, caller: Caller, name: str = "anna", key: bytes = KEY, **fields: object) -> DroneDocument:
    """Register a drone with a new join token of the caller."""
    return register(core, caller, secret_of(core, caller, **fields), name, key)


def secret_of(core: Core, caller: Caller, **fields: object) -> str:
    made = JoinTokenString.parse(str(tokens.create_join_token(core, caller, JoinTokenRequest(**fields)).token))
    assert made is not None
    return made.secret


def register(core: Core, caller: Caller, secret: str, name: str = "anna", key: bytes = KEY) -> DroneDocument:
    public = base64.b64encode(public_key(key)).decode()
    request = RegistrationRequest(secret=secret, name=name, machine_id="m1", public_key=public, abilities=ABILITIES)
    registration.register(core, request)
    return managing.show_drone(core, caller, name)


# --- drones and join tokens -------------------------------------------------------------------------


def test_a_drone_belongs_to_the_user_with_whose_join_token_it_registered(core: Core, admin: Caller) -> None:
    kim = user(core, admin)
    assert join(core, kim).owner == KIM
    assert [each.owner for each in tokens.list_join_tokens(core, admin)] == [KIM]
    assert join(core, admin, "script", new_private_key()).owner is None
    assert join(core, admin, "given", new_private_key(), owner=KIM).owner == KIM
    user(core, add_organization(core, admin, "other"), JO)
    with pytest.raises(NotFound) as refusal:
        secret_of(core, admin, owner=JO)
    assert refusal.value.code == "E-USER-404"


def test_a_drone_that_registers_again_belongs_to_the_new_tokens_owner_if_it_has_one(core: Core, admin: Caller) -> None:
    """A registration that is only repeated does not undo a change of the owner."""
    kim, jo = user(core, admin), user(core, admin, JO)
    secret = secret_of(core, kim)
    assert register(core, admin, secret).owner == KIM
    managing.edit_drone(core, admin, "anna", DroneEdit(owner=JO))
    assert register(core, admin, secret).owner == JO
    assert [join(core, each).owner for each in (kim, jo, admin)] == [KIM, JO, JO]


def test_join_tokens_of_a_disabled_or_removed_user_admit_no_drone(core: Core, admin: Caller) -> None:
    user(core, admin, role="operator")
    unused = secret_of(core, admin, owner=KIM)
    users.edit(core, admin, KIM, UserEdit(disabled=True))
    with pytest.raises(Unauthenticated) as disabled:
        register(core, admin, unused)
    assert disabled.value.code == "E-USER-DISABLED"
    users.edit(core, admin, KIM, UserEdit(disabled=False))
    assert join(core, admin, owner=KIM).owner == KIM
    ended = users.remove(core, admin, KIM).ended
    assert ended is not None
    assert (ended.drones, len(ended.join_tokens)) == (["anna"], 2)
    assert managing.show_drone(core, admin, "anna").owner == "not a member"
    assert managing.drain(core, admin, "anna").draining
    with pytest.raises(Unauthenticated) as refusal:
        register(core, admin, unused, "late", new_private_key())
    assert refusal.value.code == "E-JOIN-REVOKED"


def test_an_operator_removes_drones_of_their_own_and_no_others(core: Core, admin: Caller) -> None:
    kim = user(core, admin, role="operator")
    make_drone(core, admin, "kims", user_id=kim.user_id)
    make_drone(core, admin, "jos", user_id="another")
    make_drone(core, admin, "nobodys")
    for name in ("jos", "nobodys"):
        with pytest.raises(Forbidden) as refusal:
            managing.remove_drone(core, kim, name)
        assert refusal.value.code == "E-ROLE"
    with pytest.raises(Forbidden):
        managing.remove_drone(core, replace(kim, user_id=None), "nobodys")
    assert managing.remove_drone(core, kim, "kims").status == "removed"
    assert managing.remove_drone(core, admin, "jos").status == "removed"


def test_an_admin_gives_a_drone_to_another_user(core: Core, admin: Caller) -> None:
    kim, jo = user(core, admin, role="operator"), user(core, admin, JO, role="operator")
    make_drone(core, admin, "anna", user_id=kim.user_id)
    assert managing.edit_drone(core, admin, "anna", DroneEdit(owner=JO)).owner == JO
    assert managing.edit_drone(core, admin, "anna", DroneEdit()).owner == JO
    assert [each.name for each in managing.list_drones(core, jo, mine=True)] == ["anna"]
    assert managing.edit_drone(core, admin, "anna", DroneEdit(owner=None)).owner is None
    with pytest.raises(NotFound):
        managing.edit_drone(core, admin, "anna", DroneEdit(owner="who@example.org"))
    with pytest.raises(Forbidden):
        managing.edit_drone(core, kim, "anna", DroneEdit(owner=KIM))


def test_an_organization_that_only_uses_a_drone_does_not_see_or_change_its_owner(core: Core, admin: Caller) -> None:
    other = add_organization(core, admin, "other")
    kim = user(core, other)
    make_drone(core, admin, "shared", user_id=kim.user_id, serves=[other.organization_id])
    with pytest.raises(Forbidden) as refusal:
        managing.edit_drone(core, other, "shared", DroneEdit(owner=KIM))
    assert refusal.value.code == "E-DRONE-HOME"
    assert managing.list_drones(core, kim, mine=True) == []
    assert managing.show_drone(core, other, "shared").owner is None
    assert managing.show_drone(core, replace(other, everywhere=False), "shared").owner is None


# --- sessions ---------------------------------------------------------------------------------------


def test_a_session_belongs_to_the_user_who_started_it_and_a_fork_to_the_one_who_forked(
    core: Core, admin: Caller
) -> None:
    kim, jo = user(core, admin), user(core, admin, JO)
    make_project(core, admin)
    begun = sessions.create(core, kim, SessionRequest(project="web"))
    submitted = sessions.show(core, jo, submit(core, jo).session)
    fork = sessions.fork(core, jo, begun.id, ForkRequest())
    assert [each.owner for each in (begun, submitted, fork)] == [KIM, JO, JO]
    assert sessions.create(core, admin, SessionRequest(project="web")).owner is None
    add_agent(core, admin, "lead")
    task = tasks.create(core, jo, TaskRequest(title="Refunds", project="web"))
    (of_task,) = [each for each in sessions.list_(core, admin, every=True) if each.title == f"{task.id} Refunds"]
    assert of_task.owner == JO
    users.remove(core, admin, KIM)
    assert sessions.show(core, admin, begun.id).owner == "not a member"


# --- lists of one's own --------------------------------------------------------------------------------


def test_a_user_lists_their_own_drones_orders_and_sessions(core: Core, admin: Caller) -> None:
    kim, jo = user(core, admin), user(core, admin, JO)
    make_project(core, admin)
    for each in (kim, jo):
        make_drone(core, admin, f"of-{each.user}", user_id=each.user_id)
    order = submit(core, kim)
    submit(core, jo, session=order.session)
    submit(core, admin)
    assert [each.name for each in managing.list_drones(core, kim, mine=True)] == [f"of-{KIM}"]
    assert [each.id for each in reading.list_orders(core, kim, mine=True)] == [order.id]
    assert [each.id for each in sessions.list_(core, kim, mine=True)] == [order.session]
    assert sessions.list_(core, jo, mine=True) == []
    # A script has nothing of its own.
    for list_own in (managing.list_drones, reading.list_orders, sessions.list_):
        with pytest.raises(Invalid) as refusal:
            list_own(core, admin, mine=True)
        assert refusal.value.code == "E-USER-NONE"


def test_join_tokens_of_a_user_stay_valid_where_they_are_still_a_member(core: Core, admin: Caller) -> None:
    other = add_organization(core, admin, "other")
    for each in (admin, other):
        users.add(core, each, UserRequest(email=KIM, name="Kim", role="operator"))
    secret = secret_of(core, other, owner=KIM)
    ended = users.remove(core, admin, KIM).ended
    assert ended is not None
    assert (ended.drones, ended.join_tokens) == ([], [])
    assert register(core, other, secret).owner == KIM
