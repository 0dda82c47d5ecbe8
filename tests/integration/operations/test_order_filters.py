"""The filters of the list of orders, and its cursor."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text, update

from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.declarations.agents import AgentRequest
from control_plane.operations.agents import changing
from control_plane.operations.orders import reading
from control_plane.operations.orders.filtering import narrowed
from shared.errors import NotFound
from tests.support.made import make_project, submit


def ids(core: Core, admin: Caller, **terms: Any) -> list[str]:
    return [order.id for order in reading.list_orders(core, admin, **terms)]


@pytest.mark.dialects
def test_a_text_finds_the_orders_with_all_of_its_words_in_any_case_and_signs_mean_themselves(
    core: Core, admin: Caller
) -> None:
    make_project(core, admin)
    first, second = (submit(core, admin, prompt=prompt).id for prompt in ("Fix the 100% test", "Fix the test_it"))

    assert ids(core, admin, text="TEST fix") == [second, first]
    assert ids(core, admin, text="100%") == [first]
    assert ids(core, admin, text="0%t") == []
    assert ids(core, admin, text="t_it") == [second]
    assert ids(core, admin, text=first[:8]) == [first]


def test_the_last_id_of_a_list_continues_it(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    first, second, third = (submit(core, admin).id for _ in range(3))

    assert ids(core, admin, limit=2) == [third, second]
    assert ids(core, admin, limit=2, before=second) == [first]
    assert ids(core, admin, before=second[:10]) == [first]
    with pytest.raises(NotFound):
        ids(core, Caller("000000000000", "other", "admin", "u"), before=second)


@pytest.mark.dialects
def test_orders_are_narrowed_to_days_user_model_and_agent(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    changing.create(core, admin, AgentRequest(name="lead", instructions="You lead."))
    old, new = (submit(core, admin).id for _ in range(2))
    today = core.clock.now().date()
    with core.database.write() as db:
        agent_id = db.execute(text("select id from agents")).scalar_one()
        before = {"created_at": core.clock.now() - timedelta(days=2), "user": "kim", "model": "m/1"}
        db.execute(update(Order).where(Order.id == old).values(**before, agent_id=agent_id))

    assert ids(core, admin, since=today) == [new]
    assert ids(core, admin, until=today - timedelta(days=1)) == [old]
    assert ids(core, admin, since=today - timedelta(days=2), until=today) == [new, old]
    assert (ids(core, admin, user="kim"), ids(core, admin, model="m/1"), ids(core, admin, agent="lead")) == (
        [old],
        [old],
        [old],
    )


def test_the_newest_orders_are_read_from_an_index_without_sorting(core: Core, admin: Caller) -> None:
    with core.database.read() as db:
        query = narrowed(db, admin, reading._orders(admin), {}).order_by(Order.number.desc()).limit(50)
        statement = query.compile(db.get_bind(), compile_kwargs={"literal_binds": True})
        plan = [str(row[3]) for row in db.execute(text(f"explain query plan {statement}"))]
    assert "ix_orders_listed" in plan[0]
    assert not [line for line in plan if "TEMP B-TREE" in line]
