"""The thinking level of an order: where it comes from, and that it stays."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.sessions import ChatSession
from control_plane.declarations.providers import ProviderEdit, ProviderRequest
from control_plane.declarations.sessions import ForkRequest, SessionEdit, SessionRequest
from control_plane.operations import providers
from control_plane.operations.orders import reading, retrying
from control_plane.operations.sessions import changing
from tests.support.made import make_drone, make_project, submit


def test_the_orders_level_counts_then_the_sessions_then_the_providers(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    first = submit(core, admin)
    providers.edit(core, admin, "local", ProviderEdit(thinking="low"))
    second, third = submit(core, admin), submit(core, admin, thinking="high")
    fourth = submit(core, admin, session=third.session)
    fifth = submit(core, admin, session=third.session, thinking="off")
    sixth = submit(core, admin, session=third.session)
    orders = (first, second, third, fourth, fifth, sixth)
    assert [each.thinking for each in orders] == [None, "low", "high", "high", "off", "high"]


def test_the_level_is_that_of_the_submission_whatever_changes_later(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    providers.edit(core, admin, "local", ProviderEdit(thinking="minimal"))
    order = submit(core, admin)
    with core.database.write() as db:
        db.get_one(Order, order.id).status = "failed"
    providers.edit(core, admin, "local", ProviderEdit(thinking="auto"))
    retrying.retry(core, admin, order.id)
    assert reading.show_order(core, admin, order.id).thinking == "minimal"
    assert submit(core, admin).thinking is None


def test_a_session_has_a_level_of_its_own_which_a_fork_keeps(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    session = changing.create(core, admin, SessionRequest(project="web", thinking="medium"))
    assert session.thinking == "medium"
    assert changing.edit(core, admin, session.id, SessionEdit(thinking="xhigh")).thinking == "xhigh"
    assert changing.edit(core, admin, session.id, SessionEdit(name="named")).thinking == "xhigh"
    fork = changing.fork(core, admin, session.id, ForkRequest())
    with core.database.read() as db:
        assert db.get_one(ChatSession, fork.id).thinking == "xhigh"


@pytest.mark.parametrize("level", ["", "auto", "max", "HIGH"])
def test_another_level_is_refused(core: Core, admin: Caller, level: str) -> None:
    make_project(core, admin)
    with pytest.raises(ValidationError):
        submit(core, admin, thinking=level)


def test_a_provider_shows_its_level(core: Core, admin: Caller) -> None:
    provider = providers.add(core, admin, ProviderRequest(name="local", model="openai/x", thinking="high"))
    assert provider.thinking == "high"
    assert providers.edit(core, admin, "local", ProviderEdit(rpm=5)).thinking == "high"
